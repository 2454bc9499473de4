package imapserver

import (
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// notifying is what a client wants to hear of, since its last NOTIFY. nil: it has sent
// none, and hears of the selected mailbox in commands.
//
// A commit anywhere in the account wakes the connection, which then compares the rows of
// the mailboxes with those that it saw last; nothing is queued, so nothing overflows.
type notifying struct {
	notifySet
	wake   <-chan struct{}
	cancel func()
	rows   map[mailbox.MailboxID]mailbox.Mailbox // as seen last; nil: none is watched
	absent []string                              // subscribed names that no mailbox has, as seen last, sorted
	own    map[imap.UID]bool                     // new in the selected mailbox by this client
}

// listen begins to watch what set names.
func (c *conn) listen(set *notifySet) error {
	n := &notifying{notifySet: *set, cancel: func() {}, own: map[imap.UID]bool{}}
	if len(set.groups) > 0 || set.events != 0 {
		n.wake, n.cancel = c.srv.opt.Store.Watch(c.ident.Account, 0)
	}
	if len(set.groups) > 0 {
		boxes, absent, err := c.names()
		if err != nil {
			n.cancel()
			return err
		}
		n.rows, n.absent = rowsByID(boxes), absent
		if set.status {
			c.writeNotifyStatus(n, boxes)
		}
	}
	c.deafen()
	c.listening = n
	if n.fetch != nil && n.fetch.asksFor(fetchModSeq) {
		c.aware()
	}
	return nil
}

// names returns the mailboxes, and the subscribed names that no mailbox has.
func (c *conn) names() ([]mailbox.Mailbox, []string, error) {
	boxes, err := c.mailboxes()
	if err != nil {
		return nil, nil, err
	}
	absent, err := c.absent()
	return boxes, absent.names, err
}

// deafen ends watching.
func (c *conn) deafen() {
	if c.listening != nil {
		c.listening.cancel()
		c.listening = nil
	}
}

func rowsByID(boxes []mailbox.Mailbox) map[mailbox.MailboxID]mailbox.Mailbox {
	rows := make(map[mailbox.MailboxID]mailbox.Mailbox, len(boxes))
	for _, m := range boxes {
		rows[m.ID] = m
	}
	return rows
}

// wants returns the events that are wanted of a mailbox that is not selected.
func (n *notifying) wants(m *mailbox.Mailbox) (all events) {
	for i := range n.groups {
		if n.groups[i].matches(m) {
			all |= n.groups[i].events
		}
	}
	return all
}

// writeNotifyStatus tells the state from which events will be told (RFC 5465 section 3.1).
func (c *conn) writeNotifyStatus(n *notifying, boxes []mailbox.Mailbox) {
	for _, m := range boxes {
		e := n.wants(&m)
		if e&messageEvents == 0 || c.sel != nil && c.sel.id == m.ID {
			continue
		}
		items := []string{"MESSAGES", "UIDNEXT", "UIDVALIDITY"}
		if e&flagChange != 0 || c.condstore {
			items = append(items, "HIGHESTMODSEQ")
		}
		c.writeStatus(m, items)
	}
}

// hears reports whether the client wants to hear of an event in the selected mailbox.
func (c *conn) hears(e events) bool { return c.listening == nil || c.listening.events&e != 0 }

// notified tells what the client wants to hear, outside of commands and in IDLE. Expunges
// of SELECTED-DELAYED wait for a command that allows them, as IDLE is one.
func (c *conn) notified(inCommand bool) {
	n := c.listening
	if c.sel != nil {
		c.tell(inCommand || !n.delayed)
		c.sel.overheard = false
	}
	if n.rows == nil {
		return
	}
	boxes, absent, err := c.names()
	if err != nil { // RFC 5465 section 5.8
		c.log.Error("imap: NOTIFY", "err", err)
		c.out.str("* OK [NOTIFICATIONOVERFLOW] Nothing is watched any more").crlf()
		c.listen(&notifySet{})
		return
	}
	was := *n
	n.rows, n.absent = rowsByID(boxes), absent
	c.notifyNames(n, &was, boxes)
	for _, m := range boxes {
		if old, known := was.rows[m.ID]; old != m {
			c.notifyMessages(n, old, m, known)
		}
	}
}

// notifyMessages tells with STATUS what happened in a mailbox that is not selected.
func (c *conn) notifyMessages(n *notifying, was, m mailbox.Mailbox, known bool) {
	e := n.wants(&m)
	if c.sel != nil && c.sel.id == m.ID || e&messageEvents == 0 || known && was.HighestModSeq == m.HighestModSeq {
		return
	}
	var items []string
	if !known || was.UIDNext != m.UIDNext || was.Exists != m.Exists {
		items = append(items, "MESSAGES", "UIDNEXT")
	}
	if e&flagChange != 0 && was.Unseen != m.Unseen {
		items = append(items, "UNSEEN")
	}
	if !known || e&flagChange != 0 && (len(items) > 0 || c.condstore) {
		items = append(items, "UIDVALIDITY")
	}
	if c.condstore && len(items) > 0 {
		items = append(items, "HIGHESTMODSEQ")
	}
	if len(items) > 0 {
		c.writeStatus(m, items)
	}
}

// nameEvent is a name of which LIST is told.
type nameEvent struct{ name, oldName string }

// notifyNames tells with LIST which mailboxes were made, deleted, renamed and subscribed
// to (RFC 5465 sections 5.4 and 5.5).
func (c *conn) notifyNames(n, old *notifying, boxes []mailbox.Mailbox) {
	var told []nameEvent
	known := map[string]bool{}
	tell := func(m mailbox.Mailbox, e events, oldName string) {
		if n.wants(&m)&e != 0 && !known[m.Name] {
			told = append(told, nameEvent{m.Name, oldName})
			known[m.Name] = true
		}
	}
	withParent := func(m mailbox.Mailbox) {
		tell(m, mailboxName, "")
		if up := mailbox.ParentName(m.Name); up != "" {
			tell(mailbox.Mailbox{Name: up, Subscribed: m.Subscribed}, mailboxName, "")
		}
	}
	for _, m := range without(old.rows, n.rows) {
		withParent(m)
	}
	renamed := renames(old.rows, n.rows)
	for _, m := range boxes {
		was, there := old.rows[m.ID]
		switch {
		case !there:
			withParent(m)
		case was.Name != m.Name && !renamedAbove(was.Name, m.Name, renamed):
			tell(m, mailboxName, was.Name)
		}
		if there && was.Subscribed != m.Subscribed {
			asked := m
			asked.Subscribed = true // it was, or is: either way it is among SUBSCRIBED
			tell(asked, subscriptionChange, "")
		}
	}
	for _, name := range append(slices.Clone(n.absent), old.absent...) {
		_, is := slices.BinarySearch(n.absent, name)
		if _, was := slices.BinarySearch(old.absent, name); is != was {
			tell(mailbox.Mailbox{Name: name, Subscribed: true}, subscriptionChange, "")
		}
	}
	if len(told) > 0 {
		c.writeNames(told, boxes)
	}
}

// without returns the mailboxes that are in old and not in rows, by name.
func without(old, rows map[mailbox.MailboxID]mailbox.Mailbox) (out []mailbox.Mailbox) {
	for id, m := range old {
		if _, there := rows[id]; !there {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b mailbox.Mailbox) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// renames are the new names of mailboxes by the old ones.
func renames(old, rows map[mailbox.MailboxID]mailbox.Mailbox) map[string]string {
	renamed := map[string]string{}
	for id, m := range old {
		if now, there := rows[id]; there && now.Name != m.Name {
			renamed[m.Name] = now.Name
		}
	}
	return renamed
}

// renamedAbove reports whether a mailbox has its new name because one above it was
// renamed.
func renamedAbove(was, is string, renamed map[string]string) bool {
	for up := mailbox.ParentName(was); up != ""; up = mailbox.ParentName(up) {
		if now, yes := renamed[up]; yes && is == now+was[len(up):] {
			return true
		}
	}
	return false
}

func (c *conn) writeNames(told []nameEvent, boxes []mailbox.Mailbox) {
	l := listing{response: "LIST", extended: true, absent: c.listening.absent}
	l.ReturnSubscribed = true
	nodes := map[string]*node{}
	for _, n := range l.hierarchy(boxes) {
		nodes[n.name] = n
	}
	for _, t := range told {
		attrs := []string{`\NonExistent`}
		if n := nodes[t.name]; n != nil {
			if seen, show := l.attributes(n); show {
				attrs = seen
			} else if n.subscribed {
				attrs = append(attrs, `\Subscribed`)
			}
		}
		c.writeOldName(t.name, t.oldName, attrs)
	}
}

// caused takes note of what the client did itself: it need not be told of the names that
// it changed, nor what it asked to be fetched of its own messages (RFC 5465 sections 5
// and 5.2).
func (c *conn) caused(ops []mailbox.Op, res mailbox.Result) {
	n := c.listening
	if n == nil {
		return
	}
	for _, op := range ops {
		switch op := op.(type) {
		case mailbox.AddMessage:
			for _, at := range res.UIDs[op.ID] {
				c.ownMessage(at.Mailbox, at.UID)
			}
		case mailbox.CopyEntries:
			for _, pair := range res.Copied {
				c.ownMessage(op.To, pair.To)
			}
		case mailbox.MoveEntries:
			for _, pair := range res.Copied {
				c.ownMessage(op.To, pair.To)
			}
		case mailbox.CreateMailbox, mailbox.DeleteMailbox, mailbox.RenameMailbox, mailbox.Subscribe:
			c.ownName(op, res.Mailbox)
		}
	}
}

func (c *conn) ownMessage(box mailbox.MailboxID, uid imap.UID) {
	if c.sel != nil && c.sel.id == box && c.listening.fetch != nil {
		c.listening.own[uid] = true
	}
}

// ownName makes what is known of the names what the client has made of them.
func (c *conn) ownName(op mailbox.Op, made mailbox.MailboxID) {
	n := c.listening
	boxes, err := c.mailboxes()
	if n.rows == nil || err != nil {
		return
	}
	for _, m := range boxes {
		was, known := n.rows[m.ID]
		switch op := op.(type) {
		case mailbox.CreateMailbox:
			if m.ID == made {
				n.rows[m.ID] = m
			}
		case mailbox.RenameMailbox:
			if known && (m.ID == op.Mailbox || m.Name != was.Name) {
				was.Name = m.Name
				n.rows[m.ID] = was
			}
		case mailbox.Subscribe:
			if known && m.ID == op.Mailbox {
				was.Subscribed = op.On
				n.rows[m.ID] = was
			}
		}
	}
	if op, deletes := op.(mailbox.DeleteMailbox); deletes {
		if was := n.rows[op.Mailbox]; was.Subscribed { // the subscription stays
			at, _ := slices.BinarySearch(n.absent, was.Name)
			n.absent = slices.Insert(slices.Clone(n.absent), at, was.Name)
		}
		delete(n.rows, op.Mailbox)
	}
}

// fetchNew tells of new messages what the client asked for with NOTIFY. It sets no \Seen.
func (c *conn) fetchNew(from imap.UID) {
	n := c.listening
	if n == nil || n.fetch == nil {
		return
	}
	var spans []span
	for pos := c.sel.lower(from); pos < c.sel.len(); pos++ {
		if e, ghost := c.sel.at(pos); !ghost && !n.own[e.UID] {
			spans = append(spans, span{pos, pos + 1})
		}
	}
	clear(n.own)
	run := &fetchRun{fetching: n.fetch, c: c, unasked: true}
	if err := run.write(merge(spans)); err != nil {
		c.log.Error("imap: NOTIFY", "err", err)
	}
}

// await waits for the first octet of the next command. A client that sent NOTIFY hears
// meanwhile what it wants to.
func (c *conn) await() error {
	n := c.listening
	if n == nil || n.wake == nil || c.in.Buffered() > 0 {
		_, err := c.in.Peek(1)
		return err
	}
	if c.sel != nil && len(c.sel.ghosts) > 0 && !n.delayed { // a command by number left them
		c.tell(true)
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	came := make(chan error, 1)
	c.reading = true
	go func() {
		_, err := c.in.Peek(1)
		came <- err
	}()
	for {
		select {
		case err := <-came:
			c.reading = false
			return err
		case <-c.listening.wake:
			c.notified(false)
			if err := c.out.flush(); err != nil {
				c.raw.stop()
				<-came
				c.reading = false
				return err
			}
		}
	}
}

package imapserver

import (
	"strings"

	"pizza/mailbox"
)

// NOTIFY (RFC 5465): a client says once what it wants to hear of, in the selected mailbox
// and in others, and hears it also between commands.

// events are what a client may want to hear of.
type events uint8

const (
	messageEvents events = 1 << iota // MessageNew and MessageExpunge, which go together
	flagChange
	mailboxName
	subscriptionChange
)

// eventNames are the events that we know, as BADEVENT lists them.
const eventNames = "MessageNew MessageExpunge FlagChange MailboxName SubscriptionChange"

// notifyGroup is one event-group that is not about the selected mailbox.
type notifyGroup struct {
	which  string   // INBOXES, PERSONAL, SUBSCRIBED, SUBTREE or MAILBOXES
	names  []string // of the last two
	events events
}

// matches reports whether a mailbox is among those of the group. Mail may be delivered
// to any mailbox here, so INBOXES is PERSONAL (RFC 5465 section 6.3).
func (g *notifyGroup) matches(m *mailbox.Mailbox) bool {
	switch g.which {
	case "INBOXES", "PERSONAL":
		return true
	case "SUBSCRIBED":
		return m.Subscribed
	}
	for _, name := range g.names {
		if m.Name == name || g.which == "SUBTREE" && strings.HasPrefix(m.Name, name+delimiter) {
			return true
		}
	}
	return false
}

// notifySet is a NOTIFY SET as sent.
type notifySet struct {
	status  bool
	groups  []notifyGroup
	chosen  bool   // SELECTED or SELECTED-DELAYED was given
	delayed bool   // SELECTED-DELAYED
	events  events // in the selected mailbox
	fetch   *fetching

	unknown bool // an event that we do not know is among them
}

const (
	maxNotifyGroups = 100
	maxNotifyNames  = 1000
)

// notify answers NOTIFY. What changed in the selected mailbox so far is told first
// (RFC 5465 section 3.1).
func (c *conn) notify(p *parser) (reply, error) {
	p.sp()
	set := &notifySet{}
	switch p.word() {
	case "NONE":
	case "SET":
		p.sp()
		p.notifySet(set)
	default:
		p.fail("Expected SET or NONE")
	}
	if err := p.end(); err != nil {
		return reply{}, err
	}
	names := 0
	for _, g := range set.groups {
		names += len(g.names)
	}
	switch {
	case set.unknown:
		return reply{no, "BADEVENT (" + eventNames + ")", "Unknown event"}, nil
	case len(set.groups) > maxNotifyGroups, names > maxNotifyNames:
		return reply{no, "NOTIFICATIONOVERFLOW", "That is too much to watch: at most " + decimal(maxNotifyGroups) + " groups and " + decimal(maxNotifyNames) + " names"}, nil
	}
	c.news()
	if err := c.listen(set); err != nil {
		return reply{}, err
	}
	return done("NOTIFY"), nil
}

func (p *parser) notifySet(set *notifySet) {
	if p.keyword("STATUS") {
		set.status = true
		p.sp()
	}
	for p.err == nil {
		p.notifyGroup(set)
		if !p.accept(' ') {
			return
		}
	}
}

func (p *parser) notifyGroup(set *notifySet) {
	p.expect('(')
	g := notifyGroup{which: p.word()}
	selected := g.which == "SELECTED" || g.which == "SELECTED-DELAYED"
	switch g.which {
	case "INBOXES", "PERSONAL", "SUBSCRIBED", "SELECTED", "SELECTED-DELAYED":
	case "SUBTREE", "MAILBOXES":
		p.sp()
		if p.peek() == '(' {
			p.list(func() { g.names = append(g.names, p.mailbox()) })
		} else {
			g.names = []string{p.mailbox()}
		}
	default:
		p.fail("Unknown choice of mailboxes")
	}
	p.sp()
	var fetch *fetching
	g.events, fetch = p.events(set)
	p.expect(')')
	switch {
	case !selected && fetch != nil:
		p.fail("Message data can be had of the selected mailbox only")
	case !selected:
		set.groups = append(set.groups, g)
	case set.chosen:
		p.fail("SELECTED or SELECTED-DELAYED, once")
	case g.events&^(messageEvents|flagChange) != 0:
		p.fail("Of the selected mailbox only message events can be had")
	default:
		set.chosen, set.delayed, set.events, set.fetch = true, g.which == "SELECTED-DELAYED", g.events, fetch
	}
}

// events reads a list of events, and what to fetch of a new message.
func (p *parser) events(set *notifySet) (all events, fetch *fetching) {
	if p.keyword("NONE") {
		return 0, nil
	}
	arrivals, expunges, some := false, false, false
	p.list(func() {
		some = true
		switch p.word() {
		case "MESSAGENEW":
			arrivals = true
			if p.i+1 < len(p.b) && p.b[p.i] == ' ' && p.b[p.i+1] == '(' {
				p.sp()
				fetch = &fetching{}
				p.list(func() { fetch.item(p) })
				if len(fetch.items) > maxItems {
					p.fail("Too many FETCH items")
				}
			}
		case "MESSAGEEXPUNGE":
			expunges = true
		case "FLAGCHANGE":
			all |= flagChange
		case "MAILBOXNAME":
			all |= mailboxName
		case "SUBSCRIPTIONCHANGE":
			all |= subscriptionChange
		default:
			set.unknown = true
		}
	})
	if !some {
		p.fail("Missing events")
	}
	if arrivals != expunges || all&flagChange != 0 && !arrivals {
		p.fail("MessageNew and MessageExpunge go together, and with FlagChange") // RFC 5465 section 5
	}
	if arrivals {
		all |= messageEvents
	}
	return all, fetch
}

package imapserver

import (
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// listing is a LIST command as sent (RFC 3501 section 6.3.8, RFC 5258, RFC 6154,
// RFC 5819).
type listing struct {
	response string // LIST, LSUB or XLIST
	extended bool   // selection options, several patterns or return options were given
	ref      string
	patterns []string
	imap.ListOptions
	status []string // RETURN (STATUS (...))
	absent []string // subscribed names that no mailbox has
	rev2   bool     // ENABLE IMAP4rev2
}

func (c *conn) list(p *parser) (reply, error) {
	l := listing{response: "LIST"}
	p.sp()
	if p.peek() == '(' && p.knows(inList, "(") {
		l.extended = true
		p.list(func() { l.selection(p) })
		if l.SelectRecursiveMatch && !l.SelectSubscribed {
			p.fail("RECURSIVEMATCH needs SUBSCRIBED")
		}
		p.sp()
	}
	l.arguments(p)
	if p.accept(' ') {
		l.extended = true
		if p.word() != "RETURN" || !p.knows(inList, "RETURN") {
			p.fail("Expected RETURN")
		}
		p.sp()
		p.list(func() { l.returning(p) })
	}
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.awareOf(l.status)
	return done("LIST"), c.writeListing(&l)
}

func (c *conn) lsub(p *parser) (reply, error) {
	l := listing{response: "LSUB"}
	l.SelectSubscribed = true
	return c.plainList(p, &l)
}

// xlist is what Outlook 2013 asks for: LIST, with the attributes it knows.
func (c *conn) xlist(p *parser) (reply, error) { return c.plainList(p, &listing{response: "XLIST"}) }

func (c *conn) plainList(p *parser, l *listing) (reply, error) {
	p.sp()
	l.arguments(p)
	if err := p.end(); err != nil {
		return reply{}, err
	}
	return done(l.response), c.writeListing(l)
}

// arguments reads the reference and the pattern or patterns.
func (l *listing) arguments(p *parser) {
	l.ref = p.mailbox()
	p.sp()
	if p.peek() == '(' && l.response == "LIST" && p.knows(inList, "(") {
		l.extended = true
		p.list(func() { l.patterns = append(l.patterns, p.pattern()) })
		return
	}
	l.patterns = []string{p.pattern()}
	if l.response == "LSUB" { // with %, a level above a subscribed name shows (RFC 3501 section 6.3.9)
		l.SelectRecursiveMatch = strings.Contains(l.patterns[0], "%")
	}
}

func (l *listing) selection(p *parser) {
	switch p.listOption() {
	case "SUBSCRIBED":
		l.SelectSubscribed, l.ReturnSubscribed = true, true
	case "REMOTE": // we have none
		l.SelectRemote = true
	case "RECURSIVEMATCH":
		l.SelectRecursiveMatch = true
	case "SPECIAL-USE":
		l.SelectSpecialUse = true
	default:
		p.fail("Unknown LIST option")
	}
}

// listOption reads the name of an option.
func (p *parser) listOption() string {
	name := p.word()
	if !p.knows(inList, name) {
		p.fail("Unknown LIST option")
	}
	return name
}

func (l *listing) returning(p *parser) {
	switch p.listOption() {
	case "SUBSCRIBED":
		l.ReturnSubscribed = true
	case "CHILDREN":
		l.ReturnChildren = true
	case "SPECIAL-USE":
		l.ReturnSpecialUse = true
	case "STATUS":
		p.sp()
		l.status = p.statusItems()
	default:
		p.fail("Unknown LIST option")
	}
}

// node is a name of the hierarchy: a mailbox, or a level above one that is none.
type node struct {
	name            string
	box             *mailbox.Mailbox // nil: no mailbox of that name
	subscribed      bool
	children        bool
	subscribedBelow bool // below are subscribed names that the patterns do not show
}

// hierarchy returns all names, levels that are no mailbox too, in order.
func (l *listing) hierarchy(boxes []mailbox.Mailbox) []*node {
	byName := make(map[string]*node, len(boxes))
	get := func(name string) *node {
		n := byName[name]
		if n == nil {
			n = &node{name: name}
			byName[name] = n
		}
		return n
	}
	above := func(n *node, exists bool) {
		// What is shown itself needs no word at the levels above it (RFC 5258 section 3.5).
		hidden := n.subscribed && l.SelectRecursiveMatch && !l.matches(n.name)
		for name := mailbox.ParentName(n.name); name != ""; name = mailbox.ParentName(name) {
			parent := get(name)
			parent.children = parent.children || exists
			parent.subscribedBelow = parent.subscribedBelow || hidden
		}
	}
	for i := range boxes {
		n := get(boxes[i].Name)
		n.box, n.subscribed = &boxes[i], boxes[i].Subscribed
		above(n, true)
	}
	for _, name := range l.absent {
		n := get(name)
		n.subscribed = true
		above(n, n.box != nil)
	}
	nodes := make([]*node, 0, len(byName))
	for _, n := range byName {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *node) int {
		if (a.name == "INBOX") != (b.name == "INBOX") { // INBOX comes first
			if a.name == "INBOX" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return nodes
}

// writeListing writes the responses of a LIST.
func (c *conn) writeListing(l *listing) error {
	if len(l.patterns) == 1 && l.patterns[0] == "" && !l.extended { // the root of the reference
		c.out.str("* ").str(l.response).str(` (\Noselect) "/" ""`).crlf()
		return nil
	}
	boxes, err := c.mailboxes()
	if err != nil {
		return err
	}
	subscribed, err := c.absent()
	if err != nil {
		return err
	}
	l.absent, l.rev2 = subscribed.names, c.rev2
	for _, n := range l.hierarchy(boxes) {
		attrs, show := l.attributes(n)
		if !show || !l.matches(n.name) {
			continue
		}
		c.writeListed(l, n, attrs)
		if len(l.status) > 0 && n.box != nil {
			c.writeStatus(*n.box, l.status)
		}
	}
	return nil
}

func (l *listing) matches(name string) bool {
	for _, pattern := range l.patterns {
		if pattern != "" && matchName(foldInbox(l.ref+pattern), name) {
			return true
		}
	}
	return false
}

// attributes returns what to say of a name, and whether the selection options let it
// through.
func (l *listing) attributes(n *node) (attrs []string, show bool) {
	below := l.SelectRecursiveMatch && n.subscribedBelow
	special := n.box != nil && n.box.SpecialUse != ""
	switch {
	case l.SelectSubscribed && !n.subscribed && !below,
		n.box == nil && !n.children && !l.SelectSubscribed,
		l.SelectSpecialUse && !special:
		return nil, false
	case l.response == "LSUB" && !n.subscribed:
		return []string{`\Noselect`}, true
	case l.response == "LSUB" && n.box == nil && !n.children:
		return nil, true
	case n.box == nil && (n.subscribed || below) && (l.extended || l.rev2):
		attrs = append(attrs, `\NonExistent`) // a mere level has not that (RFC 9051 section 7.3.1)
	case n.box == nil:
		attrs = append(attrs, `\Noselect`)
	}
	if n.children {
		attrs = append(attrs, `\HasChildren`)
	} else {
		attrs = append(attrs, `\HasNoChildren`)
	}
	if special {
		attrs = append(attrs, string(n.box.SpecialUse))
	}
	if l.ReturnSubscribed && n.subscribed {
		attrs = append(attrs, `\Subscribed`)
	}
	if l.response == "XLIST" && n.name == "INBOX" {
		attrs = append(attrs, `\Inbox`)
	}
	return attrs, true
}

// beginListed writes a response up to the extended data items.
func (c *conn) beginListed(response, name string, attrs []string) {
	c.out.str("* ").str(response).str(" (").str(strings.Join(attrs, " ")).str(`) "/" `)
	c.writeName(name)
}

// writeOldName writes LIST of a name that was called oldName, or asked for by it; "" and
// the name itself are not told (RFC 9051 section 6.3.9.7).
func (c *conn) writeOldName(name, oldName string, attrs []string) {
	c.beginListed("LIST", name, attrs)
	if oldName != "" && oldName != name {
		c.out.str(` ("OLDNAME" (`)
		c.writeName(oldName)
		c.out.str("))")
	}
	c.out.crlf()
}

func (c *conn) writeListed(l *listing, n *node, attrs []string) {
	c.beginListed(l.response, n.name, attrs)
	if l.response == "LIST" && l.SelectRecursiveMatch && n.subscribedBelow {
		c.out.str(` ("CHILDINFO" ("SUBSCRIBED"))`)
	}
	c.out.crlf()
}

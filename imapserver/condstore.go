package imapserver

import (
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// CONDSTORE (RFC 7162 section 3.1). A client that uses any of it once is told MODSEQ,
// and the UID, with every FETCH that it did not ask for, until the connection ends.
//
// No mod-sequence is told that is higher than what the client has been told of the
// mailbox: each comes from the snapshot of the view. An expunge that may not be told yet
// can be older than a mod-sequence that is told already; view.settled lies below it.

// aware notes that the client wants mod-sequences. The first time, a client that has a
// mailbox selected is told where it stands.
func (c *conn) aware() {
	if c.condstore {
		return
	}
	c.condstore = true
	if s := c.sel; s != nil {
		s.told = s.settled
		c.out.str("* OK [").str(highestModSeq(s.settled)).str("] Mod-sequences are told from now on").crlf()
	}
}

// awareOf is aware for who asks for STATUS items (RFC 7162 section 3.1).
func (c *conn) awareOf(items []string) {
	if slices.Contains(items, "HIGHESTMODSEQ") {
		c.aware()
	}
}

func highestModSeq(m mailbox.ModSeq) string {
	return "HIGHESTMODSEQ " + decimal64(int64(m))
}

// writeModSeqItem writes MODSEQ (n) inside a FETCH response.
func (c *conn) writeModSeqItem(m mailbox.ModSeq) {
	if m > c.sel.settled {
		c.sel.ahead = true
	}
	c.out.str("MODSEQ (").num(uint64(m)).str(")")
}

// writeModSeq tells the mod-sequence of one entry, with its UID.
func (c *conn) writeModSeq(e mailbox.Entry) {
	c.out.str("* ").num(uint64(c.sel.seq(e.UID))).str(" FETCH (UID ").num(uint64(e.UID)).str(" ")
	c.writeModSeqItem(e.ModSeq)
	c.out.str(")").crlf()
}

// settle ends a command of a QRESYNC client with the mod-sequence up to which it knows
// everything. Without it the client would take the highest MODSEQ that the command told,
// and never hear of an expunge below that one, should the connection break (RFC 7162
// sections 3.2 and 6).
func (c *conn) settle(r reply) reply {
	s := c.sel
	if s == nil || !c.qresync || r.kind == none || !s.ahead && s.settled == s.told {
		return r
	}
	s.ahead, s.told = false, s.settled
	code := highestModSeq(s.settled)
	if r.kind == ok && r.code == "" {
		r.code = code
		return r
	}
	c.out.str("* OK [").str(code).str("] Everything up to here was told").crlf()
	return r
}

// unchangedSince reads the modifiers of STORE, if there are any.
func (p *parser) unchangedSince() (since *mailbox.ModSeq) {
	if p.peek() != '(' {
		return nil
	}
	p.list(func() {
		if p.word() != "UNCHANGEDSINCE" || since != nil || !p.knows(inStoreModifier, "UNCHANGEDSINCE") {
			p.fail("Unknown STORE modifier")
		}
		p.sp()
		n := p.modSeq()
		since = &n
	})
	p.sp()
	return since
}

// modified is the response code for messages that UNCHANGEDSINCE left alone, as the
// command numbers them.
func (c *conn) modified(uids imap.UIDSet, num numbering) string {
	var list []uint32
	for _, r := range uids {
		for uid := r.Start; uid <= r.Stop; uid++ {
			if num == uidNumbers {
				list = append(list, uint32(uid))
			} else {
				list = append(list, c.sel.seq(uid))
			}
		}
	}
	return string(appendRuns([]byte("MODIFIED "), len(list), func(i int) uint32 { return list[i] }))
}

// fetchModifiers narrow a FETCH (RFC 4466 section 2.4).
type fetchModifiers struct {
	changed  bool           // CHANGEDSINCE was given
	since    mailbox.ModSeq // its mod-sequence
	vanished bool           // VANISHED, too
	partial  *partial
}

func (p *parser) fetchModifiers(f *fetching, num numbering) {
	if !p.accept(' ') || p.peek() != '(' {
		return
	}
	p.list(func() {
		switch name := p.word(); {
		case !p.knows(inFetchModifier, name):
			p.fail("Unknown FETCH modifier")
		case name == "CHANGEDSINCE":
			p.sp()
			f.changed, f.since = true, p.modSeq()
			f.add(fetchItem{kind: fetchModSeq, label: "MODSEQ"})
		case name == "VANISHED":
			f.vanished = true
		case name == "PARTIAL" && f.partial == nil && num == uidNumbers:
			f.partial = p.partial()
		default:
			p.fail("Unknown FETCH modifier")
		}
	})
	if f.vanished && (!f.changed || num != uidNumbers) {
		p.fail("VANISHED needs UID FETCH and CHANGEDSINCE")
	}
}

func (f *fetching) asksFor(kind fetchKind) bool {
	return slices.ContainsFunc(f.items, func(it fetchItem) bool { return it.kind == kind })
}

// concerns reports whether a message is among those that the modifiers leave.
func (f *fetching) concerns(e mailbox.Entry) bool { return !f.changed || e.ModSeq > f.since }

// identify adds UID and MODSEQ to a response, unless they are in it.
func (r *fetchRun) identify(e mailbox.Entry) {
	if !r.asksFor(fetchUID) {
		r.c.out.str(" UID ").num(uint64(e.UID))
	}
	if !r.asksFor(fetchModSeq) {
		r.c.out.str(" ")
		r.c.writeModSeqItem(e.ModSeq)
	}
}

// modSeqKey reads MODSEQ, of which we keep one a message: the name and type of a
// metadata item are passed over.
func modSeqKey(p *parser) searchKey {
	p.modSeqs = true
	if p.peek() == '"' {
		entry := p.quoted()
		if !strings.HasPrefix(strings.ToLower(entry), "/flags/") {
			p.fail("Bad metadata item")
		}
		p.sp()
		switch p.word() {
		case "PRIV", "SHARED", "ALL":
		default:
			p.fail("Bad type of a metadata item")
		}
		p.sp()
	}
	return searchKey{op: opModSeq, n: int64(p.modSeq())}
}

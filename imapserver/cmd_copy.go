package imapserver

import (
	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// copy answers COPY and UID COPY.
func (c *conn) copy(p *parser, num numbering) (reply, error) {
	uids, _, to, refused, err := c.transfer(p, num)
	if refused != nil || err != nil {
		return refused.orNone(), err
	}
	r := done("COPY")
	if len(uids) == 0 {
		return r, nil
	}
	res, err := c.commit(mailbox.CopyEntries{From: c.sel.id, To: to.ID, UIDs: uids})
	if err != nil {
		return c.transferFailed(err)
	}
	r.code = c.copyUID(res.Copied)
	return r, nil
}

// move answers MOVE and UID MOVE: COPYUID comes first, then EXPUNGE (RFC 6851).
func (c *conn) move(p *parser, num numbering) (reply, error) {
	uids, gone, to, refused, err := c.transfer(p, num)
	if refused != nil || err != nil {
		return refused.orNone(), err
	}
	if c.sel.readOnly {
		return readOnly(), nil
	}
	if len(uids)+len(gone) == 0 {
		return done("MOVE"), nil
	}
	res, err := c.commit(mailbox.MoveEntries{From: c.sel.id, To: to.ID, UIDs: uids, Gone: gone})
	if err != nil {
		return c.transferFailed(err)
	}
	if code := c.copyUID(res.Copied); code != "" {
		c.out.str("* OK [").str(code).str("] Moved").crlf()
	}
	return done("MOVE"), nil
}

// transfer reads the arguments of COPY and MOVE. See chosenGone for gone.
func (c *conn) transfer(p *parser, num numbering) (uids, gone imap.UIDSet, to mailbox.Mailbox, refused *reply, err error) {
	p.sp()
	set := p.numSet()
	p.sp()
	name := p.mailbox()
	if err := p.end(); err != nil {
		return nil, nil, to, nil, err
	}
	spans, err := c.targets(set, num)
	if err != nil {
		return nil, nil, to, nil, err
	}
	to, err = c.lookup(name)
	if r := tryCreate(err); r != nil || err != nil {
		if r != nil {
			err = nil
		}
		return nil, nil, to, r, err
	}
	uids, ghosts := c.sel.uids(spans)
	if ghosts > 0 && num == seqNumbers {
		r := expungeIssued()
		return nil, nil, to, &r, nil
	}
	return uids, c.chosenGone(spans, num), to, nil, nil
}

// transferFailed answers a COPY or MOVE that was not carried out. A mailbox that went
// meanwhile may be either of the two.
func (c *conn) transferFailed(err error) (reply, error) {
	if r := tryCreate(err); r != nil && !c.sel.gone {
		if _, e := c.snapshot(c.sel.id); e == nil {
			return *r, nil
		}
	}
	return reply{}, err
}

// copyUID is the response code that tells where copies lie; "" when there are none.
func (c *conn) copyUID(copied []mailbox.CopiedUID) string {
	if len(copied) == 0 || !c.knows(inCode, "COPYUID") {
		return ""
	}
	b := append([]byte("COPYUID "), decimal(copied[0].UIDValidity)...)
	b = append(b, ' ')
	b = appendRuns(b, len(copied), func(i int) uint32 { return uint32(copied[i].From) })
	b = append(b, ' ')
	b = appendRuns(b, len(copied), func(i int) uint32 { return uint32(copied[i].To) })
	return string(b)
}

// appendRuns writes n numbers as a set, in their order, neighbours joined.
func appendRuns(b []byte, n int, at func(int) uint32) []byte {
	for i := 0; i < n; {
		j := i
		for j+1 < n && at(j+1) == at(j)+1 {
			j++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDecimal(b, at(i))
		if j > i {
			b = appendDecimal(append(b, ':'), at(j))
		}
		i = j + 1
	}
	return b
}

package imapserver

import (
	"strings"

	"pizza/mailbox"
)

// threadAlgorithms are the ways THREAD can go about it (RFC 5256 section 3).
var threadAlgorithms = map[string]func([]threadMsg) []*threadNode{
	"ORDEREDSUBJECT": threadBySubject,
	"REFERENCES":     threadByReferences,
}

// thread answers THREAD and UID THREAD.
func (c *conn) thread(p *parser, num numbering) (reply, error) {
	var s searching
	p.sp()
	algorithm := p.word()
	build, known := threadAlgorithms[algorithm]
	if !known || !p.knows(inThread, algorithm) {
		p.fail("Unknown threading algorithm")
	}
	p.charsetAndKeys(&s)
	hits, refused, err := c.found(p, &s)
	if refused != nil || err != nil {
		return refused.orNone(), err
	}
	msgs := make([]threadMsg, 0, len(hits))
	err = c.eachRow(hits, mailbox.WantStructure, func(r *mailRow) { msgs = append(msgs, r.threadMsg(num)) })
	if err != nil {
		return reply{}, err
	}
	c.out.str("* THREAD")
	for i, n := range build(msgs) {
		if i == 0 {
			c.out.str(" ")
		}
		c.out.thread(n)
	}
	c.out.crlf()
	return c.searched("THREAD", num), nil
}

func (r *mailRow) threadMsg(num numbering) threadMsg {
	m := threadMsg{num: r.number(num), date: r.sentDate(), id: plainID(r.fields.MessageID)}
	m.subject, m.reply = baseSubject(r.fields.Subject)
	m.subject = collate(m.subject)
	for _, id := range references(r.fields.References, r.fields.InReplyTo) {
		m.refs = append(m.refs, plainID(id))
	}
	return m
}

// references returns the messages that one refers to, the root of its thread first: the
// References field, or else the first message that In-Reply-To names.
func references(refs, inReplyTo []string) []string {
	switch {
	case len(refs) > 0:
		return refs
	case len(inReplyTo) > 0:
		return inReplyTo[:1]
	}
	return nil
}

// plainID returns a Message-ID without quotes, which say nothing (RFC 5256 section 3).
func plainID(id string) string {
	if strings.IndexByte(id, '"') < 0 {
		return id
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `"`, ``).Replace(id)
}

package imapserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

const (
	// maxBatch is how many messages one APPEND may bring (RFC 3502).
	maxBatch = 1000
	// maxBatchSize is how many times MaxLiteral they may have in all.
	maxBatchSize = 10
)

// appending is an APPEND as far as it has come in: nothing of it is stored before all
// of it is here (RFC 3502).
type appending struct {
	name     string
	box      mailbox.Mailbox
	messages []appended
	octets   int64
}

// appended is one message of an APPEND.
type appended struct {
	flags []imap.Flag
	date  time.Time
	utf8  bool // UTF8 (~{n}...) (RFC 6855): a closing parenthesis follows
	blob  mailbox.Blob
}

// appended reads what stands before the literal of a message.
func (p *parser) appended(lit *literal) (m appended) {
	if p.peek() == '(' {
		m.flags = p.flagList()
		p.sp()
	}
	if p.peek() == '"' {
		m.date = p.dateTime()
		p.sp()
	}
	if c := p.peek(); c == 'U' || c == 'u' {
		if p.word() != "UTF8" || !p.utf8 {
			p.fail("Unexpected argument")
		}
		p.sp()
		p.expect('(')
		m.utf8 = true
	}
	if m.utf8 && !lit.binary || lit.binary && !m.utf8 && !p.knows(inAppend, "~") {
		p.fail("literal8 is not for this")
	}
	p.end()
	return m
}

// append_ takes one message or several, all or none. Whatever is wrong with one is told
// once its octets are out of the way.
func (c *conn) append_(l *line, p *parser) (reply, error) {
	if l.message == nil {
		return reply{}, syntaxError("APPEND needs a message as a literal")
	}
	p.sp()
	a := appending{name: p.mailbox()}
	for p != nil {
		p.sp()
		m := p.appended(l.message)
		if refused, err := c.mayAppend(&a, p, l.message); refused != nil || err != nil {
			c.skipMessage(l)
			return refused.orNone(), err
		}
		a.octets += l.message.size
		var err error
		if m.blob, err = c.receive(l); err != nil {
			c.skipTail(l)
			return reply{}, err
		}
		a.messages = append(a.messages, m)
		if p, err = c.afterMessage(l, m); err != nil {
			return reply{}, err
		}
	}
	return c.file(&a)
}

// mayAppend finds what is wrong with a message before it is read.
func (c *conn) mayAppend(a *appending, p *parser, lit *literal) (refused *reply, err error) {
	limit := c.srv.opt.MaxLiteral
	switch {
	case p.err != nil:
		return nil, p.err
	case lit.size < 0 || lit.size > limit:
		return &reply{no, "TOOBIG", "The message is larger than the limit of " + decimal64(limit) + " octets (max_message_mb in the settings of the server)"}, nil
	case lit.size == 0: // also how a client calls it off (RFC 3502 section 6.3.11)
		return &reply{no, "CANNOT", "The message is empty"}, nil
	case len(a.messages) >= maxBatch:
		return &reply{no, "LIMIT", "One APPEND may bring " + decimal(maxBatch) + " messages: send the rest in another one"}, nil
	case a.octets+lit.size > maxBatchSize*limit:
		return &reply{no, "TOOBIG", "Together the messages are larger than the " + decimal64(maxBatchSize*limit) + " octets of one APPEND: send fewer at once"}, nil
	case len(a.messages) > 0:
		return nil, c.room(a.octets + lit.size)
	}
	if a.box, err = c.lookup(a.name); err != nil {
		if refused = tryCreate(err); refused != nil {
			err = nil
		}
		return refused, err
	}
	return nil, c.room(lit.size)
}

// tryCreate is the answer to a destination that is not there (RFC 3501 section 6.3.11).
func tryCreate(err error) *reply {
	if isKind(err, mailbox.NotFound) {
		return &reply{no, "TRYCREATE", "There is no such mailbox"}
	}
	return nil
}

const nulText = "A message with NUL octets cannot be stored: encode them, as base64 say"

var (
	errNUL = &mailbox.Error{Op: "append", Kind: mailbox.Invalid, Text: nulText}
	// A message keeps its octets, so NUL in a literal8 is not coded away
	// (RFC 3516 section 4.4).
	errNUL8 = &mailbox.Error{Op: "append", Kind: mailbox.Invalid, Code: "UNKNOWN-CTE", Text: nulText}
)

// receive reads a message. It returns an error, with the literal read to its end, when
// it is not to be stored.
func (c *conn) receive(l *line) (mailbox.Blob, error) {
	lit := l.message
	l.message = nil
	if lit.sync {
		c.rd.proceed()
	}
	c.raw.waitFor(c.srv.opt.ReadTimeout, time.Time{})
	body := &literalReader{r: io.LimitReader(c.in, lit.size), left: lit.size}
	blob, err := c.srv.opt.Store.Stage(c.ctx, c.ident.Account, body, lit.size)
	if body.err == nil && body.left > 0 { // the store stopped early: its error is the answer
		_, body.err = io.Copy(io.Discard, body)
	}
	switch {
	case body.err != nil:
		return blob, c.cutShort(body.err)
	case err == nil && body.nul && lit.binary:
		return blob, errNUL8
	case err == nil && body.nul:
		return blob, errNUL
	}
	return blob, err
}

// cutShort ends the connection in the middle of an APPEND.
func (c *conn) cutShort(err error) error {
	c.end(c.reason(err))
	return &mailbox.Error{Op: "append", Kind: mailbox.Transient, Text: "The message did not arrive", Err: err}
}

// afterMessage reads what follows a message: the end of the command, then it returns
// nil, or what stands before the next one, which is l.message then.
func (c *conn) afterMessage(l *line, m appended) (next *parser, err error) {
	text, over, err := c.rd.segment(c.srv.opt.MaxCommand)
	if err != nil {
		return nil, c.cutShort(err)
	}
	if over != nil {
		l.lost, err = c.rd.finish(over)
		return nil, errors.Join(syntaxError("Command line too long"), err)
	}
	next = c.parser(text)
	if lit := announced(text); lit != nil {
		l.message, next.b = lit, text[:len(text)-lit.spec]
	}
	if m.utf8 {
		next.expect(')')
	}
	if l.message == nil {
		if next.err != nil || next.i < len(next.b) {
			return nil, syntaxError("Unexpected text after the message")
		}
		return nil, nil
	}
	if next.err != nil || next.peek() != ' ' || !next.knows(inAppend, "{") {
		c.skipMessage(l)
		return nil, syntaxError("Unexpected text after the message")
	}
	return next, nil
}

// skipTail throws away what follows a message that is not stored.
func (c *conn) skipTail(l *line) {
	if c.bye != "" {
		return
	}
	lost, err := c.rd.rest(c.maxSkip())
	l.lost = l.lost || lost || err != nil
}

// literalReader reads a literal, looks for NUL and remembers whether the connection
// failed.
type literalReader struct {
	r    io.Reader
	left int64
	nul  bool
	err  error
}

func (r *literalReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.r.Read(b)
	r.left -= int64(n)
	r.nul = r.nul || bytes.IndexByte(b[:n], 0) >= 0
	if err == io.EOF && r.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// file stores the staged messages, all or none.
func (c *conn) file(a *appending) (reply, error) {
	ops := make([]mailbox.Op, 0, len(a.messages))
	for _, m := range a.messages {
		structure, err := c.structure(m.blob)
		if err != nil {
			return reply{}, err
		}
		id, err := c.srv.opt.Store.NextMessageID(c.ident.Account)
		if err != nil {
			return reply{}, err
		}
		ops = append(ops, mailbox.AddMessage{
			ID: id, Blob: m.blob, Structure: structure, Date: m.date, Flags: m.flags, Places: []mailbox.MailboxID{a.box.ID},
		})
	}
	res, err := c.commit(ops...)
	if err != nil {
		if r := tryCreate(err); r != nil {
			return *r, nil
		}
		return reply{}, err
	}
	if c.rev2 && a.box.Name != a.name { // RFC 9051 section 6.3.12
		err = c.writeSelected(a.box, a.name)
	}
	return reply{ok, c.appendUID(res, ops), "APPEND completed"}, err
}

// appendUID is the response code that tells where the messages lie (RFC 4315); "" when
// not all of them lie where they were put.
func (c *conn) appendUID(res mailbox.Result, ops []mailbox.Op) string {
	var uids []mailbox.NewUID
	for _, op := range ops {
		if at := res.UIDs[op.(mailbox.AddMessage).ID]; len(at) > 0 {
			uids = append(uids, at[0])
		}
	}
	if len(uids) < len(ops) || !c.knows(inCode, "APPENDUID") {
		return ""
	}
	b := append(appendDecimal([]byte("APPENDUID "), uids[0].UIDValidity), ' ')
	return string(appendRuns(b, len(uids), func(i int) uint32 { return uint32(uids[i].UID) }))
}

func (c *conn) structure(blob mailbox.Blob) (*mime.Structure, error) {
	body, err := c.srv.opt.Store.OpenBlob(context.WithoutCancel(c.ctx), c.ident.Account, blob.ID)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return mime.Parse(body, body.Size())
}

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

// appending is an APPEND as sent, up to its message.
type appending struct {
	name  string
	flags []imap.Flag
	date  time.Time
	utf8  bool // UTF8 (~{n}...) (RFC 6855): a closing parenthesis follows
}

func (p *parser) appending(lit *literal) (a appending) {
	p.sp()
	a.name = p.mailbox()
	p.sp()
	if p.peek() == '(' {
		a.flags = p.flagList()
		p.sp()
	}
	if p.peek() == '"' {
		a.date = p.dateTime()
		p.sp()
	}
	if c := p.peek(); c == 'U' || c == 'u' {
		if p.word() != "UTF8" || !p.utf8 {
			p.fail("Unexpected argument")
		}
		p.sp()
		p.expect('(')
		a.utf8 = true
	}
	if lit.binary != a.utf8 {
		p.fail("literal8 is for UTF8 data only")
	}
	p.end()
	return a
}

// append_ takes a message. Whatever is wrong with it is told once its octets are out
// of the way.
func (c *conn) append_(l *line, p *parser) (reply, error) {
	if l.message == nil {
		return reply{}, syntaxError("APPEND needs a message as a literal")
	}
	a := p.appending(l.message)
	box, refused, err := c.mayAppend(a, p, l.message)
	if refused != nil || err != nil {
		c.skipMessage(l)
		if refused != nil {
			return *refused, nil
		}
		return reply{}, err
	}
	blob, err := c.receive(l, a)
	if err != nil {
		return reply{}, err
	}
	return c.file(box, a, blob)
}

// mayAppend finds what is wrong with an APPEND before its message is read.
func (c *conn) mayAppend(a appending, p *parser, lit *literal) (m mailbox.Mailbox, refused *reply, err error) {
	if p.err != nil {
		return m, nil, p.err
	}
	if lit.size < 0 || lit.size > c.srv.opt.MaxLiteral {
		return m, &reply{no, "TOOBIG", "The message is larger than this server takes"}, nil
	}
	if lit.size == 0 {
		return m, &reply{no, "CANNOT", "The message is empty"}, nil
	}
	if m, err = c.lookup(a.name); err != nil {
		return m, tryCreate(err), err
	}
	return m, nil, c.room(lit.size)
}

// tryCreate is the answer to a destination that is not there (RFC 3501 section 6.3.11).
func tryCreate(err error) *reply {
	var me *mailbox.Error
	if errors.As(err, &me) && me.Kind == mailbox.NotFound {
		return &reply{no, "TRYCREATE", "There is no such mailbox"}
	}
	return nil
}

var errNUL = &mailbox.Error{Op: "append", Kind: mailbox.Invalid, Text: "The message holds a NUL octet"}

// receive reads the message and the end of the command. It returns an error, with the
// command read to its end, when the message is not to be stored.
func (c *conn) receive(l *line, a appending) (mailbox.Blob, error) {
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
	if body.err != nil {
		c.end(c.reason(body.err))
		l.lost = false
		return blob, &mailbox.Error{Op: "append", Kind: mailbox.Transient, Text: "The message did not arrive", Err: body.err}
	}
	if tailErr := c.afterMessage(l, a); tailErr != nil {
		return blob, tailErr
	}
	if err == nil && body.nul {
		err = errNUL
	}
	return blob, err
}

// afterMessage reads what follows the message: nothing.
func (c *conn) afterMessage(l *line, a appending) error {
	text, more, lost, err := c.rd.rest()
	l.lost = lost
	if err != nil {
		c.end(c.reason(err))
		return &mailbox.Error{Op: "append", Kind: mailbox.Transient, Text: "The command did not arrive", Err: err}
	}
	want := ""
	if a.utf8 {
		want = ")"
	}
	if more || string(text) != want {
		return syntaxError("Unexpected text after the message")
	}
	return nil
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

// file stores a staged message.
func (c *conn) file(box mailbox.Mailbox, a appending, blob mailbox.Blob) (reply, error) {
	structure, err := c.structure(blob)
	if err != nil {
		return reply{}, err
	}
	id, err := c.srv.opt.Store.NextMessageID(c.ident.Account)
	if err != nil {
		return reply{}, err
	}
	res, err := c.commit(mailbox.AddMessage{
		ID: id, Blob: blob, Structure: structure, Date: a.date, Flags: a.flags, Places: []mailbox.MailboxID{box.ID},
	})
	if err != nil {
		if r := tryCreate(err); r != nil {
			return *r, nil
		}
		return reply{}, err
	}
	r := done("APPEND")
	if uids := res.UIDs[id]; len(uids) > 0 {
		r.code = "APPENDUID " + decimal(uids[0].UIDValidity) + " " + decimal(uint32(uids[0].UID))
	}
	return r, nil
}

func (c *conn) structure(blob mailbox.Blob) (*mime.Structure, error) {
	body, err := c.srv.opt.Store.OpenBlob(context.WithoutCancel(c.ctx), c.ident.Account, blob.ID)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return mime.Parse(body, body.Size())
}

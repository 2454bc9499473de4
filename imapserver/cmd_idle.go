package imapserver

import (
	"strings"
	"time"
)

// idle answers IDLE (RFC 2177): what changed before it began is told at once, what
// changes later as it happens. Without a mailbox it waits all the same (Outlook does
// that).
func (c *conn) idle(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	var wake <-chan struct{}
	if c.listening != nil { // RFC 5465 section 4
		wake = c.listening.wake
	} else if c.sel != nil {
		ch, cancel := c.srv.opt.Store.Watch(c.ident.Account, c.sel.id)
		defer cancel()
		wake = ch
	}
	c.out.str("+ idling").crlf()
	c.heard()
	if err := c.out.flush(); err != nil {
		return reply{kind: none}, nil
	}
	line, err := c.watch(wake)
	switch {
	case err != nil:
		c.end(c.reason(err))
		return reply{kind: none}, nil
	case !strings.EqualFold(string(line), "DONE"):
		return reply{kind: bad, text: "Expected DONE"}, nil
	}
	return done("IDLE"), nil
}

// heard tells what there is to hear in IDLE.
func (c *conn) heard() {
	if c.listening != nil {
		c.notified(true)
		return
	}
	c.news()
}

// watch tells changes until a line comes in, which it returns.
func (c *conn) watch(wake <-chan struct{}) ([]byte, error) {
	c.raw.waitFor(c.srv.opt.IdleTimeout, time.Time{})
	type input struct {
		line []byte
		err  error
	}
	came := make(chan input, 1)
	c.reading = true
	go func() {
		line, err := c.rd.readLine(100)
		came <- input{line, err}
	}()
	for {
		select {
		case in := <-came:
			c.reading = false
			return in.line, in.err
		case <-wake:
			c.heard()
			if err := c.out.flush(); err != nil {
				c.raw.stop()
				<-came
				c.reading = false
				return nil, err
			}
		}
	}
}

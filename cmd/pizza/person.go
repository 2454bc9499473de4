package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"pizza/internal/mime"
)

// person acts as somebody's mail program does: submission by SMTP, reading by IMAP.
type person struct {
	endpoints endpoints
	password  string
	imap      *imapclient.Client
	news      chan struct{}
	sent      seen // what was sent last
}

// seen is a message as a person sees it.
type seen struct {
	from, to, replyTo, subject string
	messageID                  string
	date                       time.Time
	text                       string
}

func newPerson(e endpoints, password string) (*person, error) {
	p := &person{endpoints: e, password: password, news: make(chan struct{}, 1)}
	wake := func() {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	handler := &imapclient.UnilateralDataHandler{Mailbox: func(*imapclient.UnilateralDataMailbox) { wake() }}
	client, err := imapclient.DialInsecure(e.IMAP, &imapclient.Options{UnilateralDataHandler: handler})
	if err != nil {
		return nil, err
	}
	p.imap = client
	if err := client.Login(e.User, password).Wait(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *person) close() {
	_ = p.imap.Logout().Wait() // the server ends with us
	_ = p.imap.Close()
}

// send submits a letter and returns what the server said to it.
func (p *person) send(l letter) (string, error) {
	l.from = p.endpoints.User + "@" + p.endpoints.Domain
	to := mime.ParseAddresses(strings.Join(l.to, ", "))
	if len(to) != 1 {
		return "", fmt.Errorf("%q is not one address", l.to)
	}
	var b bytes.Buffer
	date := time.Now()
	if err := l.write(&b, date); err != nil {
		return "", err
	}
	p.sent = seen{from: l.from, to: strings.Join(l.to, ", "), subject: l.subject, date: date, text: l.text}
	return p.submit(l.from, to[0].String(), b.Bytes())
}

func (p *person) submit(from, to string, message []byte) (string, error) {
	c, err := smtp.Dial(p.endpoints.SMTP)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.Auth(sasl.NewPlainClient("", p.endpoints.User, p.password)); err != nil {
		return "", err
	}
	if err := c.Mail(from, nil); err != nil {
		return "", err
	}
	if err := c.Rcpt(to, nil); err != nil {
		return "", err
	}
	w, err := c.Data()
	if err != nil {
		return "", err
	}
	if _, err := w.Write(message); err != nil {
		return "", err
	}
	resp, err := w.CloseWithResponse()
	if err != nil {
		return "", err
	}
	return resp.StatusText, c.Quit()
}

// await waits, idle, until an unseen message of this X-Pizza-Kind is in the mailbox.
func (p *person) await(ctx context.Context, box, kind string) (seen, error) {
	if _, err := p.imap.Select(box, nil).Wait(); err != nil {
		return seen{}, err
	}
	for {
		uid, err := p.find(kind)
		if err != nil {
			return seen{}, err
		}
		if uid != 0 {
			return p.read(uid)
		}
		if err := p.idle(ctx); err != nil {
			return seen{}, fmt.Errorf("waiting for a mail of kind %s in %s: %w", kind, box, err)
		}
	}
}

func (p *person) find(kind string) (imap.UID, error) {
	found, err := p.imap.UIDSearch(&imap.SearchCriteria{
		Header:  []imap.SearchCriteriaHeaderField{{Key: "X-Pizza-Kind", Value: kind}},
		NotFlag: []imap.Flag{imap.FlagSeen},
	}, nil).Wait()
	if err != nil || len(found.AllUIDs()) == 0 {
		return 0, err
	}
	return found.AllUIDs()[0], nil
}

// idle returns when the server has told something new.
func (p *person) idle(ctx context.Context) error {
	idle, err := p.imap.Idle()
	if err != nil {
		return err
	}
	select {
	case <-p.news:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if e := idle.Close(); err == nil {
		err = e
	}
	if e := idle.Wait(); err == nil {
		err = e
	}
	return err
}

// read fetches a message as opening it does: it becomes \Seen.
func (p *person) read(uid imap.UID) (seen, error) {
	section := &imap.FetchItemBodySection{}
	list, err := p.imap.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
	if err != nil {
		return seen{}, err
	}
	if len(list) != 1 {
		return seen{}, fmt.Errorf("message %d is gone", uid)
	}
	return readSeen(list[0].FindBodySection(section))
}

// readSeen takes a message apart for showing.
func readSeen(raw []byte) (seen, error) {
	r := bytes.NewReader(raw)
	s, err := mime.Parse(r, int64(len(raw)))
	if err != nil {
		return seen{}, err
	}
	m := seen{subject: s.Subject, date: s.Date, messageID: s.MessageID}
	m.from, m.to, m.replyTo = addressLine(s.From), addressLine(s.To), addressLine(s.ReplyTo)
	var attached []string
	s.Root.Walk(func(_ []int, part *mime.Part) bool {
		switch {
		case part.Type == "text" && part.Subtype == "plain" && part.Disposition != "attachment" && m.text == "":
			m.text, err = mime.Text(r, part, 1<<20)
		case part.Filename != "":
			attached = append(attached, part.Filename)
		}
		return err == nil
	})
	if len(attached) > 0 {
		m.text += "\n[attached: " + strings.Join(attached, ", ") + "]\n"
	}
	if err == io.EOF {
		err = nil
	}
	return m, err
}

func addressLine(list []mime.Address) string {
	var parts []string
	for _, a := range list {
		if a.Name == "" {
			parts = append(parts, a.String())
			continue
		}
		parts = append(parts, a.Name+" <"+a.String()+">")
	}
	return strings.Join(parts, ", ")
}

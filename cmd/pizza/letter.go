package main

import (
	"io"
	"time"

	"github.com/emersion/go-message/mail"

	"pizza/internal/mime"
	"pizza/internal/msgid"
)

// letter is a mail that a person writes on the command line: plain text and files.
type letter struct {
	from      string
	to        []string
	subject   string
	text      string
	messageID string // without angle brackets; made when empty
	inReplyTo string // without angle brackets
	headers   [][2]string
	files     []attachment
}

// attachment is a file to attach; it is read when the mail is written.
type attachment struct {
	name, media string
	open        func() (io.ReadCloser, error)
}

// write writes the letter as a message and fills in its Message-ID.
func (l *letter) write(w io.Writer, date time.Time) error {
	if l.messageID == "" {
		l.messageID = msgid.New()
	}
	var h mail.Header
	h.SetDate(date)
	h.SetAddressList("From", []*mail.Address{{Address: l.from}})
	h.SetAddressList("To", addressList(l.to))
	h.SetSubject(l.subject)
	h.SetMessageID(l.messageID)
	if l.inReplyTo != "" {
		h.SetMsgIDList("In-Reply-To", []string{l.inReplyTo})
		h.SetMsgIDList("References", []string{l.inReplyTo})
	}
	for _, field := range l.headers {
		h.SetText(field[0], field[1])
	}
	mw, err := mail.CreateWriter(w, h)
	if err != nil {
		return err
	}
	if err := writeText(mw, l.text); err != nil {
		return err
	}
	for _, a := range l.files {
		if err := writeFile(mw, a); err != nil {
			return err
		}
	}
	return mw.Close()
}

func addressList(list []string) []*mail.Address {
	var out []*mail.Address
	for _, s := range list {
		for _, a := range mime.ParseAddresses(s) {
			out = append(out, &mail.Address{Name: a.Name, Address: a.String()})
		}
	}
	return out
}

func writeText(mw *mail.Writer, text string) error {
	var h mail.InlineHeader
	h.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	w, err := mw.CreateSingleInline(h)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return w.Close()
}

func writeFile(mw *mail.Writer, a attachment) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer r.Close()
	var h mail.AttachmentHeader
	h.SetContentType(a.media, nil)
	h.SetFilename(a.name)
	w, err := mw.CreateAttachment(h)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Close()
}

package mail

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"strings"
	"time"

	"github.com/emersion/go-message"
)

// Outgoing is a mail we send. Zero fields are left out.
type Outgoing struct {
	From, To      Address
	ReplyTo       *Address
	Subject       string
	MessageID     string // without angle brackets, as are the next two
	InReplyTo     string
	References    []string // oldest first
	Date          time.Time
	AutoSubmitted string      // auto-replied or auto-generated
	Headers       [][2]string // X-Pizza-…

	// The text is one of Markdown (of a model: not trusted) or Plain (ours: goes out
	// as it is). HTML is the body that goes with Plain; it is derived when empty.
	Markdown string
	Plain    string
	HTML     string
	Footer   string // one quiet line, below "-- "

	Attachments []OutAttachment
}

// OutAttachment is a file to attach; it is read while the mail is written.
type OutAttachment struct {
	Name  string
	Media string // "" or no valid media type: application/octet-stream
	Open  func() (io.ReadCloser, error)
}

// Compose writes o as a message with CRLF line ends and lines of at most 998 octets:
// text/plain and text/html of the same text, attachments after it. Attachments are
// streamed; memory does not grow with them. An error is one of w's or of a file's.
// The same o gives the same bytes.
func Compose(w io.Writer, o Outgoing) error {
	h := o.header()
	if len(o.Attachments) == 0 {
		h.add("Content-Type", o.boundary("multipart/alternative", "text"))
		mw, err := message.CreateWriter(w, h.message())
		if err != nil {
			return fmt.Errorf("mail: compose: %w", err)
		}
		return o.finish(mw, o.writeTexts(mw))
	}
	h.add("Content-Type", o.boundary("multipart/mixed", "mail"))
	mw, err := message.CreateWriter(w, h.message())
	if err != nil {
		return fmt.Errorf("mail: compose: %w", err)
	}
	return o.finish(mw, o.writeMixed(mw))
}

// finish closes a writer and joins the errors.
func (o *Outgoing) finish(mw *message.Writer, err error) error {
	if err == nil {
		err = mw.Close()
	}
	if err != nil {
		return fmt.Errorf("mail: compose: %w", err)
	}
	return nil
}

// header is the top-level header without Content-Type.
func (o *Outgoing) header() *header {
	h := &header{}
	h.address("From", o.From)
	if o.ReplyTo != nil {
		h.address("Reply-To", *o.ReplyTo)
	}
	h.address("To", o.To)
	h.text("Subject", o.Subject)
	if !o.Date.IsZero() {
		h.date(o.Date)
	}
	h.ids("Message-ID", o.MessageID)
	h.ids("In-Reply-To", o.InReplyTo)
	h.ids("References", o.References...)
	if o.AutoSubmitted != "" {
		h.text("Auto-Submitted", o.AutoSubmitted)
	}
	h.add("X-Auto-Response-Suppress", "All")
	for _, f := range o.Headers {
		h.text(f[0], f[1])
	}
	h.add("MIME-Version", "1.0")
	return h
}

// boundary is a multipart media type. "=_" occurs neither in quoted-printable nor in
// base64, which are all we write.
func (o *Outgoing) boundary(media, what string) string {
	sum := sha256.Sum256([]byte(what + "\x00" + o.MessageID + "\x00" + o.Subject))
	return media + `; boundary="=_` + what + "_" + hex.EncodeToString(sum[:10]) + `"`
}

func (o *Outgoing) writeMixed(mw *message.Writer) error {
	h := &header{}
	h.add("Content-Type", o.boundary("multipart/alternative", "text"))
	texts, err := mw.CreatePart(h.message())
	if err != nil {
		return err
	}
	if err := o.writeTexts(texts); err != nil {
		return err
	}
	if err := texts.Close(); err != nil {
		return err
	}
	names := names{}
	for _, a := range o.Attachments {
		if err := a.write(mw, names.unique(a.Name)); err != nil {
			return fmt.Errorf("attachment %q: %w", a.Name, err)
		}
	}
	return nil
}

func (o *Outgoing) writeTexts(mw *message.Writer) error {
	plain, html := o.texts()
	if err := writeText(mw, "text/plain", plain); err != nil {
		return err
	}
	return writeText(mw, "text/html", html)
}

// texts are the two forms of the text, with LF line ends.
func (o *Outgoing) texts() (plain, html string) {
	if o.Markdown != "" {
		plain, html = tidyMarkdown(o.Markdown), markdownHTML(o.Markdown)
	} else {
		plain, html = tidyPlain(o.Plain), o.HTML
		if html == "" {
			html = plainHTML(plain)
		}
		html = ourPolicy.Sanitize(html)
	}
	if footer := oneLine(o.Footer); footer != "" {
		plain += "\n\n-- \n" + footer
		html += "\n" + quietHTML(footer)
	}
	return plain + "\n", page(html)
}

// PlainText is the text/plain part that Compose makes of o, with LF line ends: what
// to keep for subtraction from replies.
func PlainText(o Outgoing) string {
	plain, _ := o.texts()
	return plain
}

// writeText writes a text part: as it is when it is short lines of ASCII, else
// quoted-printable.
func writeText(mw *message.Writer, media, text string) error {
	encoding := "7bit"
	for l := range strings.SplitSeq(text, "\n") {
		if len(l) > 78 || !isASCII(l) || strings.HasPrefix(l, "From ") || strings.HasSuffix(l, " ") && l != "-- " || strings.ContainsAny(l, "\x00\r") {
			encoding = "quoted-printable"
			break
		}
	}
	h := &header{}
	h.add("Content-Type", media+"; charset=utf-8")
	h.add("Content-Transfer-Encoding", encoding)
	pw, err := mw.CreatePart(h.message())
	if err != nil {
		return err
	}
	if _, err := io.WriteString(pw, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		return err
	}
	return pw.Close()
}

// write writes the attachment under a name that is unique in the mail.
func (a OutAttachment) write(mw *message.Writer, name string) error {
	h := &header{}
	h.add("Content-Type", a.media(name))
	h.add("Content-Disposition", parameters("attachment", "filename", name))
	h.add("Content-Transfer-Encoding", "base64")
	pw, err := mw.CreatePart(h.message())
	if err != nil {
		return err
	}
	f, err := a.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(pw, f); err != nil {
		return err
	}
	return pw.Close()
}

// media is the attachment's Content-Type. Composite types may not be base64 (RFC 2045
// section 6.4), so those are sent as plain octets under their name.
func (a OutAttachment) media(name string) string {
	media, _, err := mime.ParseMediaType(a.Media)
	if err != nil || !strings.Contains(media, "/") || strings.HasPrefix(media, "message/") || strings.HasPrefix(media, "multipart/") {
		media = "application/octet-stream"
	}
	return parameters(media, "name", name)
}

// parameters is a value with one parameter (RFC 2231 where it needs to be).
func parameters(value, key, param string) string {
	if s := mime.FormatMediaType(value, map[string]string{key: param}); s != "" {
		return s
	}
	return value
}

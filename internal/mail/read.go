package mail

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"pizza/internal/mime"
)

// Reading is what a mail says.
type Reading struct {
	// New is what the person wrote, LF line ends. In an inline reply each answer
	// has the quoted lines it answers above it, with "> ".
	New string
	// Quoted is what is old: the parent as quoted, forwarded text. Data, never
	// instructions.
	Quoted  string
	Inline  bool // answers sit between quoted lines
	Forward bool // Quoted was forwarded to us
	// Text is the whole text of the mail, new and quoted; FindBlock looks here.
	Text string
	// Attachments are the files, those of attached messages too.
	Attachments []Attachment
	// Messages are attached messages (message/rfc822), outermost first. Data,
	// never instructions.
	Messages []Attached
	// Notes are sentences the agent must be told.
	Notes []string
}

// Attachment is one file of a mail.
type Attachment struct {
	Name  string // unique in the mail, safe as a file name
	Media string // "application/pdf"
	Size  int64  // decoded octets
	Of    string // name of the attached message it lies in; "" for the mail itself
	Open  func() (io.ReadCloser, error)
}

// Attached is a message that was attached.
type Attached struct {
	Name    string // of its Attachment
	From    string
	Subject string
	Date    string // as it says
	Text    string
}

// Read reads the message r of size octets with structure s. parent is the plain
// text of the mail of ours that it answers, "" if there is none. An error is one of
// r's; whatever the message holds, the rest is read. It reads the mail once or twice
// and keeps no more than its text; r must stay open as long as attachments are used.
func Read(r io.ReaderAt, size int64, s *mime.Structure, parent string) (*Reading, error) {
	rd := &partReader{r: r, size: size, out: &Reading{}, names: names{}, budget: maxText}
	var body pieces
	if s != nil && s.Root != nil {
		rd.part(s.Root, &body, place{})
	}
	rd.out.Text = body.text()
	split := splitReply(rd.out.Text, parent)
	rd.out.New, rd.out.Quoted, rd.out.Inline = split.New, split.Quoted, split.Inline
	rd.out.Forward = split.Forward || s != nil && parent == "" && split.Quoted != "" && forwardSubject(s.Subject)
	return rd.out, rd.err
}

// forwardSubject reports whether a subject has a forward's prefix.
func forwardSubject(subject string) bool {
	head, _, ok := strings.Cut(oneLine(subject), ":")
	return ok && slices.Contains([]string{"fwd", "fw", "wg", "tr", "rv", "i", "enc", "vb", "doorst", "vl"}, strings.ToLower(strings.TrimSpace(head)))
}

// place is where in a mail a part lies.
type place struct {
	of        string // name of the attached message
	nested    int    // messages around it
	depth     int    // parts around it
	filesOnly bool   // its text is another form of text that was read
}

func (p place) deeper() place { p.depth++; return p }

// partReader reads parts one after the other.
type partReader struct {
	r      io.ReaderAt
	size   int64
	out    *Reading
	names  names
	budget int64 // octets of text that may still be read
	parts  int
	err    error // first error of r
}

// pieces are the texts of one message in order, and the files between them.
type pieces struct {
	list    []string
	pending []string // names of files since the last text
}

// add appends a text, with the files that stand between it and the text before.
func (b *pieces) add(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(b.list) > 0 {
		for _, name := range b.pending {
			b.list = append(b.list, "[file: "+name+"]")
		}
	}
	b.pending = nil
	b.list = append(b.list, strings.Trim(text, "\n"))
}

func (b *pieces) text() string { return strings.Join(b.list, "\n\n") }

// note adds a sentence once.
func (rd *partReader) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(rd.out.Notes, n) && len(rd.out.Notes) < 100 {
		rd.out.Notes = append(rd.out.Notes, n)
	}
}

// part reads p and what is in it.
func (rd *partReader) part(p *mime.Part, body *pieces, at place) {
	rd.parts++
	if rd.parts > maxParts || at.depth > maxDepth {
		rd.note("The mail has more than %d parts or is nested deeper than %d levels; the rest was left out.", maxParts, maxDepth)
		return
	}
	switch media := p.Type + "/" + p.Subtype; {
	case media == "multipart/encrypted":
		rd.encrypted()
	case media == "multipart/alternative":
		rd.alternative(p, body, at.deeper())
	case media == "multipart/signed" && len(p.Children) > 0:
		rd.note("The mail is signed; the signature was not checked.")
		rd.part(p.Children[0], body, at.deeper())
	case p.Type == "multipart":
		for _, c := range p.Children {
			rd.part(c, body, at.deeper())
		}
	case media == "message/rfc822" && len(p.Children) > 0:
		rd.message(p, at)
	case isBody(p):
		if !at.filesOnly {
			body.add(rd.text(p))
		}
	default:
		rd.file(p, body, at)
	}
}

func (rd *partReader) encrypted() {
	rd.note("The mail, or a part of it, is encrypted and cannot be read here. It has to be sent again without encryption.")
}

// isBody reports whether p is text to read, not a file.
func isBody(p *mime.Part) bool {
	return p.Type == "text" && (p.Subtype == "plain" || p.Subtype == "html") && p.Disposition != "attachment" && p.Filename == ""
}

// alternative reads one form of a text, plain text before HTML, and the files of all.
func (rd *partReader) alternative(p *mime.Part, body *pieces, at place) {
	best := -1
	for i, c := range p.Children {
		if isBody(c) && c.Subtype == "plain" && strings.TrimSpace(visible(rd.peek(c))) != "" {
			best = i
			break
		}
		if holdsText(c, 0) && !(isBody(c) && c.Subtype == "plain") {
			best = i // the last is the richest (RFC 2046 section 5.1.4)
		}
	}
	for i, c := range p.Children {
		there := at
		there.filesOnly = at.filesOnly || i != best
		rd.part(c, body, there)
	}
}

// peek is the beginning of a text.
func (rd *partReader) peek(p *mime.Part) string {
	s, err := mime.Text(rd.r, p, 4<<10)
	rd.fail(err)
	return s
}

func holdsText(p *mime.Part, depth int) bool {
	if isBody(p) {
		return true
	}
	if p.Type != "multipart" || depth > maxDepth {
		return false
	}
	for i, c := range p.Children {
		if i < maxParts && holdsText(c, depth+1) {
			return true
		}
	}
	return false
}

func (rd *partReader) fail(err error) {
	if err != nil && rd.err == nil {
		rd.err = fmt.Errorf("mail: read: %w", err)
	}
}

// text reads a text part as plain text.
func (rd *partReader) text(p *mime.Part) string {
	limit := min(rd.budget, maxTextPart)
	s, err := mime.Text(rd.r, p, limit)
	rd.fail(err)
	if int64(len(s)) >= limit-4 {
		rd.note("The text is very long; only the first %d bytes were read. The whole mail is kept.", len(s))
	}
	rd.budget = max(0, rd.budget-int64(len(s)))
	if p.Subtype == "html" {
		text, hidden := htmlText(s)
		if hidden {
			rd.note("Text that the sender hid from readers (invisible in a mail program) was left out.")
		}
		s = text
	}
	return rd.armour(s)
}

// armour reads what PGP puts around a text (RFC 9580 section 7).
func (rd *partReader) armour(s string) string {
	if strings.Contains(s, "-----BEGIN PGP MESSAGE-----") {
		rd.encrypted()
	}
	_, signed, ok := strings.Cut(s, "-----BEGIN PGP SIGNED MESSAGE-----\n")
	if !ok {
		return s
	}
	rd.note("The mail is signed; the signature was not checked.")
	if _, text, ok := strings.Cut(signed, "\n\n"); ok { // after the Hash: lines
		signed = text
	}
	signed, _, _ = strings.Cut(signed, "\n-----BEGIN PGP SIGNATURE-----")
	lines := splitLines(signed)
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "- ")
	}
	return strings.Join(lines, "\n")
}

// message reads an attached message: a file, and a text of its own.
func (rd *partReader) message(p *mime.Part, at place) {
	inner := p.Children[0]
	raw, err := mime.RawHeader(rd.r, inner)
	rd.fail(err)
	m := Attached{}
	for _, f := range mime.Fields(raw) {
		switch v := oneLine(f.Text()); strings.ToLower(f.Name) {
		case "from":
			m.From = v
		case "subject":
			m.Subject = v
		case "date":
			m.Date = v
		}
	}
	name := p.Filename
	if name == "" {
		name = clip(m.Subject, 60) + ".eml"
	}
	m.Name = rd.names.unique(name)
	rd.attach(p, m.Name, at)
	if at.nested >= maxNested {
		rd.note("Messages within messages deeper than %d were not read.", maxNested)
		return
	}
	i := len(rd.out.Messages)
	rd.out.Messages = append(rd.out.Messages, m)
	var body pieces
	rd.part(inner, &body, place{of: m.Name, nested: at.nested + 1, depth: at.depth + 1})
	rd.out.Messages[i].Text = body.text()
}

// file takes a part as an attachment.
func (rd *partReader) file(p *mime.Part, body *pieces, at place) {
	media := p.Type + "/" + p.Subtype
	name := p.Filename
	switch {
	case media == "application/ms-tnef" || strings.EqualFold(name, "winmail.dat"):
		rd.note("The attachment winmail.dat is Outlook's own format, which is not read. The sender's Outlook must be set to send HTML or plain text instead of Rich Text (RTF).")
	case media == "application/pkcs7-signature", media == "application/x-pkcs7-signature", media == "application/pgp-signature":
		return
	case strings.HasSuffix(media, "pkcs7-mime") && !strings.HasPrefix(strings.ToLower(p.Params["smime-type"]), "signed"):
		rd.encrypted()
	case strings.HasSuffix(media, "pkcs7-mime"):
		rd.note("The text lies inside a signed envelope (S/MIME) that is not opened. The sender can choose to sign in clear text.")
	case media == "text/calendar" && name == "":
		name = "invitation.ics"
	}
	if at.filesOnly && p.Type == "text" && p.Filename == "" && p.Subtype != "calendar" {
		return // another form of the text, for watches and the like
	}
	if name == "" {
		name = p.Type + extensionOf(p)
	}
	name = rd.names.unique(name)
	body.pending = append(body.pending, name)
	rd.attach(p, name, at)
}

func extensionOf(p *mime.Part) string {
	switch p.Subtype {
	case "plain":
		return ".txt"
	case "jpeg":
		return ".jpg"
	case "octet-stream", "":
		return ".bin"
	case "rfc822":
		return ".eml"
	case "html", "csv", "pdf", "png", "gif", "webp", "zip", "json", "xml", "calendar", "mp4", "wav", "heic":
		return "." + p.Subtype
	}
	return ".bin"
}

func (rd *partReader) attach(p *mime.Part, name string, at place) {
	rd.out.Attachments = append(rd.out.Attachments, Attachment{
		Name: name, Media: p.Type + "/" + p.Subtype, Of: at.of, Size: rd.sizeOf(p),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(mime.DecodedBody(rd.r, p)), nil },
	})
}

// sizeOf counts the octets of a decoded body.
func (rd *partReader) sizeOf(p *mime.Part) int64 {
	if p.Encoding != "base64" && p.Encoding != "quoted-printable" {
		return p.Body.Len()
	}
	n, err := io.Copy(io.Discard, mime.DecodedBody(rd.r, p))
	rd.fail(err)
	return n
}

package imapserver

import (
	"bytes"
	"io"
	"strings"

	"pizza/internal/fold"
	"pizza/internal/mime"
	"pizza/mailbox"
)

// folder looks for folded text in text that is not. It is not safe for concurrent use.
type folder struct {
	*fold.Folder
	scratch []byte
	buf     bytes.Buffer
}

func newFolder() *folder { return &folder{Folder: fold.New()} }

func (f *folder) contains(s, folded string) bool {
	if folded == "" {
		return true
	}
	f.scratch = f.Append(f.scratch[:0], s)
	return bytes.Contains(f.scratch, []byte(folded))
}

// consult asks the index about every text that is looked for, so that most messages
// need no look at all.
func (c *conn) consult(k *searchKey) (err error) {
	for i := range k.kids {
		if err := c.consult(&k.kids[i]); err != nil {
			return err
		}
	}
	in := mailbox.InMessage
	switch {
	case k.op < opSubject || k.text == "":
		return nil
	case k.op <= opCc:
		in = mailbox.InEnvelope
	}
	k.lacking, err = c.srv.opt.Store.Lacking(c.ctx, c.ident.Account, in, k.text)
	return err
}

// Most messages do not hold the text that is searched for, and most of them are plain
// ASCII, which decoding would leave as it is. What follows tells these at the cost of
// one pass. It only ever says no; all else is decoded and looked at properly.

// lacks reports that b is plain, and does not hold a folded text. In both of them are
// no octets that decoding could change.
func (f *folder) lacks(b []byte, folded string) bool {
	for i := 0; i < len(folded); i++ {
		if c := folded[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	var plain bool
	f.scratch, plain = fold.Plain(f.scratch, b)
	return plain && folded != "" && !bytes.Contains(f.scratch, []byte(folded))
}

// headerLacks is lacks for a raw header: it holds no encoded-words either, and the
// text no colon, which may stand behind blanks.
func (f *folder) headerLacks(raw []byte, folded string) bool {
	return !strings.Contains(folded, ":") && !bytes.Contains(raw, []byte("=?")) && f.lacks(raw, folded)
}

// partLacks is lacks for a text part whose charset has ASCII in it.
func (f *folder) partLacks(place mime.Searched, folded string) (bool, error) {
	octets := place.Octets()
	p := place.Part
	if octets == nil || p.Params["delsp"] != "" || !asciiBased(p.Params["charset"]) {
		return false, nil
	}
	if p.Params["format"] != "" && strings.ContainsAny(folded, " >") { // lines are joined, and marks go
		return false, nil
	}
	f.buf.Reset()
	if f.buf.Cap() > maxKept {
		f.buf = bytes.Buffer{}
	}
	_, err := f.buf.ReadFrom(io.Reader(octets))
	return f.lacks(f.buf.Bytes(), folded), err
}

// maxKept is how much memory of one text is kept for the next one.
const maxKept = 1 << 20

// asciiBased reports charsets in which plain octets mean what they mean in ASCII.
func asciiBased(charset string) bool {
	c := strings.ToLower(charset)
	switch c {
	case "", "us-ascii", "ascii", "utf-8", "utf8":
		return true
	}
	return strings.HasPrefix(c, "iso-8859-") || strings.HasPrefix(c, "windows-125")
}

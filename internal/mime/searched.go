package mime

import (
	"io"
)

// SearchVersion changes with every change of which texts a search looks at and what
// they are decoded to, so that whoever keeps something derived from them knows that it
// is old.
const SearchVersion = 1

// maxSearched is how much of one text part a search looks at.
const maxSearched = 16 << 20

// Searched is one place of a message that a search looks at: the header at the top, or
// a part: its own header, and its text when it is text.
type Searched struct {
	Header []byte // as in the message, MaxHeader octets at most
	Part   *Part
	Top    bool // the header is that of the message itself, which BODY does not look at
	r      io.ReaderAt
}

// EachSearched calls fn for the places of a message that a search for text looks at,
// until it returns false. header is the header at the top; errors are those of r.
//
// Index and search both read messages by this function and the next ones, so that they
// cannot disagree.
func (s *Structure) EachSearched(r io.ReaderAt, header []byte, fn func(Searched) bool) (err error) {
	if s.Root == nil {
		fn(Searched{Header: header, Part: &Part{}, Top: true, r: r})
		return nil
	}
	s.Root.Walk(func(_ []int, p *Part) bool {
		place := Searched{Header: header, Part: p, Top: true, r: r}
		if p != s.Root {
			if place.Header, err = RawHeader(r, p); err != nil {
				return false
			}
			place.Top = false
		}
		return fn(place)
	})
	return err
}

// EachField calls fn with every field of the header as "Name: value", decoded, and with
// the part's file name, which a parameter may hold in a form of its own (RFC 2231),
// until it returns false.
func (s Searched) EachField(fn func(string) bool) {
	if s.Part.Filename != "" && !fn(s.Part.Filename) {
		return
	}
	for _, f := range Fields(s.Header) {
		if !fn(f.Name + ": " + f.Text()) {
			return
		}
	}
}

// HasText reports whether Text may return any.
func (s Searched) HasText() bool {
	return s.Part.Type == "text" && len(s.Part.Children) == 0 && s.Part.Body.Len() > 0
}

// Text returns the part's text as a person would read it, 16 MiB of it at most.
func (s Searched) Text() (string, error) {
	text, err := Text(s.r, s.Part, maxSearched)
	if s.Part.Subtype == "html" {
		text, _ = HTMLText(text)
	}
	return text, err
}

// Octets returns the part's text with the transfer encoding undone, where these octets
// are what Text is decoded from, charset and format aside; nil where they say nothing
// of it.
func (s Searched) Octets() io.Reader {
	if s.Part.Subtype == "html" || s.Part.Body.Len() > maxSearched {
		return nil
	}
	return DecodedBody(s.r, s.Part)
}

// Searched is what a search for an address looks at.
func (a Address) Searched() string { return a.Name + " <" + a.String() + ">" }

// EachEnvelopeText calls fn with what searches for Subject, From, To and Cc look at.
func (s *Structure) EachEnvelopeText(fn func(string)) {
	fn(s.Subject)
	for _, list := range [][]Address{s.From, s.To, s.Cc} {
		for _, a := range list {
			fn(a.Searched())
		}
	}
}

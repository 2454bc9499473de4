package mime

import "golang.org/x/net/html/atom"

// What HTML says about tags (the HTML standard, section 13.2), as far as it decides which
// element a piece of text is in. Mail is full of tags that are not closed or closed in
// the wrong order; what a person sees depends on these rules.
type tagKind uint16

const (
	void      tagKind = 1 << iota // has no content
	special                       // an end tag of another kind does not reach through it
	closesP                       // its start ends an open paragraph
	scope                         // an end tag does not reach out of it
	format                        // may overlap other elements, and goes on after a block ends
	paragraph                     // an empty line around it
	ownLine                       // lines of its own
	dropped                       // its content is never shown
)

var tagKinds = makeTagKinds()

func makeTagKinds() map[atom.Atom]tagKind {
	m := make(map[atom.Atom]tagKind)
	set := func(k tagKind, tags ...atom.Atom) {
		for _, t := range tags {
			m[t] |= k
		}
	}
	set(void, atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link,
		atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr, atom.Basefont, atom.Bgsound, atom.Frame)
	blocks := []atom.Atom{atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details,
		atom.Dialog, atom.Dir, atom.Div, atom.Dl, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer,
		atom.Header, atom.Hgroup, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Section, atom.Summary,
		atom.Ul, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Listing, atom.Form,
		atom.Table, atom.Hr, atom.Xmp, atom.Plaintext, atom.Li, atom.Dd, atom.Dt}
	set(special|closesP|ownLine, blocks...)
	set(paragraph, atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Ul,
		atom.Ol, atom.Dl, atom.Pre, atom.Listing, atom.Table, atom.Hr, atom.Fieldset)
	set(special|ownLine, atom.Tr, atom.Caption, atom.Legend, atom.Optgroup)
	set(special, atom.Tbody, atom.Thead, atom.Tfoot, atom.Colgroup, atom.Td, atom.Th, atom.Html, atom.Body,
		atom.Head, atom.Button, atom.Applet, atom.Marquee, atom.Object, atom.Template, atom.Select)
	set(scope, atom.Applet, atom.Caption, atom.Html, atom.Table, atom.Td, atom.Th, atom.Marquee, atom.Object,
		atom.Template)
	set(format, atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S,
		atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U)
	set(dropped, atom.Script, atom.Style, atom.Title, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea,
		atom.Select, atom.Object, atom.Applet, atom.Audio, atom.Video, atom.Canvas)
	return m
}

// closes are the open elements a start tag ends besides a paragraph, looked for up to
// the nearest of the second list.
var closes = map[atom.Atom]struct{ ends, within []atom.Atom }{
	atom.Li:    {[]atom.Atom{atom.Li}, []atom.Atom{atom.Ul, atom.Ol, atom.Menu, atom.Dir}},
	atom.Dd:    {[]atom.Atom{atom.Dd, atom.Dt}, []atom.Atom{atom.Dl}},
	atom.Dt:    {[]atom.Atom{atom.Dd, atom.Dt}, []atom.Atom{atom.Dl}},
	atom.Td:    {[]atom.Atom{atom.Td, atom.Th, atom.Caption}, []atom.Atom{atom.Tr, atom.Table}},
	atom.Th:    {[]atom.Atom{atom.Td, atom.Th, atom.Caption}, []atom.Atom{atom.Tr, atom.Table}},
	atom.Tr:    {[]atom.Atom{atom.Tr, atom.Caption}, []atom.Atom{atom.Table}},
	atom.Tbody: {[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption}, []atom.Atom{atom.Table}},
	atom.Thead: {[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption}, []atom.Atom{atom.Table}},
	atom.Tfoot: {[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption}, []atom.Atom{atom.Table}},
	atom.A:     {[]atom.Atom{atom.A}, []atom.Atom{atom.Table, atom.Td, atom.Th}},
}

package mime

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxOpen is how deep elements are told apart; text deeper than that counts as hidden,
// as nothing is known about it.
const maxOpen = 500

// HTMLText returns what a person would read of an HTML text: lines for blocks, "- " and
// numbers for lists, "> " before what is in a blockquote, pre kept as it is, tabs between the cells of
// a row, "[…]" for an image's alternative text, and behind a link its URL in angle
// brackets where the text does not say it.
//
// What a person would not see is left out: the hidden attribute, and inline style or a simple
// rule of a style element that makes it invisible, empty in size, far off, or of the
// colour behind it. hidden is how many such elements held text.
//
// Cost is linear in the input.
func HTMLText(s string) (text string, hidden int) {
	h := &htmlReader{w: textWriter{}, sheet: sheet{}, open: make(map[string]int)}
	z := html.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case html.ErrorToken:
			h.popTo(0)
			return h.w.String(), h.hidden
		case html.TextToken:
			h.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := readTag(z)
			if t.atom == atom.Noscript {
				z.NextIsNotRawText() // mail programs run no script
			}
			h.start(t)
		case html.EndTagToken:
			name, _ := z.TagName()
			h.end(string(name), atom.Lookup(name))
		}
	}
}

// tag is a start tag with the attributes that matter.
type tag struct {
	name string
	atom atom.Atom
	attr map[string]string
}

func readTag(z *html.Tokenizer) tag {
	name, more := z.TagName()
	t := tag{name: string(name), atom: atom.Lookup(name)}
	for more {
		var k, v []byte
		k, v, more = z.TagAttr()
		switch string(k) {
		case "hidden", "style", "class", "id", "href", "alt", "color", "bgcolor", "background", "text", "start", "open":
			if t.attr == nil {
				t.attr = make(map[string]string)
			}
			if _, dup := t.attr[string(k)]; !dup {
				t.attr[string(k)] = string(v)
			}
		}
	}
	return t
}

func (t tag) has(name string) bool { _, ok := t.attr[name]; return ok }

// element is an open element.
type element struct {
	name    string
	atom    atom.Atom
	kind    tagKind
	gone    bool // nothing in it is seen
	counted bool // as hidden
	look    look
	href    string
	mark    int // length of the text before it
	number  int // next item of an ordered list; -1 for others
}

// htmlReader keeps the open elements, by the rules of htmltags.go.
type htmlReader struct {
	w      textWriter
	stack  []element
	open   map[string]int // open elements by name
	over   int            // elements deeper than maxOpen
	goneAt int            // open elements with gone set
	css    bool           // inside a style element
	sheet  sheet
	styled bool // a style element was met: a class may set any colour
	hidden int
}

func (h *htmlReader) look() look {
	if n := len(h.stack); n > 0 {
		return h.stack[n-1].look
	}
	return look{fg: 0, bg: white}
}

func (h *htmlReader) text(s string) {
	if h.css {
		h.sheet.add(s)
		return
	}
	if h.over == 0 && h.goneAt == 0 && !h.look().hidden() {
		h.w.text(s)
		return
	}
	if strings.TrimSpace(strings.Trim(s, "\u200b\u200c\u034f\ufeff\u00ad\u00a0 \n\t")) != "" {
		h.count()
	}
}

// count counts the innermost element that hides what is being read, once.
func (h *htmlReader) count() {
	for i := len(h.stack) - 1; i >= 0; i-- {
		e := &h.stack[i]
		if e.kind&dropped != 0 && e.gone {
			return
		}
		if e.gone || h.goneAt == 0 {
			if !e.counted {
				e.counted = true
				h.hidden++
			}
			return
		}
	}
}

func (h *htmlReader) start(t tag) {
	k := tagKinds[t.atom]
	if k&closesP != 0 {
		h.closeOpen(t.atom, []atom.Atom{atom.P}, []atom.Atom{atom.Button})
	}
	if c, ok := closes[t.atom]; ok {
		h.closeOpen(t.atom, c.ends, c.within)
	}
	if k&void != 0 {
		h.void(t)
		return
	}
	if len(h.stack) >= maxOpen {
		h.over++
		return
	}
	h.push(h.element(t, k))
}

func (h *htmlReader) element(t tag, k tagKind) element {
	e := element{name: t.name, atom: t.atom, kind: k, look: h.look(), number: -1}
	if t.atom == atom.A && t.has("href") {
		e.href = t.attr["href"]
		if e.look.fg >= 0 {
			e.look.fg = 0x0000ee
		}
	}
	if v, ok := t.attr["color"]; ok {
		e.look.fg = parseColour(v)
	}
	if v, ok := t.attr["text"]; ok && t.atom == atom.Body {
		e.look.fg = parseColour(v)
	}
	if v, ok := t.attr["bgcolor"]; ok {
		e.look.bg = parseColour(v)
	}
	if t.has("background") || h.styled && (t.has("class") || t.has("id")) {
		e.look.bg = noColour
	}
	class, id := strings.ToLower(t.attr["class"]), strings.ToLower(t.attr["id"])
	e.gone = k&dropped != 0 || t.atom == atom.Template || t.atom == atom.Dialog && !t.has("open") ||
		t.has("hidden") || h.sheet.hides(t.name, id, class)
	if v, ok := t.attr["style"]; ok {
		d := declarations(v)
		e.look = e.look.apply(d)
		e.gone = e.gone || hides(d)
		if d["display"] != "" && d["display"] != "none" && t.has("hidden") && k&dropped == 0 && !hides(d) {
			e.gone = false // the style beats the attribute
		}
	}
	return e
}

func (h *htmlReader) push(e element) {
	if e.gone {
		h.goneAt++
	}
	h.open[e.name]++
	if h.goneAt == 0 {
		h.enter(&e)
	}
	h.css = e.atom == atom.Style
	h.styled = h.styled || h.css
	e.mark = h.w.len()
	h.stack = append(h.stack, e)
}

// enter begins the lines of a visible element.
func (h *htmlReader) enter(e *element) {
	h.w.breakFor(e.kind)
	switch e.atom {
	case atom.Blockquote:
		h.w.quote++
	case atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext:
		h.w.pre++
		h.w.skipNewline = true
	case atom.Ol:
		e.number = 1
		h.w.lists++
	case atom.Ul, atom.Menu, atom.Dir:
		h.w.lists++
	case atom.Li:
		h.w.bullet = h.bullet()
	case atom.Td, atom.Th:
		h.w.cell()
	}
}

// bullet is what stands before the next item of the innermost list.
func (h *htmlReader) bullet() string {
	for i := len(h.stack) - 1; i >= 0; i-- {
		switch e := &h.stack[i]; e.atom {
		case atom.Ol:
			e.number++
			return itoa(e.number-1) + ". "
		case atom.Ul, atom.Menu, atom.Dir:
			return "- "
		}
	}
	return "- "
}

// leave ends the lines of an element.
func (h *htmlReader) leave(e element) {
	h.open[e.name]--
	h.css = false
	if e.gone {
		h.goneAt--
		return
	}
	if h.goneAt > 0 {
		return
	}
	switch e.atom {
	case atom.A:
		h.w.link(e.href, e.mark)
	case atom.Blockquote:
		h.w.quote--
	case atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext:
		h.w.pre--
	case atom.Ol, atom.Ul, atom.Menu, atom.Dir:
		h.w.lists--
	case atom.Li:
		h.w.bullet = ""
	}
	h.w.breakFor(e.kind)
}

func (h *htmlReader) void(t tag) {
	if h.over > 0 || h.goneAt > 0 {
		return
	}
	switch t.atom {
	case atom.Br:
		h.w.newline()
	case atom.Hr:
		h.w.breakFor(paragraph)
		h.w.text("* * *")
		h.w.breakFor(paragraph)
	case atom.Img:
		e := h.element(t, void)
		if alt := strings.TrimSpace(t.attr["alt"]); alt != "" && !e.gone && !e.look.invisible {
			h.w.text("[" + alt + "]")
		}
	}
}

// closeOpen ends the nearest open element of ends, unless one of within or a scope is
// in between.
func (h *htmlReader) closeOpen(self atom.Atom, ends, within []atom.Atom) {
	if !slices.ContainsFunc(ends, func(a atom.Atom) bool { return h.open[a.String()] > 0 }) {
		return
	}
	for i := len(h.stack) - 1; i >= 0; i-- {
		e := h.stack[i]
		switch {
		case slices.Contains(ends, e.atom):
			h.popTo(i)
			return
		case slices.Contains(within, e.atom):
			return
		case e.kind&scope != 0 && self != atom.Td && self != atom.Th && self != atom.Tr:
			return
		case e.atom == atom.Table:
			return
		}
	}
}

func (h *htmlReader) end(name string, a atom.Atom) {
	switch {
	case a == atom.Br:
		h.void(tag{atom: atom.Br})
		return
	case a == atom.Body, a == atom.Html:
		return // what follows is still in the body
	case h.over > 0:
		h.over--
		return
	case h.open[name] == 0:
		return
	}
	k := tagKinds[a]
	blocks := false // a special element is in between
	for i := len(h.stack) - 1; i >= 0; i-- {
		e := h.stack[i]
		if e.name == name {
			if blocks && k&format != 0 {
				h.remove(i)
				return
			}
			h.popTo(i)
			return
		}
		if e.kind&special != 0 {
			blocks = true
			if k&(special|format|dropped) == 0 {
				return
			}
		}
		if e.kind&scope != 0 && !(a == atom.Table || a == atom.Tr || a == atom.Td || a == atom.Th || a == atom.Tbody) {
			return
		}
	}
}

// remove takes one element out of the middle of the stack.
func (h *htmlReader) remove(i int) {
	e := h.stack[i]
	h.stack = slices.Delete(h.stack, i, i+1)
	h.leave(e)
}

// popTo ends the elements from i on. Formatting elements that hide text and were not
// ended themselves go on behind a block (the standard's "reconstruct the active
// formatting elements"): text behind it would be hidden too.
func (h *htmlReader) popTo(i int) {
	var on []element
	for len(h.stack) > i {
		e := h.stack[len(h.stack)-1]
		h.stack = h.stack[:len(h.stack)-1]
		outer := h.look()
		h.leave(e)
		switch {
		case e.kind&scope != 0:
			on = nil
		case e.kind&format != 0 && len(h.stack) > i && (e.gone || e.look.hidden() && !outer.hidden()):
			e.href = ""
			on = append(on, e)
		}
	}
	for k := len(on) - 1; k >= 0 && len(h.stack) < maxOpen; k-- {
		h.push(on[k])
	}
}

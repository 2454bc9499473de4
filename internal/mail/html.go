package mail

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"pizza/internal/mime"
)

// signMark is put into the HTML where a signature begins and read back from the text
// that mime.HTMLText makes of it: a private-use character, which is taken out of the
// mail before.
const signMark = "\ue0a3"

// outlookLine is what stands above a header block in Outlook's own plain text.
const outlookLine = "________________________________"

// htmlText is the text of an HTML body in which quoted blocks have "> " before each
// line, a signature "-- " above it, and struck out words "~~" around them. hidden
// reports that text was left out which a reader does not see.
func htmlText(src string) (text string, hidden bool) {
	src = strings.ReplaceAll(src, signMark, "")
	doc, err := html.Parse(strings.NewReader(src))
	if err == nil { // it fails for what is nested too deeply
		markQuotes(doc)
		var b strings.Builder
		if html.Render(&b, doc) == nil {
			src = b.String()
		}
	}
	text, n := mime.HTMLText(src)
	return readMarks(text), n > 0
}

// markQuotes makes a blockquote of what some mail program quotes, and a div of every
// other blockquote: that may be the person's own text, indented.
func markQuotes(n *html.Node) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.ElementNode {
			markQuotes(child)
			markElement(child)
		}
		child = next
	}
}

func markElement(n *html.Node) {
	switch {
	case isQuote(n):
		wrapQuote(n)
	case n.DataAtom == atom.Blockquote:
		n.Data, n.DataAtom = "div", atom.Div
	case strings.TrimPrefix(attr(n, "id"), "x_") == "divRplyFwdMsg": // Outlook's header block; what follows is old
		n.Parent.InsertBefore(textIn("p", atom.P, outlookLine), n)
	case isSignature(n):
		n.Parent.InsertBefore(textIn("p", atom.P, signMark), n)
	case struckOut(n):
		n.InsertBefore(&html.Node{Type: html.TextNode, Data: "~~"}, n.FirstChild)
		n.AppendChild(&html.Node{Type: html.TextNode, Data: "~~"})
	}
}

// wrapQuote puts n into a blockquote of its own unless it is one.
func wrapQuote(n *html.Node) {
	if n.DataAtom == atom.Blockquote {
		return
	}
	q := &html.Node{Type: html.ElementNode, Data: "blockquote", DataAtom: atom.Blockquote}
	n.Parent.InsertBefore(q, n)
	n.Parent.RemoveChild(n)
	q.AppendChild(n)
}

func textIn(tag string, a atom.Atom, text string) *html.Node {
	p := &html.Node{Type: html.ElementNode, Data: tag, DataAtom: a}
	p.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	return p
}

// readMarks makes signature lines of the marks.
func readMarks(text string) string {
	if !strings.Contains(text, signMark) {
		return text
	}
	lines := splitLines(text)
	for i, l := range lines {
		if bare := strings.ReplaceAll(l, signMark, ""); bare != l {
			lines[i] = strings.TrimSpace(bare) + "-- "
		}
	}
	return strings.Join(lines, "\n")
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// isQuote reports whether n holds quoted text, by the marks of some mail program.
func isQuote(n *html.Node) bool {
	class, id := strings.ToLower(attr(n, "class")), strings.ToLower(attr(n, "id"))
	if n.DataAtom == atom.Blockquote {
		return strings.EqualFold(attr(n, "type"), "cite") || hasAttr(n, "cite") || strings.Contains(class, "quote") ||
			strings.Contains(strings.ToLower(attr(n, "style")), "border-left")
	}
	switch {
	case hasWord(class, "gmail_attr"), hasWord(class, "yahoo_quoted"), hasWord(class, "moz-cite-prefix"),
		hasWord(class, "protonmail_quote"), hasWord(class, "outlookmessageheader"), strings.HasPrefix(id, "yahoo_quoted"),
		attr(n, "name") == "messageReplySection":
		return true
	}
	return false
}

func hasWord(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

func isSignature(n *html.Node) bool {
	class, id := strings.ToLower(attr(n, "class")), strings.ToLower(attr(n, "id"))
	return hasWord(class, "moz-signature") || hasWord(class, "gmail_signature") || hasWord(class, "applemailsignature") ||
		id == "signature" || id == "ms-outlook-mobile-signature" || id == "applemailsignature" || hasWord(class, "protonmail_signature_block")
}

// struckOut reports whether n's text has a line through it: a verb in it is none.
func struckOut(n *html.Node) bool {
	switch n.DataAtom {
	case atom.S, atom.Strike, atom.Del:
		return true
	}
	return strings.Contains(strings.ToLower(attr(n, "style")), "line-through")
}

package mail

import (
	"bytes"
	"html"
	"net/url"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/idna"
)

// maxMarkdown is how much is rendered; more, or deeper, is shown as it is.
const maxMarkdown = 256 << 10

// markdown renders a model's text. Raw HTML is shown, not used; images are not
// loaded; a link names its host.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(linkRules{}, 900))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(rawAsText{}, 1))),
)

// modelPolicy lets the elements through that Markdown yields, and no more.
var modelPolicy = policy("http", "https", "mailto")

// ourPolicy is for the text of our own mails.
var ourPolicy = policy("http", "https", "mailto")

func policy(schemes ...string) *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "b", "strong", "em", "i", "del", "code", "pre", "blockquote", "small",
		"h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "div")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.RequireParseableURLs(true)
	p.AllowURLSchemes(schemes...)
	return p
}

// markdownHTML is the HTML of a model's Markdown.
func markdownHTML(md string) string {
	md = cleanModelText(md)
	if len(md) > maxMarkdown || tooDeep(md) {
		return modelPolicy.Sanitize("<pre>" + html.EscapeString(md) + "</pre>")
	}
	var buf bytes.Buffer
	if err := markdown.Convert([]byte(md), &buf); err != nil {
		return modelPolicy.Sanitize("<pre>" + html.EscapeString(md) + "</pre>")
	}
	return strings.TrimSpace(modelPolicy.Sanitize(buf.String()))
}

// Bounds of what is rendered: past them the library's cost is quadratic.
const (
	maxBlocks     = 40   // marks of blocks within blocks that begin a line
	maxBrackets   = 1000 // in a paragraph
	maxDelimiters = 5000 // of emphasis, in a paragraph
)

// tooDeep reports whether rendering would cost more than it is worth.
func tooDeep(md string) bool {
	delimiters, brackets := 0, 0
	for l := range strings.SplitSeq(md, "\n") {
		if strings.TrimSpace(l) == "" {
			delimiters, brackets = 0, 0
			continue
		}
		delimiters += strings.Count(l, "*") + strings.Count(l, "_") + strings.Count(l, "~")
		brackets += strings.Count(l, "[")
		if delimiters > maxDelimiters || brackets > maxBrackets || blockMarks(l) > maxBlocks {
			return true
		}
	}
	return false
}

// blockMarks counts the marks of quotes and list items that begin a line.
func blockMarks(l string) int {
	if strings.Trim(l, "-*_ \t") == "" {
		return 0 // a rule
	}
	n := 0
	for _, r := range l {
		switch {
		case strings.ContainsRune(">-+*.)", r):
			n++
		case r != ' ' && r != '\t' && (r < '0' || r > '9'):
			return n
		}
	}
	return n
}

// linkRules applies our rules about links and images to the tree.
type linkRules struct{}

// Transform implements parser.ASTTransformer.
func (linkRules) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	var nodes []ast.Node
	ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n.(type) {
			case *ast.Link, *ast.AutoLink, *ast.Image:
				nodes = append(nodes, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range nodes {
		rewrite(n, r.Source())
	}
}

// rewrite changes one link or image.
func rewrite(n ast.Node, src []byte) {
	switch n := n.(type) {
	case *ast.Image:
		label := "[image: " + plainOf(n, src)
		if host := hostOf(string(n.Destination)); host != "" {
			label += " at " + host
		}
		replace(n, label+"]")
	case *ast.AutoLink:
		target := string(n.URL(src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
			target = "mailto:" + target
		}
		if hostOf(target) == "" {
			replace(n, string(n.Label(src)))
		}
	case *ast.Link:
		target, label := string(n.Destination), plainOf(n, src)
		host := hostOf(target)
		switch {
		case host == "":
			unwrap(n)
		case strings.TrimSuffix(label, "/") != strings.TrimSuffix(target, "/"):
			n.Parent().InsertAfter(n.Parent(), n, ast.NewString([]byte(" ["+host+"]")))
		}
	}
}

// hostOf is the host that a link really leads to, as ASCII; "" if the link must not
// be one: another scheme, not readable, or a mail to ourselves, by which a text could
// get a decision or a task sent with one click.
func hostOf(target string) string {
	u, err := url.Parse(strings.TrimSpace(target))
	if err != nil {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		host := u.Hostname()
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = ascii
		} else if !isASCII(host) {
			return ""
		}
		return host
	case "mailto":
		return foreignMailHost(u)
	}
	return ""
}

func foreignMailHost(u *url.URL) string {
	whole := u.String()
	for range 3 {
		if s, err := url.PathUnescape(whole); err == nil {
			whole = s
		}
	}
	whole = strings.ToLower(visible(whole))
	_, host, ok := strings.Cut(strings.TrimPrefix(whole, "mailto:"), "@")
	if !ok || strings.Contains(whole, Domain) {
		return ""
	}
	if i := strings.IndexAny(host, "?,;&>"); i >= 0 {
		host = host[:i]
	}
	return host
}

// plainOf is the text inside a node.
func plainOf(n ast.Node, src []byte) string {
	var b strings.Builder
	ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		switch c := c.(type) {
		case *ast.Text:
			if entering {
				b.Write(c.Segment.Value(src))
			}
		case *ast.String:
			if entering {
				b.Write(c.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return oneLine(b.String())
}

func replace(n ast.Node, label string) {
	n.Parent().ReplaceChild(n.Parent(), n, ast.NewString([]byte(label)))
}

// unwrap puts a node's children in its place.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; {
		next := c.NextSibling()
		parent.InsertBefore(parent, n, c)
		c = next
	}
	parent.RemoveChild(parent, n)
}

// rawAsText renders raw HTML as the text that it is.
type rawAsText struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (rawAsText) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindRawHTML, func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			for i := range n.(*ast.RawHTML).Segments.Len() {
				s := n.(*ast.RawHTML).Segments.At(i)
				w.WriteString(html.EscapeString(string(s.Value(src))))
			}
		}
		return ast.WalkSkipChildren, nil
	})
	reg.Register(ast.KindHTMLBlock, func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		b := n.(*ast.HTMLBlock)
		w.WriteString("<pre>")
		for i := range b.Lines().Len() {
			s := b.Lines().At(i)
			w.WriteString(html.EscapeString(string(s.Value(src))))
		}
		if b.HasClosure() {
			s := b.ClosureLine
			w.WriteString(html.EscapeString(string(s.Value(src))))
		}
		w.WriteString("</pre>\n")
		return ast.WalkContinue, nil
	})
}

package mime

import (
	"bytes"
	"strconv"
)

// structure renders what the pass found.
func (s *scanner) structure() *Structure {
	st := s.st
	st.Root = s.root.part
	st.Lines = s.lf
	if s.lastPartial && s.size > 0 {
		st.Lines++
	}
	var body, full bytes.Buffer
	renderBody(&body, s.root, false)
	renderBody(&full, s.root, true)
	st.Body, st.BodyStructure = body.Bytes(), full.Bytes()
	return st
}

// renderBody writes BODY, or BODYSTRUCTURE with its extension data (RFC 9051 section
// 7.5.2 and "body" in section 9). Depth is limited by MaxDepth.
func renderBody(b *bytes.Buffer, n *node, extended bool) {
	b.WriteByte('(')
	if n.part.Type == "multipart" {
		renderMultipart(b, n, extended)
	} else {
		renderLeaf(b, n, extended)
	}
	b.WriteByte(')')
}

func renderMultipart(b *bytes.Buffer, n *node, extended bool) {
	for _, k := range n.kids {
		renderBody(b, k, extended)
	}
	joinSpace(b, quoteUpper(n.part.Subtype))
	if extended {
		joinSpace(b, n.wire.params, n.wire.disposition, n.wire.language, n.wire.location)
	}
}

func renderLeaf(b *bytes.Buffer, n *node, extended bool) {
	p, w := n.part, n.wire
	typ, sub := p.Type, p.Subtype
	described := n.nested && len(n.kids) == 1
	if typ == "message" && !described && (sub == "rfc822" || sub == "global") {
		// Clients expect an envelope behind these types: a message that cannot be
		// looked into is shown as bytes.
		typ, sub = "application", "octet-stream"
	}
	b.Write(quoteUpper(typ))
	joinSpace(b, quoteUpper(sub), w.params, w.id, w.description, w.encoding)
	b.WriteByte(' ')
	b.WriteString(strconv.FormatInt(p.Body.Len(), 10))
	if described {
		env := n.kids[0].envelope
		if len(env) == 0 {
			env = []byte(emptyEnvelope)
		}
		joinSpace(b, env)
		b.WriteByte(' ')
		renderBody(b, n.kids[0], extended)
	}
	if described || typ == "text" {
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(p.Lines, 10))
	}
	if extended {
		joinSpace(b, w.md5, w.disposition, w.language, w.location)
	}
}

package imapserver

import "bytes"

// maxPreview is how many characters PREVIEW has at most (RFC 8970 section 3.1).
const maxPreview = 200

// lazy reads the modifier of PREVIEW. It changes nothing: a preview is made from the
// beginning of the text on the way out, so it is always at hand. Another list behind
// PREVIEW is no modifier of it.
func (p *parser) lazy() {
	const modifier = " (LAZY)"
	if end := p.i + len(modifier); p.err == nil && end <= len(p.b) && bytes.EqualFold(p.b[p.i:end], []byte(modifier)) {
		p.i = end
	}
}

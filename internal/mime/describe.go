package mime

import (
	"bytes"
	"strings"
)

// wireFields are the parts of a body structure that come from the header, in wire form.
type wireFields struct {
	params      []byte // parenthesised list or NIL
	id          []byte
	description []byte
	encoding    []byte
	md5         []byte
	disposition []byte
	language    []byte
	location    []byte
}

// content holds the raw values of the fields that describe a part; the first of each.
type content struct {
	typ, encoding, disposition, id, description, md5, language, location *string
}

// describe fills in the top part from its header, and the structure if it is a message.
func (s *scanner) describe(f *frame) {
	var c content
	var m messageFields
	isMessage := f.n == s.root || s.insideMessage()
	eachField(s.header, func(name, value, _ []byte) {
		if slot := c.slot(name); slot != nil && *slot == nil {
			v := unfold(string(value))
			*slot = &v
			return
		}
		if isMessage {
			m.add(name, value)
		}
	})
	s.describeType(f, c.typ)
	p := f.n.part
	p.Encoding, f.n.wire.encoding = transferEncoding(c.encoding)
	s.describeDisposition(f, c.disposition)
	p.ContentID = s.keep(messageID(value(c.id)))
	s.describeRest(f.n, c)
	f.n.nested = p.Type == "message" && (p.Subtype == "rfc822" || p.Subtype == "global") && identity(p.Encoding)
	if isMessage {
		s.describeMessage(f.n, &m)
	}
}

// insideMessage tells whether the top part is the message in a message/rfc822 part.
func (s *scanner) insideMessage() bool {
	n := len(s.stack)
	return n >= 2 && s.stack[n-2].n.nested
}

func (c *content) slot(name []byte) **string {
	if len(name) < 10 || !bytes.EqualFold(name[:8], []byte("content-")) {
		return nil
	}
	switch strings.ToLower(string(name[8:])) {
	case "type":
		return &c.typ
	case "transfer-encoding":
		return &c.encoding
	case "disposition":
		return &c.disposition
	case "id":
		return &c.id
	case "description":
		return &c.description
	case "md5":
		return &c.md5
	case "language":
		return &c.language
	case "location":
		return &c.location
	}
	return nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// keep charges what is stored to the budget; beyond it nothing is stored.
func (s *scanner) keep(v string) string {
	if s.budget -= len(v); s.budget < 0 {
		return ""
	}
	return v
}

func (s *scanner) keepWire(b []byte) []byte {
	if s.budget -= len(b); s.budget < 0 {
		return nil
	}
	return b
}

func (s *scanner) describeType(f *frame, raw *string) {
	p := f.n.part
	if raw == nil {
		p.Type, p.Subtype = f.defType, f.defSub
		if p.Type == "text" {
			f.n.wire.params = []byte(`("CHARSET" "US-ASCII")`) // RFC 2045 section 5.2
		}
		return
	}
	typ, sub, ps := parseContentType(*raw)
	p.Type, p.Subtype = s.keep(typ), s.keep(sub)
	if p.Type == "" || p.Subtype == "" {
		p.Type, p.Subtype = "text", "plain"
	}
	if p.Type == "multipart" {
		f.n.boundary = strings.TrimRight(ps.raw("boundary"), " \t")
	}
	f.n.wire.params = s.keepWire(appendParams(nil, ps))
	p.Params = make(map[string]string, len(ps))
	for _, q := range ps {
		if s.keep(q.name+q.value) != "" {
			p.Params[q.name] = q.value
		}
	}
	p.Filename = s.keep(safeName(p.Params["name"]))
}

func (s *scanner) describeDisposition(f *frame, raw *string) {
	if raw == nil {
		return
	}
	disp, ps := parseDisposition(*raw)
	if disp == "" {
		return
	}
	p := f.n.part
	// RFC 2183 section 2.8: what is unknown is an attachment.
	p.Disposition = "attachment"
	if disp == "inline" {
		p.Disposition = disp
	}
	if name := s.keep(safeName(ps.get("filename"))); name != "" {
		p.Filename = name
	}
	w := append([]byte{'('}, quoteUpper(disp)...)
	w = append(w, ' ')
	w = appendParams(w, ps)
	f.n.wire.disposition = s.keepWire(append(w, ')'))
}

func (s *scanner) describeRest(n *node, c content) {
	keep := func(v *string) []byte {
		if v == nil {
			return nil
		}
		return s.keepWire(appendNString(nil, v))
	}
	w := &n.wire
	w.id, w.description, w.md5, w.location = keep(c.id), keep(c.description), keep(c.md5), keep(c.location)
	if c.language != nil {
		w.language = s.keepWire(appendLanguages(nil, *c.language))
	}
}

// identity tells whether a transfer encoding leaves the octets as they are.
func identity(encoding string) bool { return encoding != "base64" && encoding != "quoted-printable" }

// transferEncoding reads a Content-Transfer-Encoding (RFC 2045 section 6), with a
// comment or a common slip of spelling, and gives its wire form: an unknown token is
// shown to the client as it is.
func transferEncoding(raw *string) (encoding string, wire []byte) {
	if raw == nil {
		return "7bit", []byte(`"7BIT"`)
	}
	v := strings.ToLower(stripComments(*raw))
	v = strings.Trim(v, " \t\"';,")
	switch squeezed := strings.NewReplacer("-", "", "_", "", " ", "", "/", "").Replace(v); squeezed {
	case "7bit", "8bit", "binary", "base64":
		return squeezed, quoteUpper(squeezed)
	case "7bits", "8bits":
		return squeezed[:4], quoteUpper(squeezed[:4])
	case "quotedprintable":
		return "quoted-printable", quoteUpper("quoted-printable")
	}
	if isToken(v) && len(v) < 64 {
		return "7bit", quoteUpper(v)
	}
	return "7bit", []byte(`"7BIT"`)
}

// KnownEncoding reports whether the Content-Transfer-Encoding in a part's raw header is
// one whose content we know: DecodedBody leaves the octets of another one as they are.
// None, and one that is no token at all, count as 7bit.
func KnownEncoding(rawHeader []byte) bool {
	var value *string
	eachField(rawHeader, func(name, v, _ []byte) {
		if value == nil && strings.EqualFold(string(name), "Content-Transfer-Encoding") {
			s := string(v)
			value = &s
		}
	})
	encoding, wire := transferEncoding(value)
	return string(wire) == string(quoteUpper(encoding))
}

// messageID takes the angle brackets and what is outside of them away.
func messageID(v string) string {
	if ids := messageIDs(v); len(ids) > 0 {
		return ids[0]
	}
	return strings.Trim(toUTF8(stripComments(v)), "<> \t")
}

// messageIDs lists the message identifiers of In-Reply-To or References in order
// (RFC 5322 section 3.6.4); phrases of old mail programs are passed over.
func messageIDs(v string) []string {
	var out []string
	for {
		i := strings.IndexByte(v, '<')
		if i < 0 {
			return out
		}
		v = v[i+1:]
		j := strings.IndexAny(v, "<>")
		if j < 0 {
			j = len(v)
		}
		if id := strings.Join(strings.Fields(v[:j]), ""); id != "" {
			out = append(out, toUTF8(id))
		}
		v = v[j:]
	}
}

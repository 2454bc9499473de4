package mime

import (
	"bytes"
	"slices"
	"strings"
)

// messageFields are the raw values of the fields ENVELOPE and the top level need. The
// address fields may come more than once, against the rules; they are read as one.
type messageFields struct {
	date, subject, inReplyTo, messageID, references *string
	from, sender, replyTo, to, cc, bcc              *string

	joined int // fields joined to an earlier one
}

// maxJoined is how many repeated address fields are read.
const maxJoined = 100

func (m *messageFields) add(name, value []byte) {
	slot, list := m.slot(strings.ToLower(string(name[:min(len(name), 16)])))
	if slot == nil {
		return
	}
	v := unfold(string(value))
	switch {
	case *slot == nil:
		*slot = &v
	case list && v != "" && m.joined < maxJoined:
		m.joined++
		v = **slot + ", " + v
		*slot = &v
	}
}

func (m *messageFields) slot(name string) (slot **string, list bool) {
	switch name {
	case "date":
		return &m.date, false
	case "subject":
		return &m.subject, false
	case "in-reply-to":
		return &m.inReplyTo, false
	case "message-id":
		return &m.messageID, false
	case "references":
		return &m.references, false
	case "from":
		return &m.from, false
	case "sender":
		return &m.sender, false
	case "reply-to":
		return &m.replyTo, false
	case "to":
		return &m.to, true
	case "cc":
		return &m.cc, true
	case "bcc":
		return &m.bcc, true
	}
	return nil, false
}

// describeMessage renders the envelope of a message, and fills in the structure if it
// is the outermost.
func (s *scanner) describeMessage(n *node, m *messageFields) {
	from := parseAddressList(value(m.from))
	to, cc := parseAddressList(value(m.to)), parseAddressList(value(m.cc))
	replyTo := parseAddressList(value(m.replyTo))
	env := m.envelope(from, replyTo, to, cc)
	if n == s.root {
		s.st.Envelope = env
		s.describeTop(m, from, replyTo, to, cc)
		return
	}
	n.envelope = s.keepWire(env)
}

// envelope renders ENVELOPE (RFC 9051 section 7.5.2). Sender and Reply-To default to
// From; a field that is there but empty is an empty string.
func (m *messageFields) envelope(from, replyTo, to, cc []addressItem) []byte {
	fromWire := appendAddresses(nil, from)
	orFrom := func(items []addressItem) []byte {
		if len(items) == 0 {
			return fromWire
		}
		return appendAddresses(nil, items)
	}
	var b bytes.Buffer
	b.WriteByte('(')
	b.Write(appendNString(nil, m.date))
	joinSpace(&b,
		appendNString(nil, m.subject),
		fromWire,
		orFrom(parseAddressList(value(m.sender))),
		orFrom(replyTo),
		appendAddresses(nil, to),
		appendAddresses(nil, cc),
		appendAddresses(nil, parseAddressList(value(m.bcc))),
		appendNString(nil, m.inReplyTo),
		appendNString(nil, m.messageID))
	b.WriteByte(')')
	return b.Bytes()
}

const emptyEnvelope = "(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL)"

// maxReferences is how many identifiers of References are kept: the oldest, which names
// the thread, and the newest.
const maxReferences = 1000

func (s *scanner) describeTop(m *messageFields, from, replyTo, to, cc []addressItem) {
	st := s.st
	st.MessageID = messageID(value(m.messageID))
	st.InReplyTo = messageIDs(value(m.inReplyTo))
	st.References = messageIDs(value(m.references))
	if n := len(st.References); n > maxReferences {
		st.References = append(st.References[:1:1], st.References[n-maxReferences+1:]...)
	}
	st.Subject = DecodeHeader(value(m.subject))
	st.From, st.ReplyTo, st.To, st.Cc = addresses(from), addresses(replyTo), recipients(to), recipients(cc)
	st.Date = parseDate(value(m.date))
}

func addresses(items []addressItem) []Address {
	items = slices.DeleteFunc(slices.Clone(items), func(it addressItem) bool { return it.kind != mailboxItem })
	return recipients(items)
}

// recipients are the addresses and the groups, as ENVELOPE has them: a group is the
// Local of an address without Host (RFC 9051 section 7.5.2).
func recipients(items []addressItem) []Address {
	var out []Address
	for _, it := range items {
		switch it.kind {
		case mailboxItem:
			out = append(out, it.address())
		case groupStart:
			out = append(out, Address{Local: DecodeHeader(it.name)})
		}
	}
	return out
}

package mime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrFormat is returned for bytes that are no Structure of this FormatVersion: parse
// the message again.
var ErrFormat = errors.New("mime: not an encoded structure of this version")

// Encode returns the stored form of s: FormatVersion, then the rendered items, then
// the rest, as lengths and octets. Equal structures have equal encodings.
func Encode(s *Structure) []byte {
	e := encoder{b: make([]byte, 0, 256+len(s.Envelope)+len(s.Body)+len(s.BodyStructure))}
	e.b = append(e.b, FormatVersion)
	e.str(string(s.Envelope))
	e.str(string(s.Body))
	e.str(string(s.BodyStructure))
	e.str(s.MessageID)
	e.strs(s.InReplyTo)
	e.strs(s.References)
	e.str(s.Subject)
	for _, list := range [][]Address{s.From, s.To, s.Cc, s.ReplyTo} {
		e.addresses(list)
	}
	e.time(s.Date)
	e.num(s.Lines)
	e.part(s.Root)
	return e.b
}

// Decode reads what Encode wrote. The result does not share b's memory. For bytes that
// are something else the error is ErrFormat.
func Decode(b []byte) (*Structure, error) {
	if len(b) == 0 || b[0] != FormatVersion {
		return nil, ErrFormat
	}
	// One copy of everything; the strings of the result are pieces of it.
	d := decoder{s: string(b[1:]), parts: MaxParts}
	s := &Structure{Envelope: []byte(d.str()), Body: []byte(d.str()), BodyStructure: []byte(d.str())}
	d.fields(s)
	s.Root = d.part(0)
	if d.bad || d.s != "" || s.Root == nil {
		return nil, ErrFormat
	}
	return s, nil
}

// DecodeFields is Decode without Root and the rendered items, at a fraction of its
// cost: for searches and lists.
func DecodeFields(b []byte) (*Structure, error) {
	_, rest, err := rendered(b)
	if err != nil {
		return nil, err
	}
	d := decoder{s: string(rest)}
	s := &Structure{}
	if d.fields(s); d.bad {
		return nil, ErrFormat
	}
	return s, nil
}

// DecodeDate decodes nothing but Structure.Date. What lies before it is passed over
// without a copy, at a fraction of the cost of DecodeFields.
func DecodeDate(b []byte) (time.Time, error) {
	_, rest, err := rendered(b)
	if err != nil {
		return time.Time{}, err
	}
	p := passer{rest: rest}
	p.strs(1) // Message-ID
	p.strs(p.uint())
	p.strs(p.uint())
	p.strs(1)     // Subject
	for range 4 { // From, To, Cc, Reply-To
		p.strs(3 * min(p.uint(), uint64(len(rest))))
	}
	// The time at its longest, and no more: the copy stays small.
	d := decoder{s: string(p.rest[:min(len(p.rest), 2*binary.MaxVarintLen64)]), bad: p.bad}
	if t := d.time(); !d.bad {
		return t, nil
	}
	return time.Time{}, ErrFormat
}

// passer passes over what lies encoded; bad is set once something is wrong.
type passer struct {
	rest []byte
	bad  bool
}

func (p *passer) uint() uint64 {
	n, k := binary.Uvarint(p.rest)
	if k <= 0 {
		p.rest, p.bad = nil, true
		return 0
	}
	p.rest = p.rest[k:]
	return n
}

// strs passes over n texts.
func (p *passer) strs(n uint64) {
	for ; n > 0 && !p.bad; n-- {
		size := p.uint()
		if size > uint64(len(p.rest)) {
			p.rest, p.bad = nil, true
			return
		}
		p.rest = p.rest[size:]
	}
}

// Rendered returns the rendered items of an encoded structure without decoding the
// rest. They share b's memory.
func Rendered(b []byte) (envelope, body, bodyStructure []byte, err error) {
	items, _, err := rendered(b)
	return items[0], items[1], items[2], err
}

// rendered cuts the rendered items off an encoded structure.
func rendered(b []byte) (items [3][]byte, rest []byte, err error) {
	if len(b) == 0 || b[0] != FormatVersion {
		return items, nil, ErrFormat
	}
	b = b[1:]
	for i := range items {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return [3][]byte{}, nil, fmt.Errorf("%w: cut", ErrFormat)
		}
		end := k + int(n)
		items[i], b = b[k:end:end], b[end:]
	}
	return items, b, nil
}

type encoder struct{ b []byte }

func (e *encoder) num(n int64) { e.b = binary.AppendVarint(e.b, n) }

func (e *encoder) str(s string) {
	e.b = binary.AppendUvarint(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) strs(list []string) {
	e.b = binary.AppendUvarint(e.b, uint64(len(list)))
	for _, s := range list {
		e.str(s)
	}
}

func (e *encoder) addresses(list []Address) {
	e.b = binary.AppendUvarint(e.b, uint64(len(list)))
	for _, a := range list {
		e.str(a.Name)
		e.str(a.Local)
		e.str(a.Host)
	}
}

// time writes seconds and the zone's offset; the zero time is an offset no zone has.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.num(noTime)
		return
	}
	_, off := t.Zone()
	e.num(int64(off))
	e.num(t.Unix())
}

const noTime = 1 << 30

func (e *encoder) part(p *Part) {
	e.num(p.Header.Start)
	e.num(p.Header.Len())
	e.num(p.Body.Start - p.Header.End)
	e.num(p.Body.Len())
	e.num(p.Lines)
	for _, s := range []string{p.Type, p.Subtype, p.Encoding, p.Disposition, p.Filename, p.ContentID} {
		e.str(s)
	}
	e.b = binary.AppendUvarint(e.b, uint64(len(p.Params)))
	for _, k := range slices.Sorted(maps.Keys(p.Params)) {
		e.str(k)
		e.str(p.Params[k])
	}
	e.b = binary.AppendUvarint(e.b, uint64(len(p.Children)))
	for _, c := range p.Children {
		e.part(c)
	}
}

// decoder reads from s; once something is wrong, bad is set and zero values come.
type decoder struct {
	s     string
	bad   bool
	parts int
}

func (d *decoder) fail() { d.bad, d.s = true, "" }

func (d *decoder) uint() uint64 {
	var n uint64
	for i := 0; i < len(d.s) && i < binary.MaxVarintLen64; i++ {
		c := d.s[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.s = d.s[i+1:]
			return n
		}
	}
	d.fail()
	return 0
}

func (d *decoder) num() int64 {
	u := d.uint()
	n := int64(u >> 1)
	if u&1 != 0 {
		n = ^n
	}
	return n
}

func (d *decoder) str() string {
	n := d.uint()
	if n > uint64(len(d.s)) {
		d.fail()
		return ""
	}
	v := d.s[:n]
	d.s = d.s[n:]
	return v
}

// count reads the length of a list whose elements take at least size octets.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.s)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) strs() []string {
	n := d.count(1)
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = d.str()
	}
	return out
}

func (d *decoder) addresses() []Address {
	n := d.count(3)
	if n == 0 {
		return nil
	}
	out := make([]Address, n)
	for i := range out {
		out[i] = Address{Name: d.str(), Local: d.str(), Host: d.str()}
	}
	return out
}

func (d *decoder) time() time.Time {
	off := d.num()
	if off == noTime || d.bad {
		return time.Time{}
	}
	t := time.Unix(d.num(), 0)
	if off == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", int(off)))
}

// fields reads the decoded header fields.
func (d *decoder) fields(s *Structure) {
	s.MessageID = d.str()
	s.InReplyTo = d.strs()
	s.References = d.strs()
	s.Subject = d.str()
	s.From, s.To, s.Cc, s.ReplyTo = d.addresses(), d.addresses(), d.addresses(), d.addresses()
	s.Date = d.time()
	s.Lines = d.num()
}

func (d *decoder) part(depth int) *Part {
	if d.parts--; d.parts < 0 || depth >= MaxDepth || d.bad {
		d.fail()
		return nil
	}
	p := new(Part)
	p.Header.Start = d.num()
	p.Header.End = p.Header.Start + d.num()
	p.Body.Start = p.Header.End + d.num()
	p.Body.End = p.Body.Start + d.num()
	p.Lines = d.num()
	for _, s := range []*string{&p.Type, &p.Subtype, &p.Encoding, &p.Disposition, &p.Filename, &p.ContentID} {
		*s = d.str()
	}
	if n := d.count(2); n > 0 {
		p.Params = make(map[string]string, n)
		for range n {
			k := d.str()
			p.Params[k] = d.str()
		}
	}
	for range d.count(12) {
		c := d.part(depth + 1)
		if c == nil {
			return nil
		}
		p.Children = append(p.Children, c)
	}
	return p
}

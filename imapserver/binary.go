package imapserver

import (
	"bytes"
	"io"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
)

// binaryItems are the FETCH items of RFC 3516.
var binaryItems = map[string]fetchItem{
	"BINARY":      {kind: fetchBinary, label: "BINARY"},
	"BINARY.PEEK": {kind: fetchBinary, label: "BINARY", section: imap.FetchItemBodySection{Peek: true}},
	"BINARY.SIZE": {kind: fetchBinarySize, label: "BINARY.SIZE", section: imap.FetchItemBodySection{Peek: true}},
}

// binary reads the section of a BINARY item, which is a part number or nothing.
func (p *parser) binary(name string) fetchItem {
	it := binaryItems[name]
	s := p.section(it.section.Peek)
	if s.section.Specifier != imap.PartSpecifierNone || it.kind == fetchBinarySize && s.section.Partial != nil {
		p.fail("Bad section for BINARY")
	}
	it.section = s.section
	if p.err == nil {
		it.label += s.label[len("BODY"):]
	}
	return it
}

// writeBinary writes a part without its transfer encoding. NIL (or 0) stands for a part
// that is not there, and for one that nobody can decode; the latter fails the command
// in the end (RFC 3516 section 4.2).
func (r *fetchRun) writeBinary(it *fetchItem, ct *content) {
	open, known := r.decoded(&it.section, ct)
	if !known {
		r.undecoded = true
	}
	if open == nil {
		if it.kind == fetchBinarySize {
			r.c.out.str("0")
		} else {
			r.c.out.str("NIL")
		}
		return
	}
	d, err := measure(open(), it.section.Partial)
	if err != nil {
		r.c.out.fail(err)
		return
	}
	if it.kind == fetchBinarySize {
		r.c.out.num(uint64(d.size))
		return
	}
	r.c.out.literalOf(open(), d)
}

// decoded returns how to read a part without its transfer encoding, as often as is
// wanted; nil when there is none. known is false when its encoding is not.
func (r *fetchRun) decoded(s *imap.FetchItemBodySection, ct *content) (open func() io.Reader, known bool) {
	if len(s.Part) == 0 { // the message as a whole has no transfer encoding
		return func() io.Reader { return io.NewSectionReader(ct.Body, 0, ct.Body.Size()) }, true
	}
	part := ct.parts.Find(s.Part)
	if part == nil {
		return nil, true
	}
	if part.Encoding == "7bit" && len(part.Children) == 0 {
		head, err := mime.RawHeader(ct.Body, part)
		if err == nil && !mime.KnownEncoding(head) {
			return nil, false
		}
	}
	return func() io.Reader { return mime.DecodedBody(ct.Body, part) }, true
}

// extent is a run of decoded octets: where it begins and how many there are.
type extent struct {
	skip, size int64
	nul        bool // NUL is among them
}

// measure reads what comes before the end of a partial, or everything, to learn how
// much there is: a literal begins with its size.
func measure(r io.Reader, p *imap.SectionPartial) (d extent, err error) {
	end := int64(-1)
	if p != nil {
		d.skip, end = p.Offset, p.Offset+p.Size
	}
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := (*pooled)[:cap(*pooled)]
	for at := int64(0); end < 0 || at < end; {
		n, err := r.Read(buf)
		from, to := max(d.skip-at, 0), int64(n)
		if end >= 0 {
			to = min(to, end-at)
		}
		if from < to {
			d.size += to - from
			d.nul = d.nul || bytes.IndexByte(buf[from:to], 0) >= 0
		}
		at += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// literalOf writes an extent of what r reads as a literal, as a literal8 when NUL is in
// it; an empty one as "".
func (w *writer) literalOf(r io.Reader, d extent) {
	if d.size == 0 {
		w.str(`""`)
		return
	}
	if _, err := io.CopyN(io.Discard, r, d.skip); err != nil {
		w.fail(err)
		return
	}
	if d.nul {
		w.str("~")
	}
	w.str("{").num(uint64(d.size)).str("}\r\n")
	if _, err := io.CopyN(bytesTo{w}, r, d.size); err != nil {
		w.fail(err)
	}
}

// bytesTo lets io.CopyN write responses.
type bytesTo struct{ w *writer }

func (b bytesTo) Write(p []byte) (int, error) {
	b.w.bytes(p)
	return len(p), b.w.err
}

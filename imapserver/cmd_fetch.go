package imapserver

import (
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// fetchKind is what a FETCH item asks for.
type fetchKind int

const (
	fetchFlags fetchKind = iota
	fetchUID
	fetchDate
	fetchSize
	fetchEnvelope
	fetchBody          // BODY without brackets
	fetchBodyStructure // with extension data
	fetchSection       // BODY[...] and RFC822...
	fetchBinary        // BINARY[...] (RFC 3516)
	fetchBinarySize
	fetchModSeq  // RFC 7162
	fetchPreview // RFC 8970
	fetchSaved   // RFC 8514
	fetchEmailID // RFC 8474
	fetchThreadID
)

// fetchItem is one item of a FETCH, in the order in which it was asked for.
type fetchItem struct {
	kind    fetchKind
	label   string // how the response names it: as it was asked for
	section imap.FetchItemBodySection
}

// fetching is a FETCH command as sent.
type fetching struct {
	items    []fetchItem
	flags    bool         // FLAGS is among them
	want     mailbox.Want // what of the message is needed
	rendered bool         // ENVELOPE, BODY or BODYSTRUCTURE is among them
	parts    bool         // the decoded structure is needed
	heads    bool         // or at least the header fields in it
	preview  bool         // PREVIEW is among them
	marks    bool         // it sets \Seen

	fetchModifiers
}

var fetchMacros = map[string][]string{
	"ALL":  {"FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE"},
	"FAST": {"FLAGS", "INTERNALDATE", "RFC822.SIZE"},
	"FULL": {"FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODY"},
}

var fetchPlain = map[string]fetchKind{
	"FLAGS": fetchFlags, "UID": fetchUID, "MODSEQ": fetchModSeq, "INTERNALDATE": fetchDate, "RFC822.SIZE": fetchSize,
	"ENVELOPE": fetchEnvelope, "BODY": fetchBody, "BODYSTRUCTURE": fetchBodyStructure,
	"PREVIEW": fetchPreview, "SAVEDATE": fetchSaved, "EMAILID": fetchEmailID, "THREADID": fetchThreadID,
}

// fetchRFC822 are the old names of sections (RFC 3501 section 6.4.5).
var fetchRFC822 = map[string]fetchItem{
	"RFC822":        {label: "RFC822"},
	"RFC822.PEEK":   {label: "RFC822", section: imap.FetchItemBodySection{Peek: true}},
	"RFC822.HEADER": {label: "RFC822.HEADER", section: imap.FetchItemBodySection{Specifier: imap.PartSpecifierHeader, Peek: true}},
	"RFC822.TEXT":   {label: "RFC822.TEXT", section: imap.FetchItemBodySection{Specifier: imap.PartSpecifierText}},
	"RFC822.TEXT.PEEK": {label: "RFC822.TEXT",
		section: imap.FetchItemBodySection{Specifier: imap.PartSpecifierText, Peek: true}},
}

// maxItems is how many items a FETCH may name.
const maxItems = 500

func (p *parser) fetching(num numbering) *fetching {
	f := &fetching{}
	if num == uidNumbers {
		f.add(fetchItem{kind: fetchUID, label: "UID"})
	}
	if p.peek() == '(' {
		p.list(func() { f.item(p) })
	} else {
		from := p.i
		name := p.item()
		macro, isMacro := fetchMacros[name]
		for _, item := range macro {
			f.add(fetchItem{kind: fetchPlain[item], label: item})
		}
		if !isMacro {
			p.i = from
			f.item(p)
		}
	}
	p.fetchModifiers(f, num)
	if len(f.items) > maxItems {
		p.fail("Too many FETCH items")
	}
	return f
}

func (f *fetching) item(p *parser) {
	name := p.item()
	if !p.knows(inFetch, name) {
		p.fail("Unknown FETCH item")
		return
	}
	if old, found := fetchRFC822[name]; found {
		old.kind = fetchSection
		f.add(old)
		return
	}
	if p.peek() == '[' && (name == "BODY" || name == "BODY.PEEK") {
		f.add(p.section(name == "BODY.PEEK"))
		return
	}
	if _, found := binaryItems[name]; found && p.peek() == '[' {
		f.add(p.binary(name))
		return
	}
	kind, found := fetchPlain[name]
	if !found {
		p.fail("Unknown FETCH item")
	}
	if kind == fetchPreview {
		p.lazy()
	}
	f.add(fetchItem{kind: kind, label: name})
}

// add adds an item, unless the same one is there.
func (f *fetching) add(it fetchItem) {
	for _, have := range f.items {
		if have.label == it.label && have.kind == it.kind {
			f.marks = f.marks || (it.kind == fetchSection || it.kind == fetchBinary) && !it.section.Peek
			return
		}
	}
	f.items = append(f.items, it)
	switch it.kind {
	case fetchFlags:
		f.flags = true
	case fetchEnvelope, fetchBody, fetchBodyStructure:
		f.rendered = true
		f.want |= mailbox.WantStructure
	case fetchSection, fetchBinary, fetchBinarySize:
		f.needs(&it.section)
	case fetchPreview:
		f.preview, f.parts = true, true
		f.want |= mailbox.WantStructure | mailbox.WantBody
	case fetchThreadID:
		f.heads = true
		f.want |= mailbox.WantStructure
	}
}

// needs notes what a section is cut from.
func (f *fetching) needs(s *imap.FetchItemBodySection) {
	f.marks = f.marks || !s.Peek
	switch {
	case len(s.Part) == 0 && s.Specifier == imap.PartSpecifierHeader:
		f.want |= mailbox.WantHeader
	case len(s.Part) == 0 && s.Specifier == imap.PartSpecifierNone:
		f.want |= mailbox.WantBody
	default:
		f.parts = true
		f.want |= mailbox.WantBody | mailbox.WantStructure
	}
}

// section reads [1.2.HEADER.FIELDS (A B)]<0.100> (RFC 3501 section 6.4.5).
func (p *parser) section(peek bool) fetchItem {
	it := fetchItem{kind: fetchSection}
	it.section.Peek = peek
	from := p.i
	p.expect('[')
	for isDigit(p.peek()) {
		n := p.number()
		if n == 0 || len(it.section.Part) >= 200 {
			p.fail("Bad part number")
		}
		it.section.Part = append(it.section.Part, int(n))
		if !p.accept('.') {
			break
		}
		if !isLetter(p.peek()) && !isDigit(p.peek()) {
			p.fail("Bad section")
		}
	}
	if isLetter(p.peek()) && (len(it.section.Part) == 0 || p.b[p.i-1] == '.') {
		p.specifier(&it.section)
	}
	p.expect(']')
	if p.err != nil {
		return it
	}
	it.label = "BODY" + sectionLabel(string(p.b[from:p.i]), &it.section)
	if p.accept('<') {
		it.section.Partial = &imap.SectionPartial{Offset: p.number64()}
		p.expect('.')
		it.section.Partial.Size = p.number64()
		if it.section.Partial.Size == 0 {
			p.fail("Bad partial")
		}
		p.expect('>')
		it.label += "<" + decimal64(it.section.Partial.Offset) + ">"
	}
	return it
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// sectionLabel is a section as the response names it. Names of header fields are
// echoed as they were asked for, because Apple Mail compares them.
func sectionLabel(asked string, s *imap.FetchItemBodySection) string {
	head, tail, found := strings.Cut(asked, " (")
	if !found {
		return strings.ToUpper(asked)
	}
	if strings.Contains(tail, "\r\n") { // some came as literals
		var w writer
		for i, name := range append(s.HeaderFields, s.HeaderFieldsNot...) {
			if i > 0 {
				w.str(" ")
			}
			w.quoted(name, true)
		}
		tail = string(w.buf) + ")]"
	}
	return strings.ToUpper(head) + " (" + tail
}

func (p *parser) specifier(s *imap.FetchItemBodySection) {
	name := strings.ToUpper(p.take(func(c byte) bool { return isLetter(c) || c == '.' }))
	switch name {
	case "HEADER":
		s.Specifier = imap.PartSpecifierHeader
	case "TEXT":
		s.Specifier = imap.PartSpecifierText
	case "MIME":
		s.Specifier = imap.PartSpecifierMIME
		if len(s.Part) == 0 {
			p.fail("MIME needs a part number")
		}
	case "HEADER.FIELDS", "HEADER.FIELDS.NOT":
		s.Specifier = imap.PartSpecifierHeader
		var names []string
		p.sp()
		p.list(func() { names = append(names, p.astring()) })
		if len(names) == 0 {
			p.fail("Missing names of header fields")
		}
		if name == "HEADER.FIELDS" {
			s.HeaderFields = names
		} else {
			s.HeaderFieldsNot = names
		}
	default:
		p.fail("Unknown section")
	}
}

// fetch answers FETCH and UID FETCH.
func (c *conn) fetch(p *parser, num numbering) (reply, error) {
	p.sp()
	set := p.numSet()
	p.sp()
	f := p.fetching(num)
	if f.vanished && !c.qresync {
		p.fail("QRESYNC was not enabled")
	}
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if f.asksFor(fetchModSeq) {
		c.aware()
	}
	spans, err := c.targets(set, num)
	if err != nil {
		return reply{}, err
	}
	if f.partial != nil {
		spans = c.sel.part(spans, f.partial)
	}
	if f.vanished {
		c.writeVanishedSince(set, f.since)
	}
	run := &fetchRun{fetching: f, c: c}
	if f.marks && !c.sel.readOnly {
		if err := run.mark(spans); err != nil {
			return reply{}, err
		}
	}
	if err := run.write(spans); err != nil {
		return reply{}, err
	}
	if run.undecoded {
		return reply{no, "UNKNOWN-CTE", "The transfer encoding of a part is not known"}, nil
	}
	if run.missing > 0 && num == seqNumbers {
		return expungeIssued(), nil
	}
	return done("FETCH"), nil
}

// fetchRun is the work of one FETCH.
type fetchRun struct {
	*fetching
	c         *conn
	marked    map[imap.UID]bool // got \Seen from us: FLAGS comes with the answer
	unasked   bool              // by NOTIFY
	missing   int               // messages that are gone
	undecoded bool              // BINARY of a part whose transfer encoding is not known
	ids       []mailbox.MessageID
	fields    []byte // header fields on their way out
}

// mark sets \Seen on what is about to be read, before it is sent.
func (r *fetchRun) mark(spans []span) error {
	var uids imap.UIDSet
	r.marked = map[imap.UID]bool{}
	r.c.sel.each(spans, func(_ uint32, e mailbox.Entry) bool {
		if r.concerns(e) && !r.c.show(e.Flags).seen {
			uids = append(uids, imap.UIDRange{Start: e.UID, Stop: e.UID})
			r.marked[e.UID] = true
		}
		return true
	})
	if len(uids) == 0 {
		return nil
	}
	_, err := r.c.commit(mailbox.StoreFlags{
		Mailbox: r.c.sel.id, UIDs: uids, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen},
	})
	if err != nil {
		if isKind(err, mailbox.Refused, mailbox.Denied) { // it can be read all the same
			clear(r.marked)
			return nil
		}
		return err
	}
	r.c.changing = true
	r.c.tellBut(false, func(e mailbox.Entry) bool { return r.marked[e.UID] })
	return nil
}

// batchSize is how many messages are asked for at a time.
const batchSize = 256

type numbered struct {
	seq uint32
	mailbox.Entry
}

// write writes the responses, without the store where the snapshot is enough.
func (r *fetchRun) write(spans []span) error {
	var batch []numbered
	var err error
	flush := func() bool {
		err = r.batch(batch)
		batch = batch[:0]
		return err == nil
	}
	r.missing += r.c.sel.each(spans, func(seq uint32, e mailbox.Entry) bool {
		if !r.concerns(e) {
			return true
		}
		if r.want == 0 {
			r.response(numbered{seq, e}, nil)
			return r.c.out.err == nil
		}
		batch = append(batch, numbered{seq, e})
		return len(batch) < batchSize || flush()
	})
	if err == nil && len(batch) > 0 {
		flush()
	}
	return err
}

// batch writes the responses for messages of which something must be read.
func (r *fetchRun) batch(batch []numbered) error {
	r.ids = r.ids[:0]
	for _, n := range batch {
		r.ids = append(r.ids, n.Message)
	}
	next := 0
	err := r.c.srv.opt.Store.Read(r.c.ctx, r.c.ident.Account, r.ids, r.want, func(it *mailbox.Item) error {
		for next < len(batch) && batch[next].Message != it.Message {
			next++
			r.missing++
		}
		if next == len(batch) {
			return nil
		}
		next++
		return r.one(batch[next-1], it)
	})
	r.missing += len(batch) - next
	return err
}

// content is what was read of one message.
type content struct {
	*mailbox.Item
	envelope, body, bodyStructure []byte
	parts                         *mime.Structure
	preview                       string
}

// one writes the response for one message. What can fail comes before its first octet.
func (r *fetchRun) one(n numbered, it *mailbox.Item) (err error) {
	if r.c.out.err != nil {
		return r.c.out.err
	}
	ct := content{Item: it}
	if r.rendered {
		if ct.envelope, ct.body, ct.bodyStructure, err = it.Rendered(); err != nil {
			return err
		}
	}
	switch {
	case r.parts:
		ct.parts, err = it.Structure()
	case r.heads:
		ct.parts, err = it.Fields()
	}
	if err == nil && r.preview {
		ct.preview, err = mime.Preview(it.Body, ct.parts, maxPreview)
	}
	if err != nil {
		return err
	}
	r.response(n, &ct)
	return nil
}

// response writes one FETCH response.
func (r *fetchRun) response(n numbered, ct *content) {
	w := r.c.out
	flags := r.flags || r.marked[n.UID]
	var sh *shown
	if flags {
		sh = r.c.show(n.Flags)
	}
	w.str("* ").num(uint64(n.seq)).str(" FETCH (")
	for i := range r.items {
		if i > 0 {
			w.str(" ")
		}
		r.item(&r.items[i], n.Entry, ct, sh)
	}
	if flags && !r.flags {
		w.str(" ")
		r.c.writeFlagsItem(n.Entry, sh)
	}
	if (r.unasked || r.marked[n.UID]) && r.c.condstore { // RFC 7162 section 3.2.4
		r.identify(n.Entry)
	}
	w.str(")").crlf()
}

func (r *fetchRun) item(it *fetchItem, e mailbox.Entry, ct *content, sh *shown) {
	w := r.c.out
	if it.kind == fetchFlags {
		r.c.writeFlagsItem(e, sh)
		return
	}
	if it.kind == fetchModSeq {
		r.c.writeModSeqItem(e.ModSeq)
		return
	}
	w.str(it.label).str(" ")
	switch it.kind {
	case fetchUID:
		w.num(uint64(e.UID))
	case fetchSize:
		w.num(uint64(e.Size))
	case fetchDate:
		w.str(e.Internal().Format(dateTimeLayout))
	case fetchEnvelope:
		w.bytes(ct.envelope)
	case fetchBody:
		w.bytes(ct.body)
	case fetchBodyStructure:
		w.bytes(ct.bodyStructure)
	case fetchSection:
		r.writeSection(&it.section, ct)
	case fetchBinary, fetchBinarySize:
		r.writeBinary(it, ct)
	case fetchPreview:
		w.quoted(ct.preview, r.c.utf8 || r.c.rev2)
	case fetchSaved:
		w.str(savedDate(e))
	case fetchEmailID:
		w.str("(").str(emailID(e)).str(")")
	case fetchThreadID:
		w.str("(").str(threadID(ct.parts, e)).str(")")
	}
}

package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// parsed prepares an AddMessage of a whole message with its real structure.
func (f *fixture) parsed(raw string, places ...mailbox.MailboxID) mailbox.AddMessage {
	f.Helper()
	op := f.message(raw, places...)
	st, err := mime.Parse(strings.NewReader(raw), int64(len(raw)))
	f.ok(err)
	op.Structure = st
	return op
}

// mail is a message with a header of its own and a body of size octets.
func mail(i, size int) (header, raw string) {
	header = fmt.Sprintf("Subject: number %d\r\nX-Pad: %s\r\n\r\n", i, strings.Repeat("p", i%97))
	return header, header + strings.Repeat("body of it\r\n", size/12+1)[:size]
}

// sizes of bodies: none, a few octets, the border of what is kept in files, large.
var bodySizes = []int{0, 5, 4000, 100 << 10, 128<<10 - 40, 128 << 10, 400 << 10}

// read is one item as a Read gave it, copied.
type read struct {
	id                  mailbox.MessageID
	header, body        string
	headerSize          int64
	envelope, structure string
	subject             string
}

// readAll reads ids and copies all that is there.
func (f *fixture) readAll(ids []mailbox.MessageID, want mailbox.Want) []read {
	f.Helper()
	var out []read
	f.ok(f.s.Read(f.ctx, account, ids, want, func(it *mailbox.Item) error {
		envelope, _, structure, err := it.Rendered()
		f.ok(err)
		st, err := it.Structure()
		f.ok(err)
		fields, err := it.Fields()
		f.ok(err)
		st.Root, st.Envelope, st.Body, st.BodyStructure = nil, nil, nil, nil
		f.same("fields", *fields, *st)
		got := read{it.Message, string(it.Header), "", it.HeaderSize, string(envelope), string(structure), st.Subject}
		if it.Body != nil {
			all, err := io.ReadAll(io.NewSectionReader(it.Body, 0, it.Body.Size()))
			f.ok(err)
			got.body = string(all)
		}
		out = append(out, got)
		return nil
	}))
	return out
}

func testRead(f *fixture) {
	var ids []mailbox.MessageID
	var all []read
	for i := range 6 * len(bodySizes) {
		header, raw := mail(i, bodySizes[i%len(bodySizes)])
		op := f.parsed(raw, inbox)
		f.commit(op)
		ids = append(ids, op.ID)
		all = append(all, read{op.ID, header, raw, int64(len(header)), string(op.Structure.Envelope), string(op.Structure.BodyStructure), op.Structure.Subject})
	}
	for want := range mailbox.WantStructure | mailbox.WantHeader | mailbox.WantBody + 1 {
		f.wanted(ids, all, want)
	}
	f.reopen()
	f.wanted(ids, all, mailbox.WantStructure|mailbox.WantHeader|mailbox.WantBody)
	f.readOrder(ids)
}

// wanted compares what a Read gives with what was stored, as far as it is wanted.
func (f *fixture) wanted(ids []mailbox.MessageID, all []read, want mailbox.Want) {
	f.Helper()
	got := f.readAll(ids, want)
	if len(got) != len(all) {
		f.Fatalf("want %d: %d items of %d", want, len(got), len(all))
	}
	for i, exp := range all {
		if want&mailbox.WantStructure == 0 {
			exp.envelope, exp.structure, exp.subject = "NIL", "NIL", ""
		}
		if want&mailbox.WantHeader == 0 {
			exp.header, exp.headerSize = "", 0
		}
		if want&mailbox.WantBody == 0 {
			exp.body = ""
		}
		if got[i] != exp {
			f.Errorf("want %d: message %d of %d octets is not what was stored", want, exp.id, len(all[i].body))
		}
	}
}

// readOrder: as asked, also twice; what is missing is passed over; an error ends it.
func (f *fixture) readOrder(ids []mailbox.MessageID) {
	f.Helper()
	f.commit(mailbox.RemoveEntry{Message: ids[2], Mailbox: inbox}, mailbox.RemoveEntry{Message: ids[6], Mailbox: inbox})
	ask := slices.Concat([]mailbox.MessageID{ids[9], 999_999, ids[1], ids[1]}, ids[:8])
	var got []mailbox.MessageID
	for _, r := range f.readAll(ask, mailbox.WantHeader) {
		got = append(got, r.id)
	}
	f.same("order", got, []mailbox.MessageID{ids[9], ids[1], ids[1], ids[0], ids[1], ids[3], ids[4], ids[5], ids[7]})
	stop := errors.New("stop")
	calls := 0
	err := f.s.Read(f.ctx, account, ids, mailbox.WantBody, func(*mailbox.Item) error { calls++; return stop })
	f.same("stopped", []any{err, calls}, []any{stop, 1})
	f.kind(f.s.Read(f.ctx, "nobody000", ids, mailbox.WantBody, func(*mailbox.Item) error { return nil }), mailbox.NotFound)
}

// testReadCopies: a copy is read like its source, also when that is gone; a message
// without a structure has NIL items and no header.
func testReadCopies(f *fixture) {
	header, raw := mail(1, 3000)
	op := f.parsed(raw, inbox)
	f.commit(op)
	f.commit(mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1")})
	f.commit(mailbox.RemoveEntry{Message: op.ID, Mailbox: inbox})
	copied := f.entry(plain, 1).Message
	got := f.readAll([]mailbox.MessageID{op.ID, copied}, mailbox.WantStructure|mailbox.WantHeader)
	f.same("copy", got, []read{{copied, header, "", int64(len(header)), string(op.Structure.Envelope), string(op.Structure.BodyStructure), "number 1"}})

	bare := f.message("no structure", inbox)
	bare.Structure = nil
	f.commit(bare)
	got = f.readAll([]mailbox.MessageID{bare.ID}, mailbox.WantStructure|mailbox.WantHeader|mailbox.WantBody)
	f.same("without a structure", got, []read{{bare.ID, "", "no structure", 0, "NIL", "NIL", ""}})
}

// testReadLongHeader: a header is cut at MaxHeader.
func testReadLongHeader(f *fixture) {
	header := "X-Long: " + strings.Repeat("y", mailbox.MaxHeader) + "\r\n\r\n"
	op := f.parsed(header+"body", inbox)
	f.commit(op)
	f.ok(f.s.Read(f.ctx, account, []mailbox.MessageID{op.ID}, mailbox.WantHeader, func(it *mailbox.Item) error {
		if it.HeaderSize != int64(len(header)) || !bytes.Equal(it.Header, []byte(header)[:mailbox.MaxHeader]) {
			f.Errorf("a header of %d octets reads as %d of %d", len(header), len(it.Header), it.HeaderSize)
		}
		return nil
	}))
}

// testReadHoldsNothing: whoever is called may take long. Commits and even Close go on
// meanwhile, and what was handed over stays readable until the call returns.
func testReadHoldsNothing(f *fixture) {
	var ids []mailbox.MessageID
	for i := range 30 {
		_, raw := mail(i, 60<<10)
		op := f.parsed(raw, inbox)
		f.commit(op)
		ids = append(ids, op.ID)
	}
	calls := 0
	err := f.s.Read(f.ctx, account, ids, mailbox.WantBody|mailbox.WantStructure, func(it *mailbox.Item) error {
		calls++
		if calls == 1 {
			f.commit(store(inbox, "1:*", imap.StoreFlagsAdd, imap.FlagSeen))
			closed := make(chan struct{})
			s := f.s
			go func() { _ = s.Close(); close(closed) }()
			select {
			case <-closed:
			case <-time.After(10 * time.Second):
				return errors.New("a Close waits for the reader")
			}
		}
		_, raw := mail(calls-1, 60<<10)
		got := make([]byte, it.Body.Size())
		if _, err := it.Body.ReadAt(got, 0); err != nil || string(got) != raw {
			f.Errorf("message %d cannot be read after Close: %v", calls, err)
		}
		return nil
	})
	if !errors.Is(err, mailbox.ErrClosed) || calls > 5 {
		f.Errorf("after %d calls: %v", calls, err)
	}
	f.start()
}

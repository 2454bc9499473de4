package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func testAdd(f *fixture) {
	op := f.message("hello", inbox, action)
	op.Date = time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", -7*3600-1800))
	op.Flags = []imap.Flag{`\flagged`, "Work", `\DELETED`, `\Recent`}
	op.Tag = "approval:1"
	res := f.commit(op)
	uids := res.UIDs[op.ID]
	if len(uids) != 2 || uids[0].Mailbox != inbox || uids[1].Mailbox != action || uids[0].UID != 1 || uids[1].UID != 1 {
		f.Fatalf("UIDs %+v", uids)
	}
	f.same("UIDVALIDITY", uids[0].UIDValidity, f.snap(inbox).Mailbox.UIDValidity)
	e := f.entry(inbox, 1)
	f.same("entry", []any{e.Message, e.ModSeq, e.Size, e.Zone, e.Date, e.Deleted}, []any{op.ID, res.ModSeq, 5, -450, op.Date.Unix(), true})
	f.same("INTERNALDATE", e.Internal().Format(time.RFC3339), op.Date.Format(time.RFC3339))
	f.same("flags", f.flags(action, 1), `\Flagged Work \Deleted`)
	f.same("body", f.body(op.ID), "hello")
	f.same("places", f.places(op.ID), "1/1 2/1")
	f.same("UIDNEXT", f.snap(inbox).UIDNext(), 2)

	before := time.Now().Unix()
	_, uid := f.add("now", inbox)
	if e := f.entry(inbox, uid); e.Date < before-1 || e.Saved < before-1 || e.Saved > time.Now().Unix()+1 {
		f.Errorf("a message without a date got %+v at %d", e, before)
	}
}

func testAddRefused(f *fixture) {
	op := f.message("one", inbox)
	f.commit(op)
	f.fails(mailbox.Conflict, op)
	f.fails(mailbox.Invalid, f.message("no place"))
	unknown := f.message("unknown id", inbox)
	unknown.ID += 1000
	f.fails(mailbox.Invalid, unknown)
	unknown.ID = 0
	f.fails(mailbox.Invalid, unknown)
	twice := f.message("twice", inbox, inbox)
	f.fails(mailbox.Conflict, twice)
	nowhere := f.message("nowhere", 4711)
	f.same("code", f.fails(mailbox.NotFound, nowhere).Code, "TRYCREATE")
	unstaged := f.message("bytes", inbox)
	unstaged.Blob.ID = strings.Repeat("ab", 32)
	f.fails(mailbox.Transient, unstaged)
	unstaged.Blob.ID = "../../etc/passwd"
	f.fails(mailbox.Invalid, unstaged)
	bad := f.message("flags", inbox)
	for _, fl := range []imap.Flag{`\Nonsense`, "two words", "par(en", "", "ümlaut", `\*`} {
		bad.Flags = []imap.Flag{fl}
		f.fails(mailbox.Invalid, bad)
	}
	f.same("what is there", f.uids(inbox), "1")
}

func testEntriesAndHolds(f *fixture) {
	id, _ := f.add("m", inbox)
	f.commit(mailbox.AddEntry{Message: id, Mailbox: action})
	f.fails(mailbox.Conflict, mailbox.AddEntry{Message: id, Mailbox: action})
	f.fails(mailbox.Conflict, mailbox.AddEntry{Message: id + 100, Mailbox: action})
	f.same("places", f.places(id), "1/1 2/1")
	f.commit(mailbox.RemoveEntry{Message: id, Mailbox: inbox})
	f.fails(mailbox.Conflict, mailbox.RemoveEntry{Message: id, Mailbox: inbox})
	f.commit(mailbox.RemoveEntry{Message: id, Mailbox: inbox, IfPresent: true})
	f.commit(mailbox.Hold{Message: id, Name: "run/1"}, mailbox.Hold{Message: id, Name: "run/2"})
	f.commit(mailbox.RemoveEntry{Message: id, Mailbox: action})
	f.same("held body", f.body(id), "m")
	f.commit(mailbox.Hold{Message: id, Name: "run/1", Release: true})
	f.commit(mailbox.AddEntry{Message: id, Mailbox: inbox})
	f.same("new UID", f.places(id), "1/2")
	f.commit(mailbox.RemoveEntry{Message: id, Mailbox: inbox}, mailbox.Hold{Message: id, Name: "run/2", Release: true})
	_, err := f.s.OpenMessage(f.ctx, account, id)
	f.kind(err, mailbox.NotFound)
	f.fails(mailbox.Conflict, mailbox.Hold{Message: id, Name: "run/3"})
	f.commit(mailbox.Hold{Message: id, Name: "run/3", Release: true})

	held := f.message("only held")
	held.Hold = []string{"x"}
	f.commit(held)
	f.same("body", f.body(held.ID), "only held")
	f.commit(mailbox.SetTag{Message: held.ID, Old: "", New: "t"})
	f.fails(mailbox.Conflict, mailbox.SetTag{Message: held.ID, Old: "", New: "u"})
	f.fails(mailbox.Conflict, mailbox.SetTag{Message: held.ID + 100, Old: "", New: "u"})
}

func testBlobs(f *fixture) {
	for _, size := range []int{0, 1, 128 << 10, 128<<10 + 1, 1 << 20} {
		text := strings.Repeat("x", size)
		b := f.stage(text)
		f.same("size", b.Size, size)
		open := func(when string) {
			f.Helper()
			body, err := f.s.OpenBlob(f.ctx, account, b.ID)
			f.ok(err)
			if got := f.drain(body); got != text {
				f.Errorf("%s: blob of %d octets reads as %d others", when, size, len(got))
			}
		}
		open("staged")
		op := f.message("about to change", inbox)
		op.Blob = b
		f.commit(op)
		open("stored")
		f.reopen()
		open("after a new start")
		body, err := f.s.OpenMessage(f.ctx, account, op.ID)
		f.ok(err)
		f.commit(mailbox.RemoveEntry{Message: op.ID, Mailbox: inbox})
		if got := f.drain(body); got != text {
			f.Errorf("an open body of %d octets is unreadable after the message went", size)
		}
		_, err = f.s.OpenBlob(f.ctx, account, b.ID)
		f.kind(err, mailbox.NotFound)
	}
	_, err := f.s.Stage(f.ctx, account, strings.NewReader("12345"), 4)
	f.kind(err, mailbox.TooLarge)
	_, err = f.s.Stage(f.ctx, account, strings.NewReader(strings.Repeat("x", 300<<10)), 299<<10)
	f.kind(err, mailbox.TooLarge)
	_, err = f.s.Stage(f.ctx, account, strings.NewReader("1234"), 4)
	f.ok(err)
	broken := errors.New("cut")
	_, err = f.s.Stage(f.ctx, account, failing{broken}, 0)
	if !errors.Is(err, broken) {
		f.Errorf("a broken reader gives %v", err)
	}
	testBlobSharing(f)
}

type failing struct{ err error }

func (r failing) Read([]byte) (int, error) { return 0, r.err }

// testBlobSharing: equal bytes are kept as long as somebody needs them.
func testBlobSharing(f *fixture) {
	for _, text := range []string{"small", strings.Repeat("large", 100<<10)} {
		a, _ := f.add(text, inbox)
		b, _ := f.add(text, inbox)
		waiting := f.message(text, inbox) // staged a third time
		f.commit(mailbox.Append{Stream: "s" + text[:5], Events: [][]byte{{1}}, Blobs: []mailbox.Blob{waiting.Blob, waiting.Blob}})
		f.commit(mailbox.RemoveEntry{Message: a, Mailbox: inbox})
		f.same("second", f.body(b), text)
		f.commit(mailbox.RemoveEntry{Message: b, Mailbox: inbox})
		body, err := f.s.OpenBlob(f.ctx, account, waiting.Blob.ID)
		f.ok(err)
		f.same("kept by a stream", f.drain(body), text)
		again := f.message(text, inbox)
		f.commit(mailbox.DropStream{Stream: "s" + text[:5]})
		f.commit(again)
		f.same("staged while the last one went", f.body(again.ID), text)
	}
}

func testMessages(f *fixture) {
	var ids []mailbox.MessageID
	for i := range 40 {
		op := f.message(fmt.Sprint("subject ", i), inbox)
		op.Structure.Envelope = []byte(strings.Repeat("e", 20<<10)) // several transactions
		op.Flags = []imap.Flag{imap.FlagSeen}
		op.Tag = fmt.Sprint("tag", i)
		f.commit(op)
		ids = append(ids, op.ID)
	}
	f.commit(mailbox.RemoveEntry{Message: ids[3], Mailbox: inbox})
	ask := append([]mailbox.MessageID{ids[39], 999_999}, ids...)
	var got []mailbox.MessageID
	err := f.s.Messages(f.ctx, account, ask, func(m *mailbox.Message) error {
		got = append(got, m.ID)
		if i := len(got) - 1; i == 1 {
			f.same("message", []any{m.Structure.Subject, m.Flags, m.Tag, m.Size, len(m.Structure.Envelope)},
				[]any{"subject 0", `[\Seen]`, "tag0", 9, 20 << 10})
			f.commit(f.message("a commit inside of the callback", inbox)) // must not block
		}
		return nil
	})
	f.ok(err)
	want := append([]mailbox.MessageID{ids[39]}, ids[:3]...)
	f.same("order", got, append(want, ids[4:]...))
	stop := errors.New("stop")
	calls := 0
	err = f.s.Messages(f.ctx, account, ids, func(*mailbox.Message) error { calls++; return stop })
	f.same("stopped", []any{err, calls}, []any{stop, 1})
}

// Package storetest is the conformance suite of mailbox.Store. Every Store runs
// it; what it does not test is not promised.
//
//	storetest.Run(t, func(t *testing.T, dir string) mailbox.Store { ... })
//
// The function opens a store on dir, which may hold what an earlier one left. The
// suite closes it. A store with SetGuard or Gone is tested for these too.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// Open opens a store on a directory.
type Open func(t *testing.T, dir string) mailbox.Store

const (
	account = mailbox.AccountID("me0000000")
	inbox   = mailbox.Inbox
	action  = mailbox.MailboxID(2)
	below   = mailbox.MailboxID(3) // Action/Approve
	plain   = mailbox.MailboxID(12)
	trash   = mailbox.MailboxID(14)
)

// seeds: INBOX and Archive are no system mailboxes here, so that both kinds occur.
var seeds = []mailbox.Mailbox{
	{ID: inbox, Name: "INBOX", Subscribed: true},
	{ID: action, Name: "Action", SpecialUse: imap.MailboxAttrImportant, Subscribed: true, System: true},
	{ID: below, Name: "Action/Approve", Subscribed: true, System: true},
	{ID: plain, Name: "Archive", SpecialUse: imap.MailboxAttrArchive},
	{ID: trash, Name: "Trash", SpecialUse: imap.MailboxAttrTrash, System: true, Hidden: true},
}

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for _, tt := range []struct {
		name string
		fn   func(f *fixture)
	}{
		{"Add", testAdd},
		{"AddRefused", testAddRefused},
		{"EntriesAndHolds", testEntriesAndHolds},
		{"Blobs", testBlobs},
		{"Messages", testMessages},
		{"Read", testRead},
		{"ReadCopies", testReadCopies},
		{"ReadLongHeader", testReadLongHeader},
		{"ReadHoldsNothing", testReadHoldsNothing},
		{"Lacking", testLacking},
		{"StoreFlags", testStoreFlags},
		{"FlagSpelling", testFlagSpelling},
		{"FlagLimits", testFlagLimits},
		{"UnchangedSince", testUnchangedSince},
		{"MarkMessage", testMarkMessage},
		{"FlagsAreTheMessages", testFlagsAreTheMessages},
		{"Content", testContent},
		{"CopyAndMove", testCopyAndMove},
		{"UIDSets", testUIDSets},
		{"Expunge", testExpunge},
		{"UIDsNeverComeBack", testUIDsNeverComeBack},
		{"Seeds", testSeeds},
		{"CreateMailbox", testCreateMailbox},
		{"DeleteMailbox", testDeleteMailbox},
		{"RenameOnto", testRenameOnto},
		{"RenameMailbox", testRenameMailbox},
		{"RenameInbox", testRenameInbox},
		{"MailboxNames", testMailboxNames},
		{"Streams", testStreams},
		{"Records", testRecords},
		{"Sums", testSums},
		{"Due", testDue},
		{"Claims", testClaims},
		{"Epoch", testEpoch},
		{"Fence", testFence},
		{"Races", testRaces},
		{"ClaimRaces", testClaimRaces},
		{"WakeUps", testWakeUps},
		{"AllOrNothing", testAllOrNothing},
		{"LaterOpsSeeEarlierOnes", testLaterOps},
		{"GroupIsolation", testGroupIsolation},
		{"ConcurrentAdds", testConcurrentAdds},
		{"Cancelled", testCancelled},
		{"Watch", testWatch},
		{"Snapshots", testSnapshots},
		{"RandomOps", testRandomOps},
		{"Gone", testGone},
		{"Space", testSpace},
		{"GuardAsked", testGuardAsked},
		{"GuardRefuses", testGuardRefuses},
		{"GuardAlso", testGuardAlso},
		{"GuardInstead", testGuardInstead},
		{"GuardShares", testGuardShares},
		{"GuardView", testGuardView},
		{"GuardCopies", testGuardCopies},
		{"View", testView},
		{"ViewRead", testViewRead},
		{"ViewThrough", testViewThrough},
		{"ViewClosed", testViewClosed},
		{"ViewGuard", testViewGuard},
		{"ViewSteps", testViewSteps},
		{"ViewRandomOps", testViewRandomOps},
		{"Reopen", testReopen},
		{"Closed", testClosed},
		{"Accounts", testAccounts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, ctx: t.Context(), dir: t.TempDir(), open: open}
			f.start()
			tt.fn(f)
			f.consistent()
			if f.s != nil {
				f.ok(f.s.Close())
			}
		})
	}
}

// fixture is a store with one account, and short names for what tests do.
type fixture struct {
	*testing.T
	ctx  context.Context
	dir  string
	open Open
	s    mailbox.Store
}

func (f *fixture) start() {
	f.Helper()
	f.s = f.open(f.T, f.dir)
	f.ok(f.s.CreateAccount(f.ctx, account, seeds))
}

func (f *fixture) reopen() {
	f.Helper()
	f.ok(f.s.Close())
	f.start()
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) kind(err error, want mailbox.Kind) *mailbox.Error {
	f.Helper()
	var me *mailbox.Error
	if !errors.As(err, &me) {
		f.Fatalf("error %v, want an *Error of kind %v", err, want)
	}
	if me.Kind != want {
		f.Fatalf("error %v, want kind %v", err, want)
	}
	return me
}

func (f *fixture) commit(ops ...mailbox.Op) mailbox.Result {
	f.Helper()
	res, err := f.s.Commit(f.ctx, account, mailbox.Tx{Ops: ops})
	f.ok(err)
	return res
}

func (f *fixture) fails(want mailbox.Kind, ops ...mailbox.Op) *mailbox.Error {
	f.Helper()
	_, err := f.s.Commit(f.ctx, account, mailbox.Tx{Ops: ops})
	return f.kind(err, want)
}

func (f *fixture) stage(body string) mailbox.Blob {
	f.Helper()
	b, err := f.s.Stage(f.ctx, account, strings.NewReader(body), 0)
	f.ok(err)
	return b
}

func (f *fixture) nextID() mailbox.MessageID {
	f.Helper()
	id, err := f.s.NextMessageID(account)
	f.ok(err)
	return id
}

// message prepares an AddMessage of a text.
func (f *fixture) message(text string, places ...mailbox.MailboxID) mailbox.AddMessage {
	f.Helper()
	return mailbox.AddMessage{ID: f.nextID(), Blob: f.stage(text), Places: places,
		Structure: &mime.Structure{Root: &mime.Part{Type: "text", Subtype: "plain"}, Subject: text, MessageID: text + "@test"}}
}

// add adds a message and returns its id and the UID of its first place.
func (f *fixture) add(text string, places ...mailbox.MailboxID) (mailbox.MessageID, imap.UID) {
	f.Helper()
	op := f.message(text, places...)
	res := f.commit(op)
	return op.ID, res.UIDs[op.ID][0].UID
}

func (f *fixture) snap(id mailbox.MailboxID) *mailbox.Snapshot {
	f.Helper()
	s, err := f.s.Snapshot(f.ctx, account, id)
	f.ok(err)
	return s
}

func (f *fixture) entry(id mailbox.MailboxID, uid imap.UID) mailbox.Entry {
	f.Helper()
	e, ok := f.snap(id).Find(uid)
	if !ok {
		f.Fatalf("no UID %d in mailbox %d", uid, id)
	}
	return e
}

// uids lists the UIDs of a mailbox as text.
func (f *fixture) uids(id mailbox.MailboxID) string {
	f.Helper()
	var set imap.UIDSet
	for _, e := range f.snap(id).All() {
		set.AddNum(e.UID)
	}
	return set.String()
}

func (f *fixture) flags(id mailbox.MailboxID, uid imap.UID) string {
	f.Helper()
	e := f.entry(id, uid)
	var out []string
	for _, fl := range f.s.Flags(account, e.Flags) {
		out = append(out, string(fl))
	}
	if e.Deleted {
		out = append(out, `\Deleted`)
	}
	return strings.Join(out, " ")
}

func (f *fixture) body(id mailbox.MessageID) string {
	f.Helper()
	b, err := f.s.OpenMessage(f.ctx, account, id)
	f.ok(err)
	return f.drain(b)
}

func (f *fixture) drain(b mailbox.Body) string {
	f.Helper()
	all, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	f.ok(err)
	f.ok(b.Close())
	return string(all)
}

func (f *fixture) places(id mailbox.MessageID) string {
	f.Helper()
	ps, err := f.s.Places(f.ctx, account, id)
	f.ok(err)
	var out []string
	for _, p := range ps {
		out = append(out, fmt.Sprintf("%d/%d", p.Mailbox, p.Entry.UID))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (f *fixture) mailbox(name string) (mailbox.Mailbox, bool) {
	f.Helper()
	all, err := f.s.Mailboxes(f.ctx, account)
	f.ok(err)
	i := slices.IndexFunc(all, func(m mailbox.Mailbox) bool { return m.Name == name })
	if i < 0 {
		return mailbox.Mailbox{}, false
	}
	return all[i], true
}

func (f *fixture) names() string {
	f.Helper()
	all, err := f.s.Mailboxes(f.ctx, account)
	f.ok(err)
	var out []string
	for _, m := range all {
		if m.ID >= mailbox.FirstUserMailbox {
			out = append(out, m.Name)
		}
	}
	return strings.Join(out, " ")
}

func (f *fixture) same(what string, got, want any) {
	f.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// consistent checks what must hold at every moment: counters agree with entries,
// UIDs grow and stay below UIDNEXT, entries and messages point at each other, and
// a message lies in a mailbox once at most.
func (f *fixture) consistent() {
	f.Helper()
	if f.s == nil {
		return
	}
	all, err := f.s.Mailboxes(f.ctx, account)
	f.ok(err)
	validity := map[uint32]string{}
	for _, m := range all {
		if other := validity[m.UIDValidity]; other != "" || m.UIDValidity == 0 {
			f.Errorf("UIDVALIDITY %d of %s is also that of %q", m.UIDValidity, m.Name, other)
		}
		validity[m.UIDValidity] = m.Name
		f.consistentBox(m)
	}
}

func (f *fixture) consistentBox(m mailbox.Mailbox) {
	f.Helper()
	s := f.snap(m.ID)
	f.same("snapshot row of "+m.Name, s.Mailbox, m)
	var exists, unseen, deleted uint32
	var size int64
	var last imap.UID
	messages := map[mailbox.MessageID]bool{}
	for i, e := range s.All() {
		if e.UID <= last || e.UID >= m.UIDNext || s.At(i) != e || e.ModSeq > m.HighestModSeq || messages[e.Message] {
			f.Errorf("%s: entry %d after UID %d: %+v, at %+v, row %+v", m.Name, i, last, e, s.At(i), m)
		}
		last, messages[e.Message] = e.UID, true
		exists, size = exists+1, size+int64(e.Size)
		if !slices.Contains(f.s.Flags(account, e.Flags), imap.FlagSeen) {
			unseen++
		}
		if e.Deleted {
			deleted++
		}
		ps, err := f.s.Places(f.ctx, account, e.Message)
		f.ok(err)
		if m.View {
			f.standsFor(e, ps)
			continue
		}
		if !slices.Contains(ps, mailbox.Place{Mailbox: m.ID, Entry: e}) {
			f.Errorf("%s: entry %+v is not among the places of its message: %+v", m.Name, e, ps)
		}
		for _, p := range ps {
			if p.Entry.Flags != e.Flags || p.Entry.Content != e.Content || p.Entry.Content == 0 {
				f.Errorf("%s: entry %+v and another of its message, %+v, do not agree", m.Name, e, p)
			}
		}
	}
	f.same("counters of "+m.Name, []any{m.Exists, m.Unseen, m.Deleted, m.Size, s.Len()}, []any{exists, unseen, deleted, size, exists})
}

func uidSet(s string) imap.UIDSet {
	var set imap.UIDSet
	for part := range strings.SplitSeq(s, ",") {
		var a, b uint32
		if n, _ := fmt.Sscanf(strings.ReplaceAll(part, "*", "0"), "%d:%d", &a, &b); n == 1 {
			b = a
		}
		set = append(set, imap.UIDRange{Start: imap.UID(a), Stop: imap.UID(b)})
	}
	return set
}

func store(id mailbox.MailboxID, uids string, op imap.StoreFlagsOp, flags ...imap.Flag) mailbox.StoreFlags {
	return mailbox.StoreFlags{Mailbox: id, UIDs: uidSet(uids), Op: op, Flags: flags}
}

// within fails the test when ch stays silent for long.
func (f *fixture) within(ch <-chan struct{}, what string) {
	f.Helper()
	select {
	case <-ch:
	case <-time.After(10 * time.Second):
		f.Fatalf("%s: nothing within 10 s", what)
	}
}

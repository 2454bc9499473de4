package imapserver

import (
	"bytes"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"pizza/mailbox"
)

// A flag of a message changes in each of its entries, and each has its mod-sequence told
// to whoever has that mailbox selected.
func TestModSeqOfFurtherEntries(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	blob, err := h.store.Stage(t.Context(), account, bytes.NewReader([]byte(mail)), 0)
	check(t, err)
	id, err := h.store.NextMessageID(account)
	check(t, err)
	_, err = h.store.Commit(t.Context(), account, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.AddMessage{ID: id, Blob: blob, Places: []mailbox.MailboxID{mailbox.Inbox, 2}},
	}})
	check(t, err)
	inbox, action := h.dial("i"), h.dial("a")
	for w, name := range map[*wire]string{inbox: "INBOX", action: "Action"} {
		w.must("LOGIN me secret")
		w.must("SELECT %s (CONDSTORE)", name)
	}
	action.must(`STORE 1 +FLAGS (\Flagged)`)
	highest := decimal64(int64(h.box("INBOX").HighestModSeq))
	want := `* 1 FETCH (UID 1 FLAGS (\Flagged \Recent) MODSEQ (` + highest + "))"
	if got := inbox.must("NOOP"); got[0] != want {
		t.Errorf("INBOX was told %q, want %q", got[0], want)
	}
	before := h.box("INBOX").HighestModSeq
	action.must(`STORE 1 +FLAGS (\Deleted)`) // belongs to the entry in Action only
	if got := inbox.must("NOOP"); len(got) != 1 || h.box("INBOX").HighestModSeq != before {
		t.Errorf("INBOX was told %q of another entry's flag", got)
	}
}

// TestCondstoreClient uses CONDSTORE with another implementation.
func TestCondstoreClient(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for range 3 {
		h.deliver("INBOX", []byte(mail))
	}
	c, err := imapclient.DialInsecure(h.addr, nil)
	check(t, err)
	defer c.Close()
	check(t, c.Login("me", "secret").Wait())
	if caps := c.Caps(); !caps.Has(imap.CapCondStore) || !caps.Has(imap.CapQResync) {
		t.Errorf("capabilities %v", caps)
	}
	data, err := c.Select("INBOX", &imap.SelectOptions{CondStore: true}).Wait()
	check(t, err)
	if data.HighestModSeq != uint64(h.box("INBOX").HighestModSeq) {
		t.Errorf("HIGHESTMODSEQ %d", data.HighestModSeq)
	}
	seen := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagSeen}}
	told, err := c.Store(imap.UIDSetNum(2), seen, &imap.StoreOptions{UnchangedSince: data.HighestModSeq}).Collect()
	check(t, err)
	if len(told) != 1 || told[0].UID != 2 || told[0].ModSeq != data.HighestModSeq+1 {
		t.Errorf("STORE told %+v", told)
	}
	msgs, err := c.Fetch(imap.SeqSet{{Start: 1, Stop: 0}}, &imap.FetchOptions{Flags: true, UID: true, ChangedSince: data.HighestModSeq}).Collect()
	check(t, err)
	if len(msgs) != 1 || msgs[0].UID != 2 || len(msgs[0].Flags) == 0 || msgs[0].ModSeq != data.HighestModSeq+1 {
		t.Errorf("FETCH CHANGEDSINCE = %+v", msgs)
	}
	found, err := c.UIDSearch(&imap.SearchCriteria{ModSeq: &imap.SearchCriteriaModSeq{ModSeq: data.HighestModSeq + 1}}, &imap.SearchOptions{ReturnAll: true}).Wait()
	check(t, err)
	if uids := found.AllUIDs(); len(uids) != 1 || uids[0] != 2 || found.ModSeq != data.HighestModSeq+1 {
		t.Errorf("SEARCH MODSEQ = %v, %d", uids, found.ModSeq)
	}
	st, err := c.Status("INBOX", &imap.StatusOptions{HighestModSeq: true}).Wait()
	check(t, err)
	if st.HighestModSeq != data.HighestModSeq+1 {
		t.Errorf("STATUS = %+v", st)
	}
}

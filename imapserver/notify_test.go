package imapserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// TestListener lets sessions change a mailbox at the same time. A client that sent NOTIFY
// and then nothing must know what the mailbox holds in the end.
func TestListener(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for range 10 {
		h.deliver("INBOX", []byte(mail))
	}
	l := h.dial("l")
	l.must("LOGIN me secret")
	l.must("SELECT INBOX")
	l.must("FETCH 1:* (UID FLAGS)")
	l.must("NOTIFY SET (SELECTED (MessageNew (UID FLAGS) MessageExpunge FlagChange)) (PERSONAL (MessageNew MessageExpunge FlagChange MailboxName))")
	var wg sync.WaitGroup
	for i := range 3 {
		w := h.dial(string(rune('a' + i)))
		w.must("LOGIN me secret")
		w.must("SELECT INBOX")
		wg.Go(func() { w.wander(rand.New(rand.NewPCG(uint64(i), 5)), 40) })
	}
	wg.Wait()
	h.deliver("INBOX", []byte(mail), "the-end")
	for {
		s, err := l.response()
		if err != nil {
			t.Fatal(err)
		}
		l.follow("NOTIFY", s)
		if strings.Contains(s, "FETCH") && strings.Contains(s, "the-end") {
			break
		}
	}
	told := fmt.Sprint(l.uids, l.flags)
	w := h.dial("z")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	w.must("FETCH 1:* (UID FLAGS)")
	if is := fmt.Sprint(w.uids, w.flags); told != is {
		t.Errorf("told %s\nis   %s", told, is)
	}
	for _, e := range l.errs {
		t.Error(e)
	}
	if strings.Contains(h.log.String(), "panic") {
		t.Error("panic in the log")
	}
}

// deaf is a store whose list of mailboxes fails when it is told to.
type deaf struct {
	store
	mu  sync.Mutex
	err error
}

func (d *deaf) Mailboxes(ctx context.Context, id mailbox.AccountID) ([]mailbox.Mailbox, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, d.err
	}
	return d.store.Mailboxes(ctx, id)
}

func (d *deaf) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// A server that cannot tell any more says so, once (RFC 5465 section 5.8).
func TestNotificationOverflow(t *testing.T) {
	t.Parallel()
	st := &deaf{}
	h := newHouse(t, func(o *Options) { st.store, o.Store = o.Store, st })
	l := h.dial("l")
	l.must("LOGIN me secret")
	l.must("NOTIFY SET (PERSONAL (MessageNew MessageExpunge))")
	st.fail(&mailbox.Error{Op: "list"})
	h.deliver("Sent", []byte(mail))
	if s, err := l.response(); err != nil || !strings.HasPrefix(s, "* OK [NOTIFICATIONOVERFLOW] ") {
		t.Errorf("got %q, %v", s, err)
	}
	st.fail(nil)
	h.deliver("Sent", []byte(mail))
	if got := l.must("NOOP"); len(got) != 1 {
		t.Errorf("after the overflow: %q", got)
	}
	if got := last(l.do("NOTIFY SET (MAILBOXES (%s) (MessageNew MessageExpunge))", strings.Repeat("x ", maxNotifyNames)+"x")); !strings.Contains(got, "NO [NOTIFICATIONOVERFLOW]") {
		t.Error(got)
	}
}

// Shutdown ends a connection that waits with NOTIFY.
func TestShutdownEndsNotify(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	l := h.dial("l")
	l.must("LOGIN me secret")
	l.must("NOTIFY SET (PERSONAL (MessageNew MessageExpunge))")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- h.srv.Shutdown(ctx) }()
	if s, err := l.response(); err != nil || !strings.HasPrefix(s, "* BYE") {
		t.Errorf("got %q, %v", s, err)
	}
	l.hangUp()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// randomView is a view with ghosts over a few UIDs.
func randomView(rnd *rand.Rand) (v view, live, ghosts []imap.UID) {
	for uid := imap.UID(1); uid < 40; uid++ {
		switch rnd.IntN(4) {
		case 0:
			ghosts = append(ghosts, uid)
		case 1, 2:
			live = append(live, uid)
		}
	}
	row := mailbox.Mailbox{UIDNext: 42}
	return view{snap: mailbox.NewSnapshot(row, entries(live...)), ghosts: ghosts}, live, ghosts
}

func TestMissingAndPart(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v, live, ghosts := randomView(rnd)
		from := imap.UID(1 + rnd.IntN(41))
		asked := uidRange{from, from + imap.UID(rnd.IntN(42-int(from)))}
		var want, got []imap.UID
		for uid := asked.from; uid <= asked.to; uid++ {
			if !slices.Contains(live, uid) && !slices.Contains(ghosts, uid) {
				want = append(want, uid)
			}
		}
		for _, r := range v.missing(asked) {
			for uid := r.from; uid <= r.to; uid++ {
				got = append(got, uid)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("missing(%v) = %v of %v and %v, want %v", asked, got, live, ghosts, want)
		}
		page := partial{from: 1 + rnd.IntN(30), last: rnd.IntN(2) == 0}
		page.to = page.from + rnd.IntN(10)
		list := slices.Clone(live)
		if page.last {
			slices.Reverse(list)
		}
		want = slices.Sorted(slices.Values(list[min(page.from-1, len(list)):min(page.to, len(list))]))
		got = nil
		n := v.each(v.part([]span{{0, v.len()}}, &page), func(_ uint32, e mailbox.Entry) bool { got = append(got, e.UID); return true })
		if !slices.Equal(got, want) || n > 0 {
			t.Fatalf("part(%+v) = %v and %d ghosts of %v, want %v", page, got, n, live, want)
		}
	}
}

package imapserver

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"pizza/mailbox/boltstore"
)

// TestFullDisk: nothing new is taken, with a literal of either kind, and what frees
// space goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(1 << 30)
	st, err := boltstore.Open(t.TempDir(), boltstore.Options{Keep: 1 << 20, Disk: func() (int64, int64, error) { return free.Load(), 1 << 40, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if err := st.CreateAccount(t.Context(), account, seeds()); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, func(o *Options) { o.Store, o.Log = st, slog.New(slog.DiscardHandler) })
	h.store = st
	h.deliver("INBOX", []byte(mail))
	w := h.dial("C")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	w.must("CREATE Mine")
	for _, left := range []int64{0, 10} { // none, and less than the message
		free.Store(1<<20 + left)
		for _, plus := range []string{"+", ""} {
			got := w.do("APPEND INBOX {%d%s}\r\n%s", len(mail), plus, mail)
			if last := got[len(got)-1]; !strings.Contains(last, "NO [OVERQUOTA] ") {
				t.Errorf("APPEND {%s} with %d left: %q", plus, left, last)
			}
		}
	}
	free.Store(1 << 20)
	if got := w.do("COPY 1 Mine"); !strings.Contains(got[len(got)-1], "NO [OVERQUOTA] ") {
		t.Errorf("COPY: %q", got)
	}
	w.must("COPY 1 Trash")
	w.must(`STORE 1 +FLAGS (\Deleted)`)
	w.must("EXPUNGE")
	free.Store(1 << 30)
	w.must("APPEND INBOX {%d+}\r\n%s", len(mail), mail)
}

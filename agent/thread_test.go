package agent

import (
	"slices"
	"testing"

	"pizza/mailbox"
)

func TestJoinThread(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	first := d.mustGive(d.me, d.message(d.me, "say a", "Message-ID: <root@test>", "Subject: one"), "pizza@localhost")
	other := d.mustGive(d.me, d.message(d.me, "say b", "Message-ID: <other@test>", "Subject: two"), "pizza@localhost")
	th, _, err := d.a.thread(t.Context(), d.me.Account, first.Task)
	if err != nil {
		t.Fatal(err)
	}
	token := "pizza+t." + th.Token + "@localhost"
	for _, tt := range []struct {
		name   string
		id     mailbox.Identity
		to     string
		header []string
		want   string // task; "new" for a new one
	}{
		{"in-reply-to", d.me, "pizza@localhost", []string{"In-Reply-To: <root@test>", "Subject: changed"}, first.Task},
		{"references, newest first", d.me, "pizza@localhost", []string{"References: <other@test> <root@test> <unknown@x>"}, first.Task},
		{"in-reply-to wins", d.me, "pizza@localhost", []string{"In-Reply-To: <other@test>", "References: <other@test> <root@test>"}, other.Task},
		{"token", d.me, token, nil, first.Task},
		{"token wins", d.me, token, []string{"In-Reply-To: <other@test>"}, first.Task},
		{"a subject decides nothing", d.me, "pizza@localhost", []string{"Subject: Re: one"}, "new"},
		{"unknown reference", d.me, "pizza@localhost", []string{"In-Reply-To: <nobody@test>"}, "new"},
		{"another account's thread", d.bob, "pizza@localhost", []string{"In-Reply-To: <root@test>"}, "new"},
		{"send-only credential", sendOnly(d.me), "pizza@localhost", []string{"In-Reply-To: <root@test>"}, "new"},
	} {
		r := d.mustGive(tt.id, d.message(tt.id, "say c", tt.header...), tt.to)
		switch {
		case tt.want == "new" && (r.Task == first.Task || r.Task == other.Task || r.Task == ""):
			t.Errorf("%s: task %q, want a new one", tt.name, r.Task)
		case tt.want != "new" && r.Task != tt.want:
			t.Errorf("%s: task %q, want %q", tt.name, r.Task, tt.want)
		}
	}
}

// One run at a time a thread: what comes meanwhile waits, in order.
func TestSecondMailWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.mustGive(d.me, d.message(d.me, "say a", "Message-ID: <m-a@test>"), "pizza@localhost")
	for _, id := range []string{"m-b", "m-c"} {
		got := d.mustGive(d.me, d.message(d.me, "say "+id, "Message-ID: <"+id+"@test>", "In-Reply-To: <m-a@test>"), "pizza@localhost")
		if got.Task != r.Task || got.Note == "" {
			t.Errorf("%s: %+v, want task %s and a note", id, got, r.Task)
		}
	}
	th, _, err := d.a.thread(t.Context(), d.me.Account, r.Task)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.runs(d.me.Account)) != 1 || th.Active != runID(r.Task, 1) {
		t.Errorf("active %s of %d runs, want the first and only", th.Active, len(d.runs(d.me.Account)))
	}
	var waits []string
	for _, m := range th.Queue {
		waits = append(waits, m.MessageID)
	}
	if !slices.Equal(waits, []string{"m-b@test", "m-c@test"}) {
		t.Errorf("queue %v", waits)
	}
	if th.Last != "m-c@test" || !slices.Equal(th.References, []string{"m-a@test", "m-b@test"}) {
		t.Errorf("chain %v then %s", th.References, th.Last)
	}
}

func TestFollowKeepsRootAndNewest(t *testing.T) {
	t.Parallel()
	th := &Thread{}
	for i := range 3 * maxChain {
		th.follow(runID("m", i))
	}
	if len(th.References) != maxChain || th.References[0] != "m.0" || th.Last != runID("m", 3*maxChain-1) ||
		th.References[maxChain-1] != runID("m", 3*maxChain-2) {
		t.Errorf("%d references from %s to %s, last %s", len(th.References), th.References[0], th.References[maxChain-1], th.Last)
	}
}

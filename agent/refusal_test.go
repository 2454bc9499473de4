package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// locked is a provider that wants a key, and the source of its models.
type locked struct {
	mu    sync.Mutex
	key   string // that is set
	good  string // that is accepted
	calls int
}

func (l *locked) set(key, good string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key, l.good = key, good
}

func (l *locked) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func (l *locked) Info() providers.Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	return providers.Info{Provider: "script", Model: "test", Joins: true, Gate: providers.Identity("script", "", l.key)}
}

func (l *locked) Complete(context.Context, providers.Request) (providers.Reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.key != l.good {
		return providers.Reply{}, &providers.Error{Class: providers.Auth, Status: 401, Message: "wrong key, says the provider"}
	}
	return providertest.Say("fine").Reply, nil
}

func (l *locked) Model(_ context.Context, name string) (providers.Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key == "" {
		return nil, &providers.Error{Class: providers.Auth, Code: providers.NoKey, Message: "provider script has no key: set SCRIPT_KEY"}
	}
	return l, nil
}

func (l *locked) Default() string { return "script:test" }

// newLocked is an office whose provider wants a key, which is looked at often.
func newLocked(t *testing.T, key, good string) (*office, *locked) {
	t.Helper()
	l := &locked{key: key, good: good}
	return newOffice(t, nil, func(opt *Options) { opt.Models, opt.keys = l, 5*time.Millisecond }), l
}

// keyless waits until n runs wait for a key.
func (o *office) keyless(n int) {
	o.t.Helper()
	o.until("runs that wait for a key", func() bool {
		recs, err := o.store.Lookup(o.t.Context(), o.me.Account, indexRefused+"script")
		return err == nil && len(recs) == n
	})
}

// notices are the notices in INBOX, of which there must be n.
func (o *office) notices(n int) []shown {
	o.t.Helper()
	list := o.ofKind(mailbox.Inbox, KindNotice)
	if len(list) != n {
		o.t.Fatalf("%d notices, want %d: %v", len(list), n, subjects(list))
	}
	return list
}

// afterwards checks that nothing of the refusal is left and every run has its answer.
func (o *office) afterwards(runs int) {
	o.t.Helper()
	o.until("the end of all", func() bool {
		live, err := o.store.Lookup(o.t.Context(), o.me.Account, indexLiveRuns)
		recs, err2 := o.store.Records(o.t.Context(), o.me.Account, refusedPrefix, "", 0)
		return err == nil && err2 == nil && len(live) == 0 && len(recs) == 0
	})
	if got := len(o.ofKind(mailbox.Inbox, KindResult)); got != runs {
		o.t.Errorf("%d results of %d runs", got, runs)
	}
	o.settledDown()
}

func TestNoKeyParksWithOneNoticeAndGoesOnWhenThereIsOne(t *testing.T) {
	t.Parallel()
	o, l := newLocked(t, "", "good")
	r := o.send("hello", "Message-ID: <first@test>")
	o.keyless(1)
	n := o.notices(1)[0]
	for _, want := range []string{"set SCRIPT_KEY", "In-Reply-To: <first@test>", "pizza cancel " + r.Task, "X-Pizza-Task: " + r.Task, "by themselves"} {
		if !strings.Contains(strings.ReplaceAll(n.raw, "\r\n", " "), want) && !strings.Contains(n.raw, want) {
			t.Errorf("the notice lacks %q:\n%s", want, n.raw)
		}
	}
	for range 5 {
		o.send("hello")
	}
	o.keyless(6)
	o.notices(1)
	s, err := o.a.Show(t.Context(), o.me.Account, r.Task)
	if err != nil || s.State != Waiting || s.For != "the key of script" || !strings.Contains(s.Why, "set SCRIPT_KEY") {
		t.Errorf("Show: %s for %q because %q (%v)", s.State, s.For, s.Why, err)
	}
	status := o.count(o.me.Account, Running, 6)[0]
	if !strings.Contains(status.raw, "waiting for the key of script") {
		t.Errorf("status:\n%s", status.raw)
	}
	if next, err := o.store.NextDue(t.Context(), o.me.Account, DueRun); err != nil || !next.IsZero() || l.count() != 0 {
		t.Errorf("something is due at %v (%v), %d calls", next, err, l.count())
	}
	if ends := len(o.journal(r.Task + ".1")); ends != 3 {
		t.Errorf("waiting grew the journal to %d events", ends)
	}
	l.set("good", "good")
	o.afterwards(6)
	o.notices(1)
}

func TestRefusedKeyIsNotAskedAgainAndAgain(t *testing.T) {
	t.Parallel()
	o, l := newLocked(t, "bad", "good")
	r := o.send("hello")
	o.keyless(1)
	if n := o.notices(1)[0]; !strings.Contains(n.raw, "wrong key, says the provider") || !strings.Contains(n.subject, "script refuses our key") {
		t.Errorf("%s\n%s", n.subject, n.raw)
	}
	for range 10 { // sent meanwhile: no call
		o.send("hello")
	}
	o.keyless(11)
	o.notices(1)
	if l.count() != 1 {
		t.Errorf("%d calls with a key that is known to be refused", l.count())
	}
	o.clock.add(probeEvery + time.Second) // one tries, and waits again
	o.until("a try", func() bool { return l.count() == 2 })
	o.keyless(11)
	o.notices(1)
	l.set("worse", "good") // another key, not good either: that is news
	o.until("a try with the other key", func() bool { return l.count() == 3 })
	o.until("the second notice", func() bool { return len(o.ofKind(mailbox.Inbox, KindNotice)) == 2 })
	o.keyless(11)
	if l.count() != 3 {
		t.Errorf("%d calls", l.count())
	}
	if err := o.a.Cancel(t.Context(), o.me.Account, r.Task, DecidedBy{Login: "me", Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	o.keyless(10)
	l.set("good", "good")
	o.afterwards(10)
}

// The credit was used up and is there again: the key is the same.
func TestRefusedKeyIsTriedOnceInAWhile(t *testing.T) {
	t.Parallel()
	o, l := newLocked(t, "key", "good")
	for range 3 {
		o.send("hello")
	}
	o.keyless(3)
	o.notices(1)
	before := l.count()
	l.set("key", "key")
	o.clock.add(probeEvery + time.Second)
	o.afterwards(3)
	if got := l.count() - before; got != 3 {
		t.Errorf("%d calls for three answers", got)
	}
}

func TestRefusedKeyOverARestart(t *testing.T) {
	t.Parallel()
	o, l := newLocked(t, "bad", "good")
	for range 3 {
		o.send("hello")
	}
	o.keyless(3)
	before := l.count()
	o.reopen(t)
	o.until("the try of the start", func() bool { return l.count() == before+1 })
	o.keyless(3)
	o.notices(1)
	o.halt()
	l.set("good", "good") // as a new environment
	o.reopen(t)
	o.afterwards(3)
	o.notices(1)
}

// What one refuses does not stop another.
func TestRefusedKeyStopsNoOtherProvider(t *testing.T) {
	t.Parallel()
	l := &locked{key: "bad", good: "good"}
	o := newOffice(t, l)
	o.send("hello")
	o.keyless(1)
	o.send("say ok", "X-Pizza-Model: runbook:mail")
	o.until("the other", func() bool { return len(o.ofKind(mailbox.Inbox, KindResult)) == 1 })
	o.keyless(1)
}

// 403 is about a model: the others of the provider go on.
func TestRefusedModelStopsNoOtherModel(t *testing.T) {
	t.Parallel()
	m := providertest.Script(providertest.Turn{Err: &providers.Error{Class: providers.Auth, Status: 403, Message: "no access to it"}})
	o := newOffice(t, m)
	o.models["script:other"] = providertest.Script(providertest.Say("fine"))
	o.send("hello")
	o.until("the notice", func() bool { return len(o.ofKind(mailbox.Inbox, KindNotice)) == 1 })
	o.send("hello", "X-Pizza-Model: script:other")
	o.until("the other", func() bool { return len(o.ofKind(mailbox.Inbox, KindResult)) == 1 })
	if r := o.runs(o.me.Account); r[0].Refused != "script:test" && r[1].Refused != "script:test" {
		t.Errorf("%+v", r)
	}
}

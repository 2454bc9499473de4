package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
	"pizza/providers"
)

// A provider that refuses our key (there is none, it is wrong or expired, the credit is
// used up) refuses every run: they wait, told by one mail an account, and go on by
// themselves. What is known of it lies in two places: in memory, for the process, whether
// a call is worth it (refusals); in each account that has runs waiting, a record that was
// committed with the first of them and its mail (refusal), and goes when they go on.

// refusal is the record "refused/<name>" of an account. It is put anew with every run that
// begins to wait, so that whoever lifts it meets the run or the conflict.
type refusal struct {
	Name  string    `json:"name"`  // of the provider; of the model, when only that is refused
	Model string    `json:"model"` // one that a run wants, to look the key up with
	Code  string    `json:"code"`  // providers.NoKey, or none
	Text  string    `json:"text"`  // in the provider's own words, or how to set the key
	Since time.Time `json:"since"`
	// Key are three digits of the identity of the refused key: enough to see that another
	// one was tried, far too few to find one with.
	Key string `json:"key,omitempty"`
}

const refusedPrefix = "refused/"

func refusedKey(name string) string { return refusedPrefix + name }

// indexRefused + name is the index key of the runs that wait for the key of name.
const indexRefused = "refused/"

// refusedName is what a failed call says is refused, "" when its error is no refusal: the
// key, and so the provider; or with 403 that model only.
func refusedName(model string, err *providers.Error) string {
	if err == nil || err.Class != providers.Auth {
		return ""
	}
	provider, _, _ := strings.Cut(model, ":")
	if err.Status == 403 {
		return model
	}
	return provider
}

const (
	probeEvery = 15 * time.Minute // how often a refused key is tried again
	probeLate  = time.Hour        // the same, when it has been refused for a day
	probeLost  = 2 * time.Minute  // after which a try that came to nothing does not count
	keysEvery  = 2 * time.Second  // how often it is looked whether the key is another one
)

// refusals is what the process knows about keys that are refused.
type refusals struct {
	mu    sync.Mutex
	by    map[string]*refused                 // by refusal.Name
	pokes map[mailbox.AccountID]chan struct{} // of those that keep the accounts' records
}

type refused struct {
	gate   string // identity of the key that was refused; "" for none
	since  time.Time
	next   time.Time // when it is tried again
	prober string    // the run that tries now, since
	tried  time.Time
}

func newRefusals() *refusals {
	return &refusals{by: map[string]*refused{}, pokes: map[mailbox.AccountID]chan struct{}{}}
}

// poke is the channel that wakes the keeper of an account's records.
func (r *refusals) poke(account mailbox.AccountID) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pokes[account] == nil {
		r.pokes[account] = make(chan struct{}, 1)
	}
	return r.pokes[account]
}

// tell wakes the keepers of all accounts.
func (r *refusals) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.pokes {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// know notes that name is refused to the key of gate; one that is known stays as it is.
func (r *refusals) know(name, gate string, now, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[name] == nil {
		r.by[name] = &refused{gate: gate, since: now, next: next}
	}
}

// knows reports whether name is refused as far as is known.
func (r *refusals) knows(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[name] != nil
}

// worth reports whether a call with the key of gate is worth it. With another key than the
// refused one, and once in a while, one run tries: the first that asks.
func (r *refusals) worth(name, gate, run string, now time.Time, take bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.by[name]
	switch {
	case k == nil || k.prober == run && run != "":
		return true
	case k.prober != "" && now.Sub(k.tried).Abs() < probeLost:
		return false
	case k.gate == gate && now.Before(k.next) && k.next.Sub(now) <= probeLate:
		return false
	}
	if take {
		k.prober, k.tried = run, now
	}
	return true
}

// ended notes how the call of a run ended that wanted model.
func (r *refusals) ended(run, model, gate string, err *providers.Error, now time.Time) {
	name := refusedName(model, err)
	accepted := err == nil
	if err != nil {
		switch err.Class {
		case providers.Invalid, providers.ContextLength, providers.Filtered, providers.RateLimit:
			accepted = true // it looked at what we sent
		}
	}
	provider, _, _ := strings.Cut(model, ":")
	r.mu.Lock()
	lifted := false
	for _, n := range []string{provider, model} {
		k := r.by[n]
		switch {
		case n == name:
		case accepted && k != nil:
			delete(r.by, n)
			lifted = true
		case k != nil && k.prober == run:
			k.prober = "" // it failed of something else
		}
	}
	if name != "" {
		k := r.by[name]
		if k == nil {
			k = &refused{since: now}
			r.by[name] = k
		}
		every := probeEvery
		if now.Sub(k.since) > 24*time.Hour {
			every = probeLate
		}
		k.gate, k.next, k.prober = gate, now.Add(every), ""
	}
	r.mu.Unlock()
	if lifted {
		r.tell()
	}
}

// drop notes that the try of a run came to nothing.
func (r *refusals) drop(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.by {
		if k.prober == run {
			k.prober = ""
		}
	}
}

// refusedNow is the refusal that keeps a run from calling, "" for none.
func (d *draft) refusedNow(info providers.Info) string {
	s := d.s
	provider, _, _ := strings.Cut(d.run.Model, ":")
	for _, name := range []string{provider, d.run.Model} {
		if !s.a.refusals.worth(name, keyOf(info), s.id, s.a.now(), true) {
			return name
		}
	}
	return ""
}

// awaitKey has the run wait until the key is another one than that of gate. Why it is
// refused, if this run has been told: code and text.
func (d *draft) awaitKey(ctx context.Context, name, gate, code, text string) error {
	a, o := d.s.a, d.s.o
	rec, err := a.store.Record(ctx, o.Account, refusedKey(name))
	if err != nil && !isKind(err, mailbox.NotFound) {
		return err
	}
	var was refusal
	known := err == nil && json.Unmarshal(rec.Value, &was) == nil
	now := was
	if text != "" || !known {
		now = refusal{Name: name, Model: d.run.Model, Code: code, Text: text, Since: a.now(), Key: gate[:min(3, len(gate))]}
	}
	if !known || now.Code != was.Code || now.Key != was.Key {
		note, err := a.refusalNote(ctx, o, d.run, now)
		if err != nil {
			return err
		}
		d.ops = append(d.ops, note...)
	} else {
		now.Since = was.Since
	}
	d.ops = append(d.ops, mailbox.PutRecord{Key: refusedKey(name), Version: rec.Version, Value: mustJSON(now)})
	d.run.Refused = name
	next := a.now()
	if now.Code != providers.NoKey {
		next = next.Add(probeEvery)
	}
	a.refusals.know(name, gate, a.now(), next)
	d.keeper = true
	return d.pause(ctx, "the key of "+name, time.Time{})
}

// refusalNote is the one mail about it, as an answer to the mail of the first run that waits.
func (a *Agent) refusalNote(ctx context.Context, o owner, run Run, r refusal) ([]mailbox.Op, error) {
	text := mail.Refusal{Name: r.Name, Model: run.Model, None: r.Code == providers.NoKey, Detail: r.Text, Task: run.Task}
	return a.noteOps(ctx, o, note{
		subject: mail.RefusalSubject(text), text: mail.RefusalText(text), answers: run.newest(),
		ref: MessageRef{Task: run.Task, Run: run.ID},
	})
}

// keepKeys keeps an account's refusals until ctx ends: it has one waiting run try when the
// key is another one or it is time to, and all go on when one got through.
func (a *Agent) keepKeys(ctx context.Context, account mailbox.AccountID) {
	poke := a.refusals.poke(account)
	known := map[string]woken{}
	for ctx.Err() == nil {
		var timer <-chan time.Time
		if n, err := a.lookAtKeys(ctx, account, known); err != nil || n > 0 {
			if err != nil {
				a.logStore(ctx, "keys", err)
			}
			timer = time.After(a.opt.keys)
		}
		select {
		case <-ctx.Done():
		case <-poke:
		case <-timer:
		}
	}
}

// woken is when the keeper had a run try last, and with which key.
type woken struct {
	at   time.Time
	gate string
}

// lookAtKeys looks at each refusal once and says how many stand.
func (a *Agent) lookAtKeys(ctx context.Context, account mailbox.AccountID, known map[string]woken) (n int, err error) {
	recs, err := a.store.Records(ctx, account, refusedPrefix, "", 0)
	if err != nil || len(recs) == 0 || a.rests(ctx, account) {
		return len(recs), err
	}
	for _, rec := range recs {
		var r refusal
		if json.Unmarshal(rec.Value, &r) != nil {
			r.Name = strings.TrimPrefix(rec.Key, refusedPrefix)
		}
		stands, err := a.lookAtKey(ctx, account, rec, r, known)
		if err != nil {
			return len(recs), err
		}
		if stands {
			n++
		}
	}
	return n, nil
}

func (a *Agent) lookAtKey(ctx context.Context, account mailbox.AccountID, rec mailbox.Record, r refusal, known map[string]woken) (stands bool, err error) {
	m, err := a.opt.Models.Model(ctx, r.Model)
	var pe *providers.Error
	switch {
	case errors.As(err, &pe) && pe.Class == providers.Auth: // still none
		a.refusals.know(r.Name, "", a.now(), a.now())
		known[r.Name] = woken{}
		return true, nil
	case err != nil || m == nil: // the model is gone, which the runs will be told
		delete(known, r.Name)
		return false, a.liftRefusal(ctx, account, rec, r.Name)
	}
	last, seen := known[r.Name]
	if seen && !a.refusals.knows(r.Name) {
		delete(known, r.Name)
		return false, a.liftRefusal(ctx, account, rec, r.Name)
	}
	a.refusals.know(r.Name, "", a.now(), a.now()) // of before the start: it is tried at once
	known[r.Name] = last
	next := woken{at: a.now(), gate: keyOf(m.Info())}
	if last.gate == next.gate && next.at.Sub(last.at).Abs() < grantFor || !a.refusals.worth(r.Name, next.gate, "", next.at, false) {
		return true, nil
	}
	runs, err := a.store.Lookup(ctx, account, indexRefused+r.Name)
	if err != nil {
		return true, err
	}
	for _, run := range runsOf(runs) { // the oldest tries
		known[r.Name] = next
		return true, a.commit(ctx, account, dueRun(run.ID, a.now()))
	}
	delete(known, r.Name)
	err = a.commit(ctx, account, mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version})
	return false, ignoreConflict(err)
}

// liftRefusal has all runs go on that wait for a key. A run that begins to wait meanwhile
// changes the record, whose removal comes last.
func (a *Agent) liftRefusal(ctx context.Context, account mailbox.AccountID, rec mailbox.Record, name string) error {
	recs, err := a.store.Lookup(ctx, account, indexRefused+name)
	if err != nil {
		return err
	}
	if err := a.wakeAll(ctx, account, recs); err != nil {
		return err
	}
	err = a.commit(ctx, account, mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version})
	if isKind(err, mailbox.Conflict) {
		if rec, err = a.store.Record(ctx, account, rec.Key); err == nil {
			return a.liftRefusal(ctx, account, rec, name)
		}
	}
	if isKind(err, mailbox.NotFound) {
		err = nil
	}
	if err == nil {
		a.log.InfoContext(ctx, "key accepted: what waited for it goes on", "provider", name, "runs", len(recs))
	}
	return err
}

func ignoreConflict(err error) error {
	if isKind(err, mailbox.Conflict) {
		return nil
	}
	return err
}

// whyRefused is what a run that waits for a key is kept by, in words; "" when it does not.
func (a *Agent) whyRefused(ctx context.Context, account mailbox.AccountID, run Run) string {
	if run.Refused == "" || run.State != Waiting {
		return ""
	}
	var r refusal
	rec, err := a.store.Record(ctx, account, refusedKey(run.Refused))
	if err != nil || json.Unmarshal(rec.Value, &r) != nil {
		return ""
	}
	return r.Text
}

// keyOf is the identity of the key that a model is called with.
func keyOf(i providers.Info) string {
	if i.Gate != "" {
		return i.Gate
	}
	return providers.Identity(i.Provider, i.Endpoint, "")
}

package agent

import (
	"context"
	"fmt"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// An account may have a cap of what its tasks use in a month. At the cap no model call
// begins: a run that wants one waits, and the first that does opens one question in Action,
// which is of the account and the month and of no run. Each call books what it may use
// against the month before it is made (mailbox.Most), so that runs beside each other do
// not pass the cap together.
//
//	continue   lifts the cap by its amount, or by the number behind it, for this month
//	stop       whatever wants to call a model this month ends with what it has
//	no answer  everything waits until the month is over, then goes on
//
// The state is the record capKey of the month. A run waits under the version of that
// record, so it has seen every answer given before; the answer makes the month due, and
// that wakes the runs that wait. Models that cost nothing go on in any case.

// Cap is the most that an account may use in a month. Zero fields: no cap.
type Cap struct {
	USD    float64 `json:"usd,omitempty"`    // as far as providers say what a call costs
	Tokens int64   `json:"tokens,omitempty"` // input and output
}

// limits is the cap as limits of a run.
func (c Cap) limits() Limits { return Limits{Tokens: c.Tokens, Cost: c.USD} }

// DueMonth is the kind of the due entry that looks after the runs that wait for a month's
// cap; its key is the month.
const DueMonth = "month"

// forMonth is what such a run waits for, in words for its status.
const forMonth = "the limit of the month"

// indexMonth is the index key of the records of runs that wait so.
const indexMonth = "month"

// capEvery is how often it is seen that the settings have another cap.
const capEvery = lookEvery

func capKey(month string) string { return "cap/" + month }

// lift is what the owner said about a month's cap.
type lift struct {
	Decision string     `json:"decision,omitempty"` // the open question
	Of       Limit      `json:"of,omitempty"`       // what it is about: cost or tokens
	Cap      Cap        `json:"cap,omitzero"`       // what the settings said when it was asked
	USD      int64      `json:"micro_usd,omitempty"`
	Tokens   int64      `json:"tokens,omitempty"`
	Stopped  *DecidedBy `json:"stopped,omitempty"`
}

// over is a cap with what was given on top, in micro-USD and tokens; 0: none.
func (l lift) over(c Cap) (usd, tokens int64) {
	if c.USD > 0 {
		usd = micro(c.USD) + l.USD
	}
	if c.Tokens > 0 {
		tokens = c.Tokens + l.Tokens
	}
	return usd, tokens
}

// lifted reads the record, and its version: 0 when there is none.
func (a *Agent) lifted(ctx context.Context, account mailbox.AccountID, month string) (l lift, version uint64, err error) {
	rec, err := a.store.Record(ctx, account, capKey(month))
	if isKind(err, mailbox.NotFound) {
		return l, 0, nil
	}
	if err != nil {
		return l, 0, err
	}
	l, err = decode[lift](rec)
	return l, rec.Version, err
}

// month is an account's month as a call that would book r meets it.
type month struct {
	name    string // 2026-12
	cap     Cap
	sums    map[string]int64
	lift    lift
	version uint64 // of the lift's record
}

func (a *Agent) monthOf(ctx context.Context, o owner, name string) (m month, err error) {
	m.name, m.cap = name, a.opt.Account(o.Login).Cap
	if m.sums, err = a.sums(ctx, o.Account, monthKey(name)); err != nil {
		return m, err
	}
	m.lift, m.version, err = a.lifted(ctx, o.Account, name)
	return m, err
}

// passed says which part of the cap r would pass, "" for none.
func (m month) passed(r Reserve) Limit {
	usd, tokens := m.lift.over(m.cap)
	switch {
	case usd > 0 && m.sums[sumMicroUSD]+m.sums[sumReservedUSD]+max(r.Cost, 1) > usd:
		return LimitCost
	case tokens > 0 && m.sums[sumTokens]+m.sums[sumReservedTokens]+max(r.Tokens(), 1) > tokens:
		return LimitTokens
	}
	return ""
}

// price is what so many tokens of a model cost by what the month's calls did.
func (m month) price(model string, tokens int64) int64 {
	all := m.sums[sumInput+" "+model] + m.sums[sumOutput+" "+model]
	if all <= 0 {
		return 0
	}
	return int64(float64(m.sums[sumMicroUSD+" "+model]) / float64(all) * float64(tokens))
}

// book is the change that books r, if the cap still has room for it then.
func (m month) book(r Reserve) mailbox.Op {
	add := mailbox.Add{Key: monthKey(m.name), Sums: map[string]int64{sumReservedTokens: r.Tokens(), sumReservedUSD: r.Cost}}
	usd, tokens := m.lift.over(m.cap)
	if usd > 0 {
		add.Most = append(add.Most, mailbox.Most{Names: []string{sumMicroUSD, sumReservedUSD}, Max: usd})
	}
	if tokens > 0 {
		add.Most = append(add.Most, mailbox.Most{Names: []string{sumTokens, sumReservedTokens}, Max: tokens})
	}
	return add
}

// capped reports whether a model's calls are bound by a cap of the account.
func (a *Agent) capped(ctx context.Context, login, model string) bool {
	return a.opt.Account(login).Cap != (Cap{}) && !a.free(ctx, model)
}

// underCap books the call of act against the month. Where the cap does not let it begin,
// it has the run wait or end, and says so with false.
func (d *draft) underCap(ctx context.Context, act *Todo) (bool, error) {
	a, o := d.s.a, d.s.o
	if !a.capped(ctx, o.Login, d.run.Model) {
		return true, nil
	}
	m, err := a.monthOf(ctx, o, a.local(a.now()).Format(monthForm))
	if err != nil {
		return false, err
	}
	r := act.Reserve
	if r.Tokens() == 0 {
		r = d.st.estimate()
	}
	r.Cost = max(r.Cost, m.price(d.run.Model, r.Tokens()))
	of := m.passed(r)
	if of == "" {
		r.Month = m.name
		act.Reserve = r
		d.ops = append(d.ops, m.book(r))
		return true, nil
	}
	if m.lift.Stopped != nil {
		return false, d.stopForMonth(ctx, m, of)
	}
	return false, d.awaitMonth(ctx, m, of)
}

// stopForMonth ends the run as the owner said of all that want more this month.
func (d *draft) stopForMonth(ctx context.Context, m month, of Limit) error {
	id := newToken()
	d.ops = append(d.ops, mailbox.CheckRecord{Key: capKey(m.name), Version: m.version})
	if err := d.add(Event{Asked: &EvAsked{Decision: id, Kind: decisionLimit, Limit: LimitMonth}}); err != nil {
		return err
	}
	e := &EvDecided{Decision: id, Verb: "stop", By: *m.lift.Stopped, Text: m.sentence(of)}
	if err := d.add(Event{Decided: e}); err != nil {
		return err
	}
	return d.follow(ctx)
}

// awaitMonth has the run wait, and asks unless somebody was asked already.
func (d *draft) awaitMonth(ctx context.Context, m month, of Limit) error {
	if len(d.s.inflight) > 0 || d.s.quiet {
		return nil
	}
	if m.lift.Decision != "" {
		d.ops = append(d.ops, mailbox.CheckRecord{Key: capKey(m.name), Version: m.version})
	} else if err := d.askMonth(ctx, m, of); err != nil {
		return err
	}
	return d.pause(ctx, forMonth, time.Time{})
}

// sentence says that the cap is reached.
func (m month) sentence(of Limit) string {
	usd, tokens := m.lift.over(m.cap)
	name := m.name
	if at, err := time.Parse(monthForm, m.name); err == nil {
		name = at.Format("January 2006")
	}
	if of == LimitCost {
		return fmt.Sprintf("In %s your tasks cost %s; the limit of the month is %s, and the next model call would pass it.",
			name, dollars(m.sums[sumMicroUSD]+m.sums[sumReservedUSD]), dollars(usd))
	}
	return fmt.Sprintf("In %s your tasks used %s tokens; the limit of the month is %s, and the next model call would pass it.",
		name, grouped(m.sums[sumTokens]+m.sums[sumReservedTokens]), grouped(tokens))
}

// askMonth opens the question of the month, with its mail.
func (d *draft) askMonth(ctx context.Context, m month, of Limit) error {
	a, o := d.s.a, d.s.o
	now := a.local(a.now())
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, now.Location())
	dec := Decision{ID: newToken(), Kind: decisionLimit, Month: m.name, State: Open, Created: now, Expires: next, Sentence: m.sentence(of)}
	out := a.sheet(o, KindQuestion)
	a.asks(&out, dec.ID)
	out.Subject = mail.LimitSubject(dec.Sentence)
	again, more := "the limit of this month raised by "+dollars(micro(m.cap.USD)), "to raise it by that many US dollars"
	if of == LimitTokens {
		again, more = "the limit of this month raised by "+grouped(m.cap.Tokens)+" tokens", "to raise it by that many tokens"
	}
	out.Plain, out.HTML = mail.LimitText(mail.Limit{
		Sentence: dec.Sentence, Missing: []string{"Every task that wants to call a model waits; `pizza running` lists them."},
		Again: again, More: more, Stop: "what wants to call a model this month ends with what it has",
		Without: "Without an answer everything waits until then, and goes on with the new month.",
		Expires: a.local(dec.Expires), ReplyAddress: out.ReplyTo.String(), Subject: out.Subject,
	})
	if err := d.open(ctx, &dec, out); err != nil {
		return err
	}
	m.lift.Decision, m.lift.Of, m.lift.Cap = dec.ID, of, m.cap
	d.ops = append(d.ops,
		mailbox.PutRecord{Key: capKey(m.name), Version: m.version, Value: mustJSON(m.lift)},
		mailbox.PutDue{Due: mailbox.Due{Kind: DueMonth, Key: m.name, At: now.Add(capEvery)}})
	return nil
}

// monthOps answers the question of a month.
func (a *Agent) monthOps(ctx context.Context, account mailbox.AccountID, d Decision, version uint64, v verdict) (Decision, []mailbox.Op, error) {
	to, err := a.decidable(d, v)
	if err != nil {
		return d, nil, err
	}
	o, err := a.owner(ctx, account)
	if err != nil {
		return d, nil, err
	}
	l, at, err := a.lifted(ctx, account, d.Month)
	if err != nil {
		return d, nil, err
	}
	d.By, d.Verb, d.Reason = &v.by, v.verb, v.text
	switch c := a.opt.Account(o.Login).Cap; {
	case v.verb == "stop":
		l.Stopped = &v.by
	case v.verb == "continue" && l.Of == LimitTokens:
		l.Tokens += orElse(int64(v.n), c.Tokens)
	case v.verb == "continue":
		l.USD += orElse(int64(v.n)*LimitCost.unit(), micro(c.USD))
	}
	l.Decision, l.Of, l.Cap = "", "", Cap{}
	ops := append(closeOps(d, version, to),
		mailbox.PutRecord{Key: capKey(d.Month), Version: at, Value: mustJSON(l)},
		mailbox.PutDue{Due: mailbox.Due{Kind: DueMonth, Key: d.Month, At: a.now()}})
	d.State = to
	return d, ops, nil
}

func orElse(n, other int64) int64 {
	if n > 0 {
		return n
	}
	return other
}

// tendMonth looks after what waits for a month's cap. While the question is open it sees
// whether the settings have another cap now; then it makes due the runs that wait.
func (a *Agent) tendMonth(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	l, version, err := a.lifted(ctx, account, due.Key)
	if err != nil {
		return err
	}
	if l.Decision == "" {
		return a.wakeMonth(ctx, account, due, version)
	}
	o, err := a.owner(ctx, account)
	if err != nil {
		return err
	}
	now := a.now()
	if a.opt.Account(o.Login).Cap == l.Cap && a.local(now).Format(monthForm) == due.Key {
		due.At = now.Add(capEvery)
		return a.commit(ctx, account, mailbox.PutDue{Due: due})
	}
	_, err = a.settle(ctx, account, l.Decision, verdict{verb: "expire", by: DecidedBy{Via: viaExpiry, At: now}})
	return err // its commit made the month due anew
}

// wakeMonth makes due the runs that wait. Nobody can begin to wait under this version of
// the record any more.
func (a *Agent) wakeMonth(ctx context.Context, account mailbox.AccountID, due mailbox.Due, version uint64) error {
	recs, err := a.store.Lookup(ctx, account, indexMonth)
	if err != nil {
		return err
	}
	if err := a.wakeAll(ctx, account, recs); err != nil {
		return err
	}
	return a.commit(ctx, account, mailbox.CheckRecord{Key: capKey(due.Key), Version: version},
		mailbox.DeleteDue{Kind: due.Kind, Key: due.Key})
}

// askedOfMonth is the open question that a run waits for, if it does.
func (a *Agent) askedOfMonth(ctx context.Context, account mailbox.AccountID, r Run) ([]Decision, error) {
	if r.State != Waiting || r.For != forMonth {
		return nil, nil
	}
	l, _, err := a.lifted(ctx, account, a.local(r.Changed).Format(monthForm))
	if err != nil || l.Decision == "" {
		return nil, err
	}
	d, _, err := a.loadDecision(ctx, account, l.Decision)
	return []Decision{d}, err
}

package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"pizza/mailbox"
	"pizza/providers"
)

// What an account spends is counted in records of numbers (mailbox.Add), one a day and one
// a month in the zone of Options.Location, in the commit of the reply that it counts: never
// twice, never not, and without a conflict between runs. The head record of a run holds what
// the run itself spent.

func dayKey(day string) string     { return "usage/day/" + day }
func monthKey(month string) string { return "usage/month/" + month }

const (
	dayForm   = time.DateOnly
	monthForm = "2006-01"
)

// Numbers of those records. The first five are of a model, as in "calls openai:gpt-6".
const (
	sumCalls    = "calls"
	sumInput    = "input"
	sumCached   = "cached" // part of input
	sumOutput   = "output"
	sumMicroUSD = "micro_usd"
	sumTokens   = "tokens" // of all models, as is micro_usd by itself

	// Of a month under a cap: what calls under way or without a reply are booked at.
	sumReservedTokens = "reserved_tokens"
	sumReservedUSD    = "reserved_micro_usd"
)

// spendOps counts what the events of a commit spent, and gives back what was booked for
// them. before is the state that they follow.
func (a *Agent) spendOps(model string, before *State, events []Event) []mailbox.Op {
	var ops []mailbox.Op
	booked := before.Reserved
	for _, e := range events {
		use, answered := e.spends()
		switch {
		case answered:
			sums := sumsOf(model, use)
			at := a.local(e.At)
			month := at.Format(monthForm)
			ops = append(ops, mailbox.Add{Key: dayKey(at.Format(dayForm)), Sums: sums}, mailbox.Add{Key: monthKey(month), Sums: sums})
			ops = append(ops, booked.release()...)
			booked = Reserve{}
		case e.ModelFail != nil && !e.ModelFail.billed():
			ops = append(ops, booked.release()...)
			booked = Reserve{}
		case e.Intent != nil:
			booked = Reserve{}
		}
	}
	return ops
}

// spends is what an answered model call used.
func (e Event) spends() (providers.Usage, bool) {
	switch {
	case e.Reply != nil:
		return e.Reply.Reply.Usage, true
	case e.Compacted != nil:
		return e.Compacted.Usage, true
	}
	return providers.Usage{}, false
}

// sumsOf are the numbers of one answered call.
func sumsOf(model string, u providers.Usage) map[string]int64 {
	sums := map[string]int64{
		sumCalls + " " + model: 1, sumInput + " " + model: int64(u.Input), sumCached + " " + model: int64(u.CacheRead),
		sumOutput + " " + model: int64(u.Output), sumMicroUSD + " " + model: micro(u.Cost),
		sumTokens: int64(u.Input + u.Output), sumMicroUSD: micro(u.Cost),
	}
	maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	return sums
}

// release gives back what was booked against a month.
func (r Reserve) release() []mailbox.Op {
	if r.Month == "" {
		return nil
	}
	return []mailbox.Op{mailbox.Add{Key: monthKey(r.Month), Sums: map[string]int64{sumReservedTokens: -r.Tokens(), sumReservedUSD: -r.Cost}}}
}

// sums reads a record of numbers, none when there is no such record.
func (a *Agent) sums(ctx context.Context, account mailbox.AccountID, key string) (map[string]int64, error) {
	rec, err := a.store.Record(ctx, account, key)
	if err != nil && !isKind(err, mailbox.NotFound) {
		return nil, err
	}
	return rec.Sums()
}

// zone names the zone that days are counted in; that of the machine has a short name only.
func (a *Agent) zone() string {
	if a.opt.Location == time.Local {
		name, _ := a.local(a.now()).Zone()
		return name
	}
	return a.opt.Location.String()
}

// Usage is what was spent on a day, in a month or by a task.
type Usage struct {
	Of     string       `json:"of"` // 2026-12-01, 2026-12, or the task's id
	Zone   string       `json:"zone,omitempty"`
	Models []ModelUsage `json:"models"` // by name
	Total  ModelUsage   `json:"total"`
	// Of a month: its cap, if there is one now, what the owner gave on top, and what is
	// booked for calls under way or without a reply.
	CapMicroUSD      int64 `json:"cap_micro_usd,omitempty"`
	CapTokens        int64 `json:"cap_tokens,omitempty"`
	ReservedTokens   int64 `json:"reserved_tokens,omitempty"`
	ReservedMicroUSD int64 `json:"reserved_micro_usd,omitempty"`
}

// ModelUsage is that of one model.
type ModelUsage struct {
	Model    string `json:"model,omitempty"`
	Calls    int64  `json:"calls"`
	Input    int64  `json:"input"`  // tokens
	Cached   int64  `json:"cached"` // part of Input
	Output   int64  `json:"output"`
	MicroUSD int64  `json:"micro_usd"` // where the provider says it
}

func (m *ModelUsage) add(o ModelUsage) {
	m.Calls += o.Calls
	m.Input += o.Input
	m.Cached += o.Cached
	m.Output += o.Output
	m.MicroUSD += o.MicroUSD
}

// UsageOf says what an account spent: when is a day (2026-12-01), a month (2026-12), "day"
// or "month" for those of now, or the id of a task, run or decision. *mailbox.Error
// Invalid for what is none of them, NotFound for an id that names nothing.
func (a *Agent) UsageOf(ctx context.Context, account mailbox.AccountID, when string) (Usage, error) {
	now := a.local(a.now())
	switch when {
	case "day":
		when = now.Format(dayForm)
	case "month":
		when = now.Format(monthForm)
	}
	if _, err := time.Parse(dayForm, when); err == nil {
		return a.countedUsage(ctx, account, when, dayKey(when))
	}
	if _, err := time.Parse(monthForm, when); err == nil {
		return a.monthUsage(ctx, account, when)
	}
	if strings.Contains(when, "-") {
		return Usage{}, &mailbox.Error{Op: "usage", Kind: mailbox.Invalid, Name: printable(when),
			Text: printable(when) + " is no day and no month: write one as in " + now.Format(dayForm) + " or " + now.Format(monthForm)}
	}
	return a.taskUsage(ctx, account, when)
}

func (a *Agent) countedUsage(ctx context.Context, account mailbox.AccountID, of, key string) (Usage, error) {
	sums, err := a.sums(ctx, account, key)
	if err != nil {
		return Usage{}, err
	}
	byModel := map[string]*ModelUsage{}
	for name, n := range sums {
		what, model, ok := strings.Cut(name, " ")
		if !ok {
			continue
		}
		m := byModel[model]
		if m == nil {
			m = &ModelUsage{Model: model}
			byModel[model] = m
		}
		switch what {
		case sumCalls:
			m.Calls = n
		case sumInput:
			m.Input = n
		case sumCached:
			m.Cached = n
		case sumOutput:
			m.Output = n
		case sumMicroUSD:
			m.MicroUSD = n
		}
	}
	u := Usage{Of: of, Zone: a.zone(), Models: []ModelUsage{}}
	for _, m := range byModel {
		u.Models = append(u.Models, *m)
	}
	u.total()
	u.ReservedTokens, u.ReservedMicroUSD = max(0, sums[sumReservedTokens]), max(0, sums[sumReservedUSD])
	return u, nil
}

// total sorts and sums the models.
func (u *Usage) total() {
	slices.SortFunc(u.Models, func(x, y ModelUsage) int { return cmp.Compare(x.Model, y.Model) })
	for _, m := range u.Models {
		u.Total.add(m)
	}
}

func (a *Agent) monthUsage(ctx context.Context, account mailbox.AccountID, month string) (Usage, error) {
	u, err := a.countedUsage(ctx, account, month, monthKey(month))
	if err != nil {
		return u, err
	}
	o, err := a.owner(ctx, account)
	if isKind(err, mailbox.NotFound) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	lifted, _, err := a.lifted(ctx, account, month)
	if err != nil {
		return u, err
	}
	u.CapMicroUSD, u.CapTokens = lifted.over(a.opt.Account(o.Login).Cap)
	return u, nil
}

// taskUsage sums the runs of a task, or tells of the one run that id names.
func (a *Agent) taskUsage(ctx context.Context, account mailbox.AccountID, id string) (Usage, error) {
	f, err := a.Find(ctx, account, id)
	if err != nil {
		return Usage{}, err
	}
	recs, err := a.store.Lookup(ctx, account, indexOfTask+f.Task)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Of: cmp.Or(f.Run, f.Task), Models: []ModelUsage{}}
	for _, r := range runsOf(recs) {
		if f.Run != "" && r.ID != f.Run {
			continue
		}
		i := slices.IndexFunc(u.Models, func(m ModelUsage) bool { return m.Model == r.Model })
		if i < 0 {
			i, u.Models = len(u.Models), append(u.Models, ModelUsage{Model: r.Model})
		}
		s := r.Spent
		u.Models[i].add(ModelUsage{Calls: int64(s.ModelCalls), Input: int64(s.Usage.Input), Cached: int64(s.Usage.CacheRead),
			Output: int64(s.Usage.Output), MicroUSD: micro(s.Usage.Cost)})
	}
	u.total()
	return u, nil
}

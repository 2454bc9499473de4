package agent

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// A mail says with X-Pizza-Budget what its task may use (DESIGN.md, invariant 13):
//
//	X-Pizza-Budget: calls=50, tools=100, tokens=200k, usd=2.50, time=1h30m
//
// Each name comes once at the most; what is not named stays as the settings have it. Calls
// and tools are numbers of calls; tokens may end with k or m; time is hours, minutes and
// seconds. A later mail of the thread that brings one changes the budget of the run that it
// joins. A budget is no right: that of a credential which may only send can lower the
// limits of the settings but not raise them, and none passes the month's cap of the account.

const budgetField = "X-Pizza-Budget"

const budgetHelp = "write it as in calls=50, tools=100, tokens=200k, usd=2.50, time=1h30m"

var (
	budgetCount  = regexp.MustCompile(`^[0-9]{1,6}$`)
	budgetTokens = regexp.MustCompile(`^([0-9]{1,12})([km]?)$`)
	budgetUSD    = regexp.MustCompile(`^\$?([0-9]{1,6}(\.[0-9]{1,6})?)$`)
	budgetTime   = regexp.MustCompile(`^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$`)
)

// ParseBudget reads the value of X-Pizza-Budget. An error says what is wrong and what
// would be right.
func ParseBudget(value string) (*Limits, error) {
	var b Limits
	var seen []string
	for item := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ';' }) {
		name, v, ok := strings.Cut(item, "=")
		name, v = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(v))
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is not NAME=VALUE: %s", strings.TrimSpace(item), budgetHelp)
		case slices.Contains(seen, name):
			return nil, fmt.Errorf("%q comes twice", name)
		}
		seen = append(seen, name)
		if err := b.set(name, v); err != nil {
			return nil, err
		}
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("the budget is empty: %s", budgetHelp)
	}
	return &b, nil
}

// set reads one item of a budget.
func (m *Limits) set(name, v string) error {
	ok := true
	switch name {
	case "calls":
		ok = budgetCount.MatchString(v)
		m.ModelCalls, _ = strconv.Atoi(v)
		ok = ok && m.ModelCalls > 0
	case "tools":
		ok = budgetCount.MatchString(v)
		m.ToolCalls, _ = strconv.Atoi(v)
		ok = ok && m.ToolCalls > 0
	case "tokens":
		g := budgetTokens.FindStringSubmatch(v)
		if ok = g != nil; ok {
			n, _ := strconv.ParseInt(g[1], 10, 64)
			m.Tokens = n * map[string]int64{"": 1, "k": 1e3, "m": 1e6}[g[2]]
			ok = m.Tokens > 0
		}
	case "usd":
		g := budgetUSD.FindStringSubmatch(v)
		if ok = g != nil; ok {
			m.Cost, _ = strconv.ParseFloat(g[1], 64)
			ok = micro(m.Cost) > 0
		}
	case "time":
		var err error
		m.Time, err = time.ParseDuration(v)
		ok = budgetTime.MatchString(v) && err == nil && m.Time > 0
	default:
		return fmt.Errorf("%q is not calls, tools, tokens, usd or time: %s", name, budgetHelp)
	}
	if !ok {
		return fmt.Errorf("%q is no value of %s: %s", v, name, budgetHelp)
	}
	return nil
}

// readBudget reads the budget of a mail that speaks to the agent. One that cannot be read
// refuses the mail, before anything is stored: its sender meant something by it.
func (a *Agent) readBudget(in *intake) error {
	var values []string
	for _, f := range in.fields {
		if strings.EqualFold(f.Name, budgetField) {
			values = append(values, f.Text())
		}
	}
	_, starts := in.has(toPizza)
	_, joins := in.has(toThread)
	if len(values) == 0 || in.auto != "" || !starts && !joins {
		return nil
	}
	b, err := ParseBudget(strings.Join(values, ","))
	if err != nil {
		return &mailbox.Error{Op: "submit", Kind: mailbox.Invalid, Name: budgetField, Text: budgetField + ": " + err.Error()}
	}
	if !in.full() {
		b.lower(a.opt.Limits)
	}
	b.lower(a.opt.Account(in.owner.Login).Cap.limits())
	in.budget = b
	return nil
}

// lower takes what is more than in other down to it; zero fields of other are no limit.
func (m *Limits) lower(other Limits) {
	least := func(v *int64, o int64) {
		if o > 0 && *v > o {
			*v = o
		}
	}
	calls, tools, span := int64(m.ModelCalls), int64(m.ToolCalls), int64(m.Time)
	least(&calls, int64(other.ModelCalls))
	least(&tools, int64(other.ToolCalls))
	least(&m.Tokens, other.Tokens)
	least(&span, int64(other.Time))
	m.ModelCalls, m.ToolCalls, m.Time = int(calls), int(tools), time.Duration(span)
	if other.Cost > 0 {
		m.Cost = math.Min(m.Cost, other.Cost)
	}
}

// budget puts into a run's start what its mails bring, and whether it costs anything.
func (a *Agent) budget(ctx context.Context, started *EvStarted, in []Inbound) {
	for _, m := range in {
		started.Limits = started.Limits.with(m.Budget)
	}
	if started.Limits.Tokens > 0 || started.Limits.Cost > 0 {
		started.Free = a.free(ctx, started.Model)
	}
}

// free reports whether a model costs nothing.
func (a *Agent) free(ctx context.Context, name string) bool {
	info, _ := a.info(ctx, name)
	return info.Free
}

// textSize is about how many octets of a mail the model is told: those of its text parts.
// Text that is there in two forms counts twice.
func textSize(s *mime.Structure) int {
	n := int64(0)
	s.Root.Walk(func(_ []int, p *mime.Part) bool {
		if p.Type == "text" && p.Filename == "" {
			n += p.Body.Len()
		}
		return true
	})
	return int(min(n, 1<<30))
}

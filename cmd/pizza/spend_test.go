package main

import (
	"slices"
	"strings"
	"testing"

	"pizza/agent"
)

func TestUsageOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		day, month bool
		task, date string
		want, err  string
	}{
		{want: "day month"},
		{day: true, want: "day"},
		{month: true, want: "month"},
		{date: "2026-12-01", want: "2026-12-01"},
		{date: "2026-12", want: "2026-12"},
		{day: true, date: "2026-12-01", want: "2026-12-01"},
		{month: true, date: "2026-12-01", want: "2026-12"},
		{day: true, date: "2026-12", err: "2026-12 is a month"},
		{task: "k3v9m2x7qa", want: "k3v9m2x7qa"},
		{task: "k3v9m2x7qa", date: "2026-12", err: "takes no DATE"},
	} {
		var args []string
		if tt.date != "" {
			args = []string{tt.date}
		}
		got, err := usageOf(tt.day, tt.month, tt.task, args)
		if strings.Join(got, " ") != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

func TestPrintUsage(t *testing.T) {
	t.Parallel()
	one := agent.ModelUsage{Model: "openai:x\x1b[31m", Calls: 2, Input: 1000, Cached: 10, Output: 50, MicroUSD: 1_234_567}
	two := agent.ModelUsage{Model: "runbook:mail", Calls: 1, MicroUSD: 20}
	total := agent.ModelUsage{Calls: 3, Input: 1000, Cached: 10, Output: 50, MicroUSD: 1_234_587}
	for name, tt := range map[string]struct {
		list []agent.Usage
		want []string // rows, their columns one space apart
	}{
		"nothing": {[]agent.Usage{{Of: "2026-12-01"}}, []string{"2026-12-01 calls input cached output cost", "all 0 0 0 0 -"}},
		"one model has no sum": {[]agent.Usage{{Of: "k3v9m2x7qa", Models: []agent.ModelUsage{two}, Total: two}},
			[]string{"k3v9m2x7qa calls input cached output cost", "runbook:mail 1 0 0 0 $0.000020"}},
		"a day and a month with caps": {
			[]agent.Usage{
				{Of: "2026-12-01", Models: []agent.ModelUsage{two}, Total: two},
				{Of: "2026-12", Models: []agent.ModelUsage{one, two}, Total: total,
					CapMicroUSD: 5_000_000, ReservedMicroUSD: 1_000_000, CapTokens: 1000, ReservedTokens: 5},
			},
			[]string{"2026-12-01 calls input cached output cost", "runbook:mail 1 0 0 0 $0.000020", "",
				"2026-12 calls input cached output cost", visible(one.Model) + " 2 1000 10 50 $1.23", "runbook:mail 1 0 0 0 $0.000020",
				"all 3 1000 10 50 $1.23", "the limit of the month is $5.00; $2.77 is left", "the limit of the month is 1000 tokens; 0 are left"},
		},
	} {
		var b strings.Builder
		if err := printUsage(&b, tt.list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(b.String()) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if !slices.Equal(got, tt.want) || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%s:\n%q, want\n%q", name, got, tt.want)
		}
	}
}

// The command, over an account in which nothing was done yet.
func TestUsageCommand(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, err := openAlone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
		fail bool
	}{
		{[]string{}, "all  ", false},
		{[]string{"--day", "2026-12-01"}, "2026-12-01  ", false},
		{[]string{"--month", "2026-12-01"}, "2026-12  ", false},
		{[]string{"--json", "2026-12"}, `"of": "2026-12"`, false},
		{[]string{"--json"}, `[`, false},
		{[]string{"--task", "k3v9m2x7qa"}, "", true},
		{[]string{"--day", "--month"}, "", true},
	} {
		var b strings.Builder
		cmd := newRoot()
		cmd.SetOut(&b)
		cmd.SetErr(&b)
		cmd.SetArgs(append([]string{"usage", "--data-root", root}, tt.args...))
		if err := cmd.ExecuteContext(t.Context()); (err != nil) != tt.fail || !tt.fail && !strings.Contains(b.String(), tt.want) {
			t.Errorf("%q: %v\n%s", tt.args, err, b.String())
		}
	}
}

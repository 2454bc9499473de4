package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"pizza/internal/crockford"
	"pizza/internal/policy"
	"pizza/mailbox"
)

// Policy is a row of policy with where it comes from.
type Policy struct {
	policy.Row
	// ID names it: of a row of the account 15 characters, of one of the settings
	// "policies[0]".
	ID string `json:"id"`
	// Task narrows a row of the account to one thread, where the owner said "always".
	Task    string     `json:"task,omitempty"`
	Subject string     `json:"subject,omitempty"` // of that thread
	By      *DecidedBy `json:"by,omitempty"`
	// Decision is the approval that was answered so.
	Decision string    `json:"decision,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	// Broken says what of it cannot be read: its tools are off.
	Broken string `json:"broken,omitempty"`
	// Unmatched: it names no tool there is now.
	Unmatched bool `json:"unmatched,omitempty"`
}

func policyKey(id string) string { return "policy/" + id }

const (
	indexPolicies = "policies"  // of all policy records
	indexPolicyOf = "policyof/" // + task id
)

// Names reports whether the row is about a tool, by its name.
func (p Policy) Names(tool string) bool {
	return policy.Row{Tool: p.Tool, Rule: policy.Ask}.Applies(policy.Call{Tool: tool})
}

// settingsPolicies are the rows of the settings as they are now.
func (a *Agent) settingsPolicies() []Policy {
	if a.opt.Policies == nil {
		return nil
	}
	var list []Policy
	for _, r := range a.opt.Policies() {
		list = append(list, Policy{Row: r, ID: r.Name})
	}
	return list
}

// threadPolicies are the rows that "always" made in a thread.
func (a *Agent) threadPolicies(ctx context.Context, account mailbox.AccountID, task string) ([]Policy, error) {
	return a.policyRecords(ctx, account, indexPolicyOf+task)
}

// policyRecords decodes rows. One that does not decode keeps what of it can be read, and
// is one that does not parse.
func (a *Agent) policyRecords(ctx context.Context, account mailbox.AccountID, index string) ([]Policy, error) {
	recs, err := a.store.Lookup(ctx, account, index)
	if err != nil {
		return nil, err
	}
	var list []Policy
	for _, rec := range recs {
		var p Policy
		if err := json.Unmarshal(rec.Value, &p); err != nil {
			p = Policy{Row: policy.Row{Rule: "unreadable"}}
			_ = json.Unmarshal(rec.Value, &struct{ Tool *string }{&p.Tool})
		}
		p.ID = strings.TrimPrefix(rec.Key, policyKey(""))
		list = append(list, p)
	}
	slices.SortFunc(list, func(x, y Policy) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
	return list, nil
}

// alwaysOps makes the row of an "always": the tool is allowed in this thread from now on.
func alwaysOps(d Decision, by DecidedBy) mailbox.PutRecord {
	p := Policy{
		Row: policy.Row{Tool: d.Tool, Rule: policy.Allow}, ID: newToken(),
		Task: d.Task, By: &by, Decision: d.ID, Created: by.At,
	}
	return mailbox.PutRecord{Key: policyKey(p.ID), Value: mustJSON(p), Index: []string{indexPolicies, indexPolicyOf + d.Task, indexOfTask + d.Task}}
}

// Policies lists the rows that are in force for an account: those of the settings, then
// those that "always" made, oldest first.
func (a *Agent) Policies(ctx context.Context, account mailbox.AccountID) ([]Policy, error) {
	of, err := a.policyRecords(ctx, account, indexPolicies)
	if err != nil {
		return nil, err
	}
	list := append(a.settingsPolicies(), of...)
	specs := a.specs()
	for i := range list {
		p := &list[i]
		p.Unmatched = true
		for _, s := range specs {
			p.Unmatched = p.Unmatched && !p.Names(s.Name)
		}
		var wrong []string
		for _, problem := range p.Check() {
			wrong = append(wrong, problem.Key+": "+problem.Text)
		}
		p.Broken = strings.Join(wrong, "; ")
		if p.Task == "" {
			continue
		}
		if th, _, err := a.thread(ctx, account, p.Task); err == nil {
			p.Subject = th.Subject
		}
	}
	return list, nil
}

// RevokePolicy takes back a row that "always" made: its tool is asked about again.
//
// Errors are *mailbox.Error: NotFound, Refused for a row of the settings.
func (a *Agent) RevokePolicy(ctx context.Context, account mailbox.AccountID, id string) error {
	typed := printable(id)
	if strings.HasPrefix(id, "policies[") {
		return &mailbox.Error{Op: "revoke", Kind: mailbox.Refused, Name: typed,
			Text: typed + " is written in settings.json: take it out there"}
	}
	id = crockford.Fold(id)
	rec, err := a.store.Record(ctx, account, policyKey(id))
	if isKind(err, mailbox.NotFound) {
		return &mailbox.Error{Op: "revoke", Kind: mailbox.NotFound, Name: typed,
			Text: "no rule of yours has the id " + typed + "; `pizza policies` lists them"}
	}
	if err != nil {
		return err
	}
	if err := a.commit(ctx, account, mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version}); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "policy revoked", "policy", id)
	return nil
}

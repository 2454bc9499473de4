package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"pizza/internal/policy"
	"pizza/internal/tools"
	"pizza/mailbox"
)

// judged is what policy says about a call.
type judged struct {
	tools.Plan
	By string // the row that decided; empty: the tool's own rule
}

// weigh is policy. The tool's own rule (with what the run may have at all) is the base, and what it denies or finds invalid
// stays so. Of the owner's rows that apply the strictest counts: it makes the base
// stricter; a row that allows lifts an ask of a call that may be allowed once and for all
// (tools.Effect.Standing), and nothing else. A row that does not parse denies.
func (a *Agent) weigh(ctx context.Context, account mailbox.AccountID, run Run, base tools.Plan, c Call) (judged, error) {
	j := judged{Plan: base}
	if j.Rule != tools.Allow && j.Rule != tools.Ask {
		return j, nil
	}
	list := a.settingsPolicies()
	if j.Rule == tools.Ask { // rows of the account only ever allow: they are of no use before
		of, err := a.threadPolicies(ctx, account, run.Task)
		if err != nil {
			return j, err
		}
		list = append(list, of...)
	}
	if len(list) == 0 {
		return j, nil
	}
	rows := make([]policy.Row, len(list))
	for i, p := range list {
		rows[i] = p.Row
	}
	i, err := policy.Strictest(rows, policyCall(c, j.Plan, run.Path))
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelError, "a policy cannot be read: its tools are off",
			slog.String("policy", list[i].ID), slog.String("tool", c.Name), slog.String("run", run.ID))
		j.Rule, j.By = tools.Deny, list[i].ID
		j.Reason = fmt.Sprintf("The policy %s cannot be read, so this tool is off until its owner has corrected it.", list[i].ID)
		return j, nil
	}
	if i >= 0 {
		j.apply(list[i])
	}
	return j, nil
}

// weigh is policy about a call of the run.
func (d *draft) weigh(ctx context.Context, c Call) (judged, error) {
	base := d.judge(c)
	if base.Rule == tools.Allow && d.outside(base) {
		base.Rule = tools.Ask // and no row lifts it: what reaches outside is never Standing
	}
	return d.s.a.weigh(ctx, d.s.account, d.run, base, c)
}

// outside reports whether a call may carry out what somebody else's text wants: the model
// had been told such text when it made the call, and it reaches outside (invariant 9).
func (d *draft) outside(p tools.Plan) bool {
	return d.st.Foreign && p.Effect.Outside() && p.Class != classWorker
}

// judge is the tool's own rule: pure in the arguments and the grants. What it does not
// know it does not allow.
func (a *Agent) judge(c Call) tools.Plan {
	if c.Bad != "" {
		return tools.Plan{Rule: tools.Invalid, Reason: "The arguments cannot be used: " + c.Bad}
	}
	args, err := canonical(c.Args)
	if err != nil {
		return tools.Plan{Rule: tools.Invalid, Reason: "The arguments cannot be used: " + err.Error()}
	}
	call := tools.Call{Name: c.Name, Args: args}
	p := a.opt.Tools.Plan(call)
	if own := ownTool(c.Name); own != nil {
		p = own.plan(a, call)
	}
	switch p.Rule {
	case tools.Allow, tools.Ask, tools.Deny, tools.Invalid:
		return p
	}
	return tools.Plan{Rule: tools.Deny, Reason: "There is no rule for this call."}
}

// judge is the agent's judgement, for the run: a worker has the tools it was given and no
// others, whatever its model asks for.
func (d *draft) judge(c Call) tools.Plan {
	if d.run.child() && !hasTool(d.st.Started.Tools, c.Name) {
		return tools.Plan{Rule: tools.Invalid, Reason: "There is no tool " + clip(oneLine(c.Name), 64) + " for this worker."}
	}
	return d.s.a.judge(c)
}

// apply lays the strictest row over the tool's own rule.
func (j *judged) apply(p Policy) {
	switch {
	case p.Rule == policy.Deny:
		j.Rule, j.By, j.Reason = tools.Deny, p.ID, "A policy of the owner denies this call ("+p.ID+")."
	case p.Rule == policy.Ask:
		j.Rule, j.By = tools.Ask, p.ID
	case j.Rule == tools.Ask && j.Effect.Standing():
		j.Rule, j.By = tools.Allow, p.ID
	}
}

// policyCall is a call as rows are held against it. Arguments that do not decode are none:
// such a call is invalid and was not asked about.
func policyCall(c Call, p tools.Plan, skills []string) policy.Call {
	call := policy.Call{Tool: c.Name, Skills: skills, Exact: p.Exact}
	dec := json.NewDecoder(bytes.NewReader(c.Args))
	dec.UseNumber()
	_ = dec.Decode(&call.Args)
	return call
}

// spec is the declaration of a tool as it is now; false for a tool that is not there.
func (a *Agent) spec(name string) (tools.Spec, bool) {
	for _, s := range a.specs() {
		if s.Name == name {
			return s, true
		}
	}
	return tools.Spec{}, false
}

// schemaHash is the hash of a tool's schema, whatever the order of its members; "" for a
// tool that is not there.
func (a *Agent) schemaHash(name string) string {
	s, ok := a.spec(name)
	if !ok {
		return ""
	}
	if c, err := canonical(s.Schema); err == nil {
		return hashArgs(c)
	}
	return hashArgs(s.Schema)
}

// Package tools holds what the agent's calls do: Set is a source of tools, Join makes
// one of several. Files are the file tools over three places: /local/<id> (granted
// folders, contained with os.Root), /in (the task's attachments, read-only) and /out
// (what comes back as attachments).
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Class says what may be done with a call whose outcome is not known.
type Class string

const (
	ReadOnly     Class = "read-only"    // run again
	Idempotent   Class = "idempotent"   // run again with the same Call.Key
	Reconcilable Class = "reconcilable" // look whether it happened (Prober); ask when that does not tell
	OnceOnly     Class = "once-only"    // never again by itself: ask
)

// Rule is what policy says about a call.
type Rule string

const (
	Allow   Rule = "allow"
	Ask     Rule = "ask"
	Deny    Rule = "deny"
	Invalid Rule = "invalid" // unknown tool or arguments that do not fit: an error result
)

// Spec declares a tool to a model.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Time        time.Duration // a call may take; 0: as the agent's settings say
}

// Call is a call to make. Args is a JSON object.
type Call struct {
	Name string
	Args json.RawMessage
	// Key names this call among all calls of all runs, the same at every attempt:
	// "<run>/<call id>". Empty while it is only planned.
	Key string
}

// Set is a source of tools. The methods are safe for concurrent use.
type Set interface {
	// Specs lists the tools in a fixed order, names unique.
	Specs() []Spec
	// Plan says what a call would do, from its arguments and the settings alone, without
	// any effect. A tool that the set does not have is Invalid.
	Plan(Call) Plan
	// Run makes the call, and none that Plan denies. It returns when the call has ended, or
	// soon after ctx has; Outcome.Unknown says that it may go on or have happened. A call
	// that does not return within 2 s of the end of ctx, or panics, counts as unknown.
	Run(ctx context.Context, w Workspace, c Call) Outcome
}

// Prober is a Set with Reconcilable tools.
type Prober interface {
	// Probe looks for the effect of a call that was begun under c.Key. When it is found,
	// Outcome is that of the call; when it surely never happened and will not, found is
	// false. An error, *providers.Error or any other, says that it cannot be told.
	Probe(ctx context.Context, w Workspace, c Call) (out Outcome, found bool, err error)
}

// Plan is what a call would do, from its arguments and the grants alone.
type Plan struct {
	Class    Class
	Rule     Rule
	Sentence string // what will happen, one sentence in plain words, from the real arguments
	Reason   string // why it is denied or invalid, for the model
	// Effect says what the call does to the world. Undeclared, the zero value, may be
	// anything: such a call is asked about each time.
	Effect Effect
	// Exact has those arguments that can be written in several ways in the one spelling
	// that policies compare, by name.
	Exact map[string]string
	// Weighty are arguments on which, beside those that Weighty knows by their names, an
	// edit is asked about once more.
	Weighty []string
}

// Workspace is the run's own files.
type Workspace interface {
	In() []File  // attachments of the task's mails, by unique name
	Out() []File // what the run has put to /out so far
}

// File is one file of a Workspace.
type File struct {
	Name string
	Size int64
	Open func() (io.ReadCloser, error)
}

// Outcome is what a call did.
type Outcome struct {
	Content string // for the model
	Error   bool   // the call failed; Content says why. It had no effect
	// Unknown: it is not known whether it had its effect. So is a time-out, and a connection
	// lost after the call was sent; what was never sent is an Error.
	Unknown bool
	Out     []OutFile
}

// OutFile is a change of /out that takes effect with the recording of the outcome.
type OutFile struct {
	Name    string
	Content []byte
	Deleted bool
}

// Grant is a folder the owner lets the agent use.
type Grant struct {
	ID    string // unique slug of the folder's name: /local/<id>
	Path  string // absolute, on this machine
	Write bool
}

// Files are the file tools. The methods are safe for concurrent use.
type Files struct {
	grants func() []Grant // read on every call, so that a removed grant acts at once

	// changing is held by a call that changes a granted folder: a read and the write
	// that rests on it are one, whatever runs beside it.
	changing sync.Mutex
}

// NewFiles returns the file tools over the grants that the function returns.
func NewFiles(grants func() []Grant) *Files { return &Files{grants: grants} }

// Specs lists the tools in a fixed order.
func (f *Files) Specs() []Spec {
	specs := make([]Spec, 0, len(fileTools))
	for _, t := range fileTools {
		specs = append(specs, Spec{Name: t.name, Description: t.about, Schema: t.schema()})
	}
	return specs
}

// Plan says what a call would do, from its arguments and the grants alone; it
// touches no file. Arguments that do not fit the schema exactly, and paths that are
// none of ours, are Invalid; a change of what is read-only is Deny.
func (f *Files) Plan(c Call) Plan {
	_, p := f.prepare(c)
	return p
}

// Run makes the call. It checks it as Plan does and makes none that Plan denies. A
// call that ctx ends before its effect is an error without effect; one that has
// begun its effect is finished. Changes of /out are in the Outcome alone: the caller
// records them and then shows them in w.Out.
func (f *Files) Run(ctx context.Context, w Workspace, c Call) Outcome {
	j, p := f.prepare(c)
	if p.Rule != Allow && p.Rule != Ask {
		return failed("%s", p.Reason)
	}
	if p.Class == OnceOnly {
		f.changing.Lock()
		defer f.changing.Unlock()
	}
	if ctx.Err() != nil {
		return failed("%s was stopped before it did anything", c.Name)
	}
	return j.tool.run(ctx, w, j)
}

// job is a checked call.
type job struct {
	f    *Files
	tool *tool
	args args
	path target
	to   target // of move_file
}

// prepare checks a call and plans it.
func (f *Files) prepare(c Call) (*job, Plan) {
	t := toolNamed(c.Name)
	if t == nil {
		return nil, noTool(c.Name)
	}
	invalid := func(err error) (*job, Plan) {
		return nil, Plan{Class: t.class, Rule: Invalid, Reason: err.Error()}
	}
	a, err := t.parse(c.Args)
	if err != nil {
		return invalid(err)
	}
	j := &job{f: f, tool: t, args: a}
	if j.path, err = f.resolve(a.text["path"]); err != nil {
		return invalid(err)
	}
	if to, ok := a.text["to"]; ok {
		if j.to, err = f.resolve(to); err != nil {
			return invalid(err)
		}
	}
	if err := t.check(j); err != nil {
		return invalid(err)
	}
	return j, j.plan()
}

// plan applies the rules of the places: reading is allowed, /out is the run's own,
// a change of a granted folder is asked, and anything read-only is denied.
func (j *job) plan() Plan {
	p := Plan{Class: j.tool.class, Rule: Allow, Sentence: j.tool.sentence(j), Effect: j.tool.effect(), Exact: j.exact()}
	if j.tool.class == ReadOnly {
		return p
	}
	switch {
	case j.path.place == inPlace:
		p.Rule, p.Reason = Deny, "/in is read-only: it holds the attachments of the task's mails"
	case j.path.place == outPlace:
		p.Class = Idempotent
	case !j.path.grant.Write:
		p.Rule, p.Reason = Deny, "/local/"+j.path.grant.ID+" is read-only: its owner lets it be read, not changed"
	default:
		p.Rule = Ask
	}
	return p
}

func failed(format string, a ...any) Outcome {
	return Outcome{Content: fmt.Sprintf(format, a...), Error: true}
}

func done(format string, a ...any) Outcome {
	return Outcome{Content: fmt.Sprintf(format, a...)}
}

// Package tools holds the built-in tools. Files are the file tools over three
// places: /local/<id> (granted folders, contained with os.Root), /in (the task's
// attachments, read-only) and /out (what comes back as attachments).
package tools

import (
	"context"
	"encoding/json"
	"io"
)

// Class says what may be done with a call whose outcome is not known.
type Class string

const (
	ReadOnly   Class = "read-only"  // run again
	Idempotent Class = "idempotent" // run again
	OnceOnly   Class = "once-only"  // never again by itself: ask
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
}

// Call is a call to make. Args is a JSON object.
type Call struct {
	Name string
	Args json.RawMessage
}

// Plan is what a call would do, from its arguments and the grants alone.
type Plan struct {
	Class    Class
	Rule     Rule
	Sentence string // what will happen, one sentence in plain words, from the real arguments
	Reason   string // why it is denied or invalid, for the model
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
	Unknown bool   // it is not known whether it had its effect (interrupted)
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
}

// NewFiles returns the file tools over the grants that the function returns.
func NewFiles(grants func() []Grant) *Files { return &Files{grants: grants} }

// Specs lists the tools in a fixed order.
//
//	func (f *Files) Specs() []Spec
//
// Plan says what a call would do; it never touches a file's content.
//
//	func (f *Files) Plan(c Call) Plan
//
// Run makes the call.
//
//	func (f *Files) Run(ctx context.Context, w Workspace, c Call) Outcome
var _ context.Context

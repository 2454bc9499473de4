package agent

import (
	"fmt"
	"strings"
	"time"
)

// Doing is what a run does or waits for, as of its newest commit: for its status message.
type Doing struct {
	What  string    `json:"what,omitempty"`
	Since time.Time `json:"since,omitzero"` // of what is under way
	Until time.Time `json:"until,omitzero"` // of a wait for a time
}

// doing is what the journal says of it: what the owner is asked, else the tools in flight,
// else the open model call, else the next try.
func (a *Agent) doing(s *State) Doing {
	var asked, tools []string
	var since time.Time
	for _, c := range s.open() {
		switch {
		case c.State == callAsking:
			asked = append(asked, a.plainSentence(c))
		case c.State == callStarted && c.Class != classWorker:
			tools = append(tools, c.Name)
			if since.IsZero() || c.Begun.Before(since) {
				since = c.Begun
			}
		}
	}
	switch {
	case s.asking():
		return Doing{What: limitSentence(s, s.Asks[len(s.Asks)-1].Limit)}
	case len(tools) > 0:
		return Doing{What: firstOf(tools), Since: since}
	case len(asked) > 0:
		return Doing{What: firstOf(asked)}
	case s.Pending && s.Context.Cut != nil:
		return Doing{What: "the model shortens the conversation", Since: s.Called}
	case s.Pending:
		return Doing{What: "the model is called", Since: s.Called}
	case s.Failed != nil && !s.Failed.Retry.IsZero():
		return Doing{What: "the model is called again", Until: s.Failed.Retry}
	}
	return Doing{}
}

// firstOf is the first of a list, and how many there are beside it.
func firstOf(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return fmt.Sprintf("%s (and %d more)", strings.TrimSuffix(list[0], "."), len(list)-1)
}

// stale reports whether the status shows less than the run knows, so that a replacement
// is worth its commit.
func (d *draft) stale() bool { return d.run.Shown != d.run.State || d.run.ShownSeq != d.st.Seq }

// waitUntold reports whether the status must be replaced as the run begins to wait: it
// shows another state or another wait, or an old time that is wrong for long.
func (d *draft) waitUntold(until time.Time) bool {
	now := d.s.a.now()
	return d.run.Shown != Waiting || len(d.born) > 0 || d.run.Tells != d.told().Doing.What ||
		!until.IsZero() && (now.Sub(d.run.ShownAt) >= statusEvery || until.Sub(now) >= statusEvery)
}

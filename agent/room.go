package agent

import (
	"context"
	"errors"

	"pizza/mailbox"
)

// While the disk is full (mailbox.Space) nothing new begins: mail is refused, and a run
// makes no intent of a tool or of a model call. What is under way is recorded in the
// room that the store keeps for it, and then the run waits. It shows so in Running, and
// looks again every roomEvery.

// forRoom is what such a run waits for, in words for its status.
const forRoom = "room on the disk"

const roomEvery = lookEvery

// errNoRoom: the run waits for room already, and there is none yet.
var errNoRoom = errors.New("agent: the disk is still full")

// room is *mailbox.Error Full while the account's disk takes nothing new.
func (a *Agent) room(ctx context.Context, account mailbox.AccountID) error {
	sp, err := a.store.Space(ctx, account)
	if err == nil && sp.Full() {
		return &mailbox.Error{Op: "room", Kind: mailbox.Full}
	}
	return err
}

// full reports whether the run may begin nothing. A store that does not answer is not
// full: the commit will tell what is wrong with it.
func (s *session) full(ctx context.Context) bool {
	return isKind(s.a.room(ctx, s.account), mailbox.Full)
}

// stillFull reports whether a claimed run has nothing to do but to wait on. A run that
// its owner ends does not wait.
func (s *session) stillFull(ctx context.Context) bool {
	return s.run.State == Waiting && s.run.For == forRoom && !s.st.ending() && s.full(ctx)
}

// begins reports whether act makes an intent.
func (act Todo) begins() bool {
	return (act.Do == DoCall || act.Do == DoCompact) && !act.Open || act.Do == DoStep && len(act.Start) > 0
}

// awaitRoom ends a draft that may begin nothing: what is in flight is awaited first.
func (d *draft) awaitRoom(ctx context.Context) error {
	if len(d.s.inflight) > 0 || d.s.quiet {
		return nil
	}
	return d.pause(ctx, forRoom, d.s.a.now().Add(roomEvery))
}

package agent

import "fmt"

// Move is what happens to a run as a whole.
type Move string

const (
	moveClaim   Move = "claim"   // a worker takes it
	moveRelease Move = "release" // its worker stopped: shutdown, crash, a failed step
	movePause   Move = "pause"   // nothing can go on without a person or a timer
	moveResume  Move = "resume"  // what it waited for has come
	moveFinish  Move = "finish"  // ended with a result
	moveFail    Move = "fail"    // ended with a failure mail
	moveCancel  Move = "cancel"  // ended by the owner
)

// TransitionError is a move that a state does not know.
type TransitionError struct {
	From RunState
	Move Move
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("agent: a run that is %s cannot %s", e.From, e.Move)
}

// step returns the state that follows s on m. It is pure. The caller persists it by
// compare-and-set on the run's record; "it was not s any more" is someone else's
// move, never success.
func step(s RunState, m Move) (RunState, error) {
	switch s {
	case Queued:
		if m == moveClaim {
			return Working, nil
		}
	case Working:
		switch m {
		case moveRelease:
			return Queued, nil
		case movePause:
			return Waiting, nil
		case moveFinish:
			return Done, nil
		case moveFail:
			return Failed, nil
		case moveCancel:
			return Cancelled, nil
		}
	case Waiting:
		if m == moveResume {
			return Queued, nil
		}
	}
	return s, &TransitionError{From: s, Move: m}
}

// claimed is the state of a run that a worker has just claimed: the record may still
// say running (a crash) or waiting (a decision made it due).
func claimed(s RunState) (RunState, error) {
	var err error
	switch s {
	case Working:
		s, err = step(s, moveRelease)
	case Waiting:
		s, err = step(s, moveResume)
	}
	if err != nil {
		return s, err
	}
	return step(s, moveClaim)
}

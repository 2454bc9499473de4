package agent

import (
	"errors"
	"testing"
)

func TestRunStateWalksEveryPair(t *testing.T) {
	t.Parallel()
	type in struct {
		s RunState
		m Move
	}
	want := map[in]RunState{
		{Queued, moveClaim}: Working, {Working, moveRelease}: Queued, {Working, movePause}: Waiting,
		{Waiting, moveResume}: Queued, {Working, moveFinish}: Done, {Working, moveFail}: Failed,
		{Working, moveCancel}: Cancelled,
	}
	states := []RunState{Queued, Working, Waiting, Done, Failed, Cancelled, ""}
	moves := []Move{moveClaim, moveRelease, movePause, moveResume, moveFinish, moveFail, moveCancel, ""}
	for _, s := range states {
		for _, m := range moves {
			got, err := step(s, m)
			next, legal := want[in{s, m}]
			var te *TransitionError
			switch {
			case legal && (err != nil || got != next):
				t.Errorf("step(%s, %s) = %s, %v; want %s", s, m, got, err, next)
			case !legal && (!errors.As(err, &te) || got != s):
				t.Errorf("step(%s, %s) = %s, %v; want a TransitionError", s, m, got, err)
			}
		}
	}
}

func TestClaimedTakesWhatIsLive(t *testing.T) {
	t.Parallel()
	for _, s := range []RunState{Queued, Working, Waiting} {
		if got, err := claimed(s); err != nil || got != Working {
			t.Errorf("claimed(%s) = %s, %v", s, got, err)
		}
	}
	for _, s := range []RunState{Done, Failed, Cancelled, "other"} {
		if _, err := claimed(s); err == nil {
			t.Errorf("claimed(%s) took a run that is over", s)
		}
	}
}

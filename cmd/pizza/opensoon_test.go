package main

import (
	"bytes"
	"log/slog"
	"testing"
)

// waitLine closes logged with the line that says that it waits.
type waitLine struct{ logged chan struct{} }

func (f waitLine) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("waiting for it")) {
		close(f.logged)
	}
	return len(p), nil
}

// A server that starts while a command has the data root open by itself starts when that
// is done: a cron job between two servers does not keep the next one from starting.
func TestServerWaitsForACommand(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	command, err := openAlone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	set, err := loadSettings(root, serveFlags{})
	if err != nil {
		t.Fatal(err)
	}
	logged, opened := make(chan struct{}), make(chan error, 1)
	go func() {
		a, err := openSoon(t.Context(), root, set, slog.New(slog.NewTextHandler(waitLine{logged}, nil)))
		if err == nil {
			err = a.Close()
		}
		opened <- err
	}()
	<-logged
	if err := command.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("the server did not start: %v", err)
	}
}

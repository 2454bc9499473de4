package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestRecordedJournals replays journals of every released format. Each file of
// testdata/journals is a journal as it lay on disk (one event a line: the version
// byte as a digit, then the JSON), named <what>.<what Next says at its end>. A file
// that stops to fold, or leads elsewhere, means that an upgrade would strand or
// change a run that a person is waiting for.
func TestRecordedJournals(t *testing.T) {
	files, err := filepath.Glob("testdata/journals/*")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d recorded journals, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			state := replay(t, path)
			want := Do(filepath.Ext(path)[1:])
			if got := Next(state); got.Do != want {
				t.Errorf("Next says %+v, want %s", got, want)
			}
		})
	}
}

// replay folds a recorded journal, as a new process does.
func replay(t *testing.T, path string) State {
	t.Helper()
	var s State
	for _, e := range recorded(t, path) {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	s.Age(s.Epoch + 1)
	return s
}

// recorded decodes a recorded journal.
func recorded(t *testing.T, path string) (events []Event) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := bytes.Clone(lines.Bytes())
		line[0] -= '0'
		e, err := decodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// TestEveryKindIsRecorded fails when an event has no recorded journal. Then record one:
// PIZZA_RECORD=<folder> go test ./agent writes the journals of what the tests ran; put one
// that has the event into testdata/journals.
func TestEveryKindIsRecorded(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	files, _ := filepath.Glob("testdata/journals/*") // TestRecordedJournals has looked
	for _, path := range files {
		for _, e := range recorded(t, path) {
			seen[e.kind()] = true
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Event]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "at" && !seen[name] {
			t.Errorf("no recorded journal has the event %s", name)
		}
	}
}

// recordJournal writes a journal as testdata/journals has them, where PIZZA_RECORD says.
func recordJournal(t testing.TB, run string, events []Event) {
	t.Helper()
	dir := os.Getenv("PIZZA_RECORD")
	if dir == "" {
		return
	}
	s, err := Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range events {
		b.WriteByte('0' + eventVersion)
		b.Write(encodeEvent(e)[1:])
		b.WriteByte('\n')
	}
	s.Age(s.Epoch + 1)
	name := strings.ReplaceAll(t.Name(), "/", "-") + "-" + run[strings.IndexByte(run, '.')+1:]
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("v%d-%s.%s", eventVersion, name, Next(s).Do)), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

package agent

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
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

// replay decodes and folds a recorded journal, as a new process does.
func replay(t *testing.T, path string) State {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s State
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := bytes.Clone(lines.Bytes())
		line[0] -= '0'
		e, err := decodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	s.Age(s.Epoch + 1)
	return s
}

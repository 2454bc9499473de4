package mime

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestCorpus holds what every message of the corpus becomes.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(corpus)
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	index, err := os.ReadFile(filepath.Join(filepath.Dir(corpus), "INDEX"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			if !bytes.Contains(index, []byte(name+"  ")) {
				t.Errorf("%s has no line in INDEX", name)
			}
			msg, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := parse(t, string(msg))
			check(t, string(msg), s)
			compare(t, filepath.Join("testdata", "golden", strings.TrimSuffix(name, ".eml")+".txt"), describeAll(t, msg, s))
		})
	}
}

func describeAll(t *testing.T, msg []byte, s *Structure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ENVELOPE %s\n\nBODYSTRUCTURE %s\n\n", s.Envelope, s.BodyStructure)
	fmt.Fprintf(&b, "subject %q\nfrom %q\nto %q\ndate %v\nid %q %q %q\nlines %d\n", s.Subject, s.From, s.To, s.Date.UTC(), s.MessageID, s.InReplyTo, s.References, s.Lines)
	s.Root.Walk(func(path []int, p *Part) bool {
		fmt.Fprintf(&b, "\n%v %s/%s %s %q header %v body %v lines %d\n", path, p.Type, p.Subtype, p.Encoding, p.Filename, p.Header, p.Body, p.Lines)
		if p.Type == "text" {
			text, err := Text(bytes.NewReader(msg), p, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "text %q\n", text)
			if p.Subtype == "html" {
				text, hidden := HTMLText(text)
				fmt.Fprintf(&b, "read %q, %d hidden\n", text, hidden)
			}
		}
		return true
	})
	return b.String()
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", file, got, want)
	}
}

package textindex

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkBuild indexes the sources of the Go library, as texts of their own: words as
// many as mail has. It tells how large the index is in parts of the text.
func BenchmarkBuild(b *testing.B) {
	var texts [][]byte
	total := 0
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("no go command here")
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || total > 30<<20 {
			return err
		}
		text, err := os.ReadFile(path)
		texts, total = append(texts, []byte(strings.ToLower(string(text)))), total+len(text)
		return err
	})
	if err != nil || len(texts) == 0 {
		b.Skip("no sources of Go here", err)
	}
	b.SetBytes(int64(total))
	for b.Loop() {
		x, err := Open(b.TempDir(), 1, func([]Content) bool { return true })
		if err != nil {
			b.Fatal(err)
		}
		var g Grams
		for i, text := range texts {
			g.Reset()
			g.Add(text, Message)
			x.Add(Content{uint64(i + 1), 0}, &g)
			if x.Due() {
				if err := x.Flush(); err != nil {
					b.Fatal(err)
				}
				if _, err := x.Merge(func(uint64) bool { return true }); err != nil {
					b.Fatal(err)
				}
			}
		}
		st := x.Stats()
		b.ReportMetric(100*float64(st.Bytes)/float64(total), "%size")
		b.ReportMetric(float64(st.Bytes)/float64(st.Contents), "B/content")
	}
}

package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName = regexp.MustCompile("`((?:Test|Fuzz)\\w+)")
	classRow = regexp.MustCompile(`^\| (\d+) \|`)
)

// TestReliabilityTable holds that docs/reliability.md has all 28 failure classes, each with
// tests, and that every test it names is in the tree.
func TestReliabilityTable(t *testing.T) {
	there := tests(t)
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range testName.FindAllSubmatch(page, -1) {
		if !there[string(name[1])] {
			t.Errorf("docs/reliability.md names %s, which is no test", name[1])
		}
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if m := classRow.FindStringSubmatch(line); m != nil {
			rows[m[1]] = line
		}
	}
	for class := 1; class <= 28; class++ {
		row := rows[fmt.Sprint(class)]
		if !testName.MatchString(row) && !strings.Contains(row, "not built yet") {
			t.Errorf("class %d has no test: %q", class, row)
		}
	}
}

// tests are the names of all tests of this module.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "../.." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

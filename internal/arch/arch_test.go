// Package arch holds the import directions of DESIGN.md as a test.
package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path all packages of ours begin with.
const module = "pizza/"

// allowed lists, for each package of ours, which others of ours its non-test files
// may import. A trailing /... stands for a whole tree. A package that is not
// listed may import nothing of ours; cmd may import everything.
var allowed = map[string][]string{
	"mailbox":              {"internal/mime"},
	"mailbox/boltstore":    {"mailbox", "internal/mime", "internal/crockford", "internal/fold", "internal/textindex"},
	"mailbox/storetest":    {"mailbox", "internal/mime", "internal/scram", "internal/scram/scramtest", "internal/fold"},
	"imapserver":           {"mailbox", "internal/config", "internal/mime", "internal/mutf7", "internal/fold", "internal/scram"},
	"smtpgate":             {"mailbox", "internal/config", "internal/mime", "internal/crockford", "internal/msgid", "internal/scram"},
	"web":                  {"mailbox", "internal/config", "internal/mime"},
	"agent":                {"mailbox", "providers", "skills", "internal/..."},
	"providers/...":        {"providers", "providers/..."},
	"internal/config":      {"internal/levenshtein", "internal/policy"},
	"internal/mail":        {"internal/mime", "internal/unseen"},
	"internal/mailfile":    {"internal/mutf7"},
	"internal/scram":       {"mailbox"},
	"internal/scram/...":   {"mailbox"},
	"internal/msgid":       {"internal/crockford"},
	"internal/tools":       {"mailbox", "internal/mail", "internal/schedule", "internal/unseen"},
	"internal/testkit":     {"..."},
	"internal/testkit/...": {"..."},
	"cmd/...":              {"..."},
}

// only lists modules that a single package may import.
var only = map[string]string{
	"go.etcd.io/bbolt":                          "mailbox/boltstore",
	"github.com/emersion/go-smtp":               "smtpgate cmd/pizza",
	"github.com/emersion/go-imap/v2/imapserver": "",
}

func TestImportDirections(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		checkFile(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("looked at %d files only: the walk is wrong", files)
	}
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	rel, err := filepath.Rel("../..", filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	pkg := filepath.ToSlash(rel)
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if users, ok := only[imported]; ok && !slices.Contains(strings.Fields(users), pkg) {
			t.Errorf("%s imports %s; only %q may", pkg, imported, users)
		}
		ours, isOurs := strings.CutPrefix(imported, module)
		if isOurs && !mayImport(pkg, ours) {
			t.Errorf("%s imports %s: against the direction of DESIGN.md", pkg, ours)
		}
	}
}

func mayImport(pkg, imported string) bool {
	for from, list := range allowed {
		if !matches(from, pkg) {
			continue
		}
		for _, to := range list {
			if matches(to, imported) {
				return true
			}
		}
	}
	return false
}

// matches reports whether path is pattern, or lies below it if it ends in "...".
func matches(pattern, path string) bool {
	prefix, tree := strings.CutSuffix(pattern, "...")
	if !tree {
		return pattern == path
	}
	return strings.HasPrefix(path+"/", prefix)
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"mailbox", "mailbox", true},
		{"mailbox", "mailbox/boltstore", false},
		{"providers/...", "providers/wire/chat", true},
		{"providers/...", "providersx", false},
		{"...", "agent", true},
	} {
		if got := matches(tt.pattern, tt.path); got != tt.want {
			t.Errorf("matches(%q, %q) = %v, want %v", tt.pattern, tt.path, got, tt.want)
		}
	}
}

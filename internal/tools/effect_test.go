package tools

import (
	"testing"
)

func TestEffects(t *testing.T) {
	t.Parallel()
	f := NewFiles(func() []Grant { return []Grant{{ID: "docs", Path: t.TempDir(), Write: true}} })
	for args, want := range map[string]Effect{
		`read_file {"path":"/local/docs/a"}`:                         Reads,
		`write_file {"path":"/local/docs/a","content":"x"}`:          Changes,
		`edit_file {"path":"/local/docs/a","old":"x","new":"y"}`:     Changes,
		`move_file {"path":"/local/docs/a","to":"/local/docs/b"}`:    Changes,
		`delete_file {"path":"/local/docs/a"}`:                       Deletes,
		`move_file {"path":"/local//docs/./a","to":"/local/docs/b"}`: Changes,
	} {
		var name, rest string
		for i := range args {
			if args[i] == ' ' {
				name, rest = args[:i], args[i+1:]
				break
			}
		}
		p := f.Plan(Call{Name: name, Args: []byte(rest)})
		if p.Effect != want || p.Exact["path"] != "/local/docs/a" {
			t.Errorf("%s: %q, %v", args, p.Effect, p.Exact)
		}
		if p.Effect.Standing() != (want != Deletes) || (p.Effect.Because() == "") != p.Effect.Standing() {
			t.Errorf("%s: standing %v because %q", args, p.Effect.Standing(), p.Effect.Because())
		}
	}
	for _, e := range []Effect{Undeclared, Deletes, Sends, Pays, "new"} {
		if e.Standing() || e.Because() == "" {
			t.Errorf("%q may be allowed once and for all", e)
		}
	}
}

func TestWeighty(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"path": true, "to": true, "filePath": true, "amount_eur": true, "recipient-email": true, "CC": true, "command": true, "baseURL": true,
		"content": false, "new": false, "subject": false, "top": false, "": false, "pathology": false,
	} {
		if Weighty(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

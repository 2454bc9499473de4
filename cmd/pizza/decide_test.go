package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pizza/agent"
	"pizza/internal/config"
	"pizza/internal/policy"
	"pizza/mailbox"
)

// clerk is a data root with a granted folder and a policy, served over the socket; the
// commands run against it.
func clerk(t *testing.T, socket bool) (*app, service, string) {
	t.Helper()
	root, docs := t.TempDir(), t.TempDir()
	set := config.Default()
	set.Grants = []config.Grant{{Path: docs, Write: true}}
	set.Policies = []policy.Row{{Tool: "delete_file", Rule: policy.Deny}}
	if err := config.Save(root, set, nil); err != nil {
		t.Fatal(err)
	}
	a := quiet(t, root)
	work(t, a)
	if !socket {
		return a, a, docs
	}
	return a, dial(t, a, root), docs
}

// waits returns the one open decision of a task.
func waits(t *testing.T, s service, task string) agent.Decision {
	t.Helper()
	if _, err := s.Wait(t.Context(), "me", task); err != nil {
		t.Fatal(err)
	}
	shown, err := s.Show(t.Context(), "me", task)
	if err != nil || len(shown.Open) != 1 {
		t.Fatalf("%+v, %v", shown.Open, err)
	}
	return shown.Open[0]
}

func TestDecideByService(t *testing.T) {
	t.Parallel()
	for name, socket := range map[string]bool{"alone": false, "socket": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s, docs := clerk(t, socket)
			folder := "/local/" + strings.ToLower(filepath.Base(docs))
			task := sendTask(t, s, `call write_file {"path":"`+folder+`/a.txt","content":"x"}
call write_file {"path":"`+folder+`/b.txt","content":"y"}
call delete_file {"path":"`+folder+`/a.txt"}
call ask_owner {"question":"Fine?"}`).Task
			d := waits(t, s, task)
			wantKind(t, mailbox.Refused, func() error {
				_, err := s.Decide(t.Context(), "me", decision{ID: d.ID, Verb: "edit", Args: json.RawMessage(`{"path":1}`)})
				return err
			})
			args := json.RawMessage(`{"content":"edited","path":"` + folder + `/a.txt"}`)
			done, err := s.Decide(t.Context(), "me", decision{ID: d.ID, Verb: "edit", Args: args})
			if err != nil || done.State != agent.Edited || string(done.Edited) != string(args) {
				t.Fatalf("%+v, %v", done, err)
			}
			if _, err := s.Decide(t.Context(), "me", decision{ID: waits(t, s, task).ID, Verb: "always"}); err != nil {
				t.Fatal(err)
			}
			q := waits(t, s, task)
			if q.Kind != "question" {
				t.Fatalf("%s is open", q.Kind)
			}
			list, err := s.Policies(t.Context(), "me")
			if err != nil || len(list) != 2 || list[0].ID != "policies[0]" || list[1].Tool != "write_file" || list[1].Task != task {
				t.Fatalf("%+v, %v", list, err)
			}
			if err := s.RevokePolicy(t.Context(), "me", list[1].ID); err != nil {
				t.Fatal(err)
			}
			wantKind(t, mailbox.NotFound, func() error { return s.RevokePolicy(t.Context(), "me", list[1].ID) })
			wantKind(t, mailbox.Refused, func() error { return s.RevokePolicy(t.Context(), "me", "policies[0]") })
			if _, err := s.Decide(t.Context(), "me", decision{ID: q.ID, Verb: "answer", Text: "quite: yes"}); err != nil {
				t.Fatal(err)
			}
			out, err := s.Wait(t.Context(), "me", task)
			if err != nil || !strings.Contains(out.Text, "quite: yes") || !strings.Contains(out.Text, "A policy of the owner denies this call (policies[0])") {
				t.Errorf("%+v, %v", out, err)
			}
			if got, err := os.ReadFile(filepath.Join(docs, "a.txt")); err != nil || string(got) != "edited" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestEditCommand(t *testing.T) {
	a, s, docs := clerk(t, true)
	folder := "/local/" + strings.ToLower(filepath.Base(docs))
	write := func(name string) agent.Decision {
		return waits(t, s, sendTask(t, s, `call write_file {"path":"`+folder+`/`+name+`","content":"x <1.0>"}`).Task)
	}
	editor := func(script string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "editor.sh")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("VISUAL", "")
		t.Setenv("EDITOR", path)
	}
	d := write("a.txt")
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	command(t, a, 1, "no editor", "edit", d.ID)
	editor("exit 3")
	command(t, a, 1, "nothing was decided", "edit", d.ID)
	editor("true")
	command(t, a, 1, "nothing was changed, and nothing was decided", "edit", d.ID)
	editor(`echo '{' > "$1"`)
	command(t, a, 1, "no valid JSON", "edit", d.ID)
	editor(`sed -i 's/"content"/"contents"/' "$1"`)
	command(t, a, 1, "your text is kept: pizza edit "+d.ID+" --args ", "edit", d.ID)
	editor(`sed -i 's/<1.0>/<2.0>/' "$1"`)
	command(t, a, 0, `"content":"x <2.0>"`, "edit", d.ID)
	if _, err := s.Wait(t.Context(), "me", d.Task); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(docs, "a.txt")); err != nil || string(got) != "x <2.0>" {
		t.Errorf("%q, %v", got, err)
	}
	command(t, a, 1, "is edited already", "edit", d.ID)
	command(t, a, 0, "with your changes: {", "show", d.ID)

	file := filepath.Join(t.TempDir(), "args.json")
	if err := os.WriteFile(file, []byte(`{"path":"`+folder+`/c.txt","content":"x <1.0>"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := write("b.txt")
	command(t, a, 0, "you are asked once more, because you changed path", "edit", b.Task, "--args", file)
	command(t, a, 0, "approved: ", "approve", "--always", waits(t, s, b.Task).ID)
	command(t, a, 0, "allow write_file", "policies")
	list, err := s.Policies(t.Context(), "me")
	if err != nil || !slices.ContainsFunc(list, func(p agent.Policy) bool { return p.Task == b.Task }) {
		t.Fatalf("%+v, %v", list, err)
	}
	command(t, a, 0, "revoked", "policies", "revoke", list[1].ID)
	command(t, a, 1, "no rule of yours has the id", "policies", "revoke", list[1].ID)
	command(t, a, 0, `"rule": "deny"`, "policies", "--json")
	command(t, a, 1, "the id is empty", "edit", "")
	command(t, a, 1, "no task has the id", "edit", "nothing")
}

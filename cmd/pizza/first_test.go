package main

import (
	"bytes"
	"strings"
	"testing"

	"pizza/mailbox"
)

// Without me, the set-up and the commands are about the account there is.
func TestWithoutMe(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, err := openAlone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if a.firstUser != firstLogin {
		t.Errorf("the first start names %q", a.firstUser)
	}
	for _, login := range []string{"zoe", "bob"} {
		if _, err := a.PutCredential(t.Context(), credentialRequest{Login: login, Name: defaultCredential, Scope: mailbox.ScopeFull, Make: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.RemoveCredential(t.Context(), credentialRequest{Login: firstLogin}); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := newRoot()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append(args, "--data-root", root))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := run("inbox"); err == nil || !strings.Contains(userText(err), "--account") {
		t.Errorf("of two accounts: %v", err)
	}
	if _, err := run("account", "remove", "zoe"); err != nil {
		t.Fatal(err)
	}
	if _, err := run("inbox"); err != nil {
		t.Errorf("of the only account: %v", err)
	}
	if _, err := run("inbox", "--account", "me"); err == nil {
		t.Error("an account that is named and gone is not another one")
	}
	if out, err := run("password"); err != nil || strings.TrimSpace(out) == "" {
		t.Errorf("password: %q, %v", out, err)
	}
	a, err = openAlone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.firstUser != "bob" {
		t.Errorf("the set-up names %q", a.firstUser)
	}
}

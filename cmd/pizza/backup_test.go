package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pizza/agent"
	"pizza/mailbox"
)

// quiet opens a root without workers.
func quiet(t *testing.T, root string) *app {
	t.Helper()
	set, err := loadSettings(root, serveFlags{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := openApp(t.Context(), root, set, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestBackupAndRestore: while tasks come in, over the socket and without it; the mail is
// there, the password is the same, and what was open asks.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for _, socket := range []bool{false, true} {
		t.Run(fmt.Sprint(socket), func(t *testing.T) {
			t.Parallel()
			backupAndRestore(t, socket)
		})
	}
}

func backupAndRestore(t *testing.T, socket bool) {
	from := t.TempDir()
	a := quiet(t, from) // no workers: what is sent stays open
	var s service = a
	if socket {
		s = dial(t, a, from)
	}
	sendTask(t, s, "say one")
	password, err := readPassword(from, "me")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for ctx.Err() == nil {
			sendTask(t, s, "say more "+strings.Repeat("large ", 30_000))
		}
	})
	for _, name := range []string{"b.tar", "b.tar.gz"} {
		file := filepath.Join(t.TempDir(), name)
		if _, err := writeBackup(t.Context(), s, file); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if err := checkBackup(&bytes.Buffer{}, file); err != nil {
			t.Error(err)
		}
		restoredRoot(t, file, password)
	}
	stop()
	load.Wait()
}

// restoredRoot restores a file and looks at what came of it.
func restoredRoot(t *testing.T, file, password string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "new")
	var out bytes.Buffer
	if err := restore(t.Context(), &out, file, root, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "a mail in Action asks") {
		t.Errorf("told: %s", out.String())
	}
	if list, err := os.ReadDir(root); err != nil || strings.Contains(fmt.Sprint(list), unpacked) {
		t.Errorf("left in the root: %v, %v", list, err)
	}
	r := quiet(t, root)
	id, err := r.accounts.Authenticate(t.Context(), "me", password)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := r.List(t.Context(), "me", "Sent")
	if err != nil || len(sent) == 0 {
		t.Fatalf("%d mails in Sent, %v", len(sent), err)
	}
	err = r.store.Read(t.Context(), id.Account, everyMessage(t, r, id.Account), mailbox.WantBody, func(it *mailbox.Item) error {
		_, err := it.Body.ReadAt(make([]byte, 1), it.Body.Size()-1)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if asks, err := r.List(t.Context(), "me", "Action"); err != nil || len(asks) != 1 || asks[0].Kind != agent.KindQuestion {
		t.Errorf("Action: %+v, %v", asks, err)
	}
}

func everyMessage(t *testing.T, a *app, account mailbox.AccountID) (ids []mailbox.MessageID) {
	t.Helper()
	boxes, err := a.store.Mailboxes(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boxes {
		snap, err := a.store.Snapshot(t.Context(), account, b.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range snap.All() {
			ids = append(ids, e.Message)
		}
	}
	return ids
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	a := quiet(t, from)
	file := filepath.Join(t.TempDir(), "b.tar")
	if _, err := writeBackup(t.Context(), a, file); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.tar")
	if err := os.WriteFile(cut, whole[:len(whole)-3000], 0o600); err != nil {
		t.Fatal(err)
	}
	restoreTo := func(file, root string, force bool) error {
		return restore(t.Context(), &bytes.Buffer{}, file, root, force)
	}
	for _, tt := range []struct {
		name, file, root string
		force            bool
		want             string
	}{
		{"in use", file, from, true, "in use by process"},
		{"not empty", file, from, false, "is not empty"},
		{"cut off", cut, filepath.Join(t.TempDir(), "r"), false, "not a whole backup"},
		{"no file", file + ".none", filepath.Join(t.TempDir(), "r"), false, "no such file"},
	} {
		if err := restoreTo(tt.file, tt.root, tt.force); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if list, err := os.ReadDir(tt.root); err == nil && tt.root != from && len(list) > 0 {
			t.Errorf("%s: left %v", tt.name, list)
		}
	}
}

// TestRestoreForce: what was there is put aside and stays whole, also when the restore
// fails.
func TestRestoreForce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a := quiet(t, root)
	sendTask(t, a, "say old")
	file := filepath.Join(t.TempDir(), "b.tar")
	if _, err := writeBackup(t.Context(), a, file); err != nil {
		t.Fatal(err)
	}
	sendTask(t, a, "say newer")
	old, err := a.List(t.Context(), "me", "Sent")
	if err := errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := restore(t.Context(), &out, file, root, true); err != nil {
		t.Fatal(err)
	}
	sentIn := func(root string) int {
		t.Helper()
		r := quiet(t, root)
		defer r.Close()
		list, err := r.List(t.Context(), "me", "Sent")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	aside, err := filepath.Glob(filepath.Join(root, asidePrefix+"*"))
	if err != nil || len(aside) != 1 || !strings.Contains(out.String(), aside[0]) {
		t.Fatalf("put aside: %v (%v), told %s", aside, err, out.String())
	}
	if now, before := sentIn(root), sentIn(aside[0]); now != 1 || before != len(old) || before != 2 {
		t.Errorf("%d mails restored, %d put aside", now, before)
	}
}

// TestBackupKeepsTheOldOne: a backup that fails leaves the one that is there.
func TestBackupKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	a := quiet(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "b.tar")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, s := range []service{a, dial(t, a, a.root)} {
		if _, err := writeBackup(ctx, s, file); err == nil {
			t.Error("a backup in a context that has ended")
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "old" {
			t.Errorf("the old one is %q, %v", b, err)
		}
		if _, err := os.Stat(file + ".tmp"); err == nil {
			t.Error("a temporary file stays")
		}
	}
}

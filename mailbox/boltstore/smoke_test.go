package boltstore

import (
	"context"
	"strings"
	"testing"

	"pizza/internal/mime"
	"pizza/mailbox"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	s, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root, Options{}); err == nil {
		t.Fatal("second open")
	} else {
		t.Log(err)
	}
	if err := s.CreateAccount(ctx, "me", []mailbox.Mailbox{{ID: 10, Name: "Sent", System: true}}); err != nil {
		t.Fatal(err)
	}
	b, err := s.Stage(ctx, "me", strings.NewReader("hello"), 0)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := s.NextMessageID("me")
	res, err := s.Commit(ctx, "me", mailbox.Tx{Ops: []mailbox.Op{mailbox.AddMessage{ID: id, Blob: b, Structure: &mime.Structure{MessageID: "x@y"}, Places: []mailbox.MailboxID{1, 10}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(res)
	snap, err := s.Snapshot(ctx, "me", 1)
	if err != nil || snap.Len() != 1 {
		t.Fatal(err, snap)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(root, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Mailboxes(ctx, "me")
	t.Log(m, err)
	body, err := s.OpenMessage(ctx, "me", id)
	if err != nil || body.Size() != 5 {
		t.Fatal(err)
	}
	err = s.Messages(ctx, "me", []mailbox.MessageID{id}, func(m *mailbox.Message) error { t.Log(m, m.Structure.MessageID); return nil })
	if err != nil {
		t.Fatal(err)
	}
}

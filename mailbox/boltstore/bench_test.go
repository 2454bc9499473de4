package boltstore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func sum256(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// BenchmarkAddMessage is one durable mail of 5 KB with a record and an event, by 1
// and by 32 writers.
func BenchmarkAddMessage(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			text := strings.Repeat("five kilobytes ", 340)
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range writers {
				wg.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						if err := addThread(b, s, fmt.Sprint(text, i), i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
		})
	}
}

func addThread(b *testing.B, s *Store, text string, i int64) error {
	blob, err := s.Stage(b.Context(), me, strings.NewReader(text), 0)
	if err != nil {
		return err
	}
	id, err := s.NextMessageID(me)
	if err != nil {
		return err
	}
	name := fmt.Sprint("thread/", i)
	_, err = s.Commit(b.Context(), me, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.AddMessage{ID: id, Blob: blob, Places: []mailbox.MailboxID{mailbox.Inbox}},
		mailbox.PutRecord{Key: name, Value: make([]byte, 300), Index: []string{"live"}},
		mailbox.Append{Stream: name, Events: [][]byte{make([]byte, 400)}},
		mailbox.PutDue{Due: mailbox.Due{Kind: "run", Key: name}},
	}})
	return err
}

// fill puts n messages into INBOX.
func fill(b *testing.B, s *Store, n int) {
	b.Helper()
	blob, err := s.Stage(b.Context(), me, strings.NewReader("text"), 0)
	if err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; {
		var ops []mailbox.Op
		for ; len(ops) < 5000 && done < n; done++ {
			id, err := s.NextMessageID(me)
			if err != nil {
				b.Fatal(err)
			}
			ops = append(ops, mailbox.AddMessage{ID: id, Blob: blob, Places: []mailbox.MailboxID{mailbox.Inbox}})
		}
		if _, err := s.Commit(b.Context(), me, mailbox.Tx{Ops: ops}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshot100k(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	fill(b, s, 100_000)
	a := s.open[me]
	b.ResetTimer()
	for b.Loop() {
		if snap, err := a.read(mailbox.Inbox); err != nil || snap.Len() != 100_000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkDiff100k is one flag change in a mailbox of 100,000, seen by a session.
func BenchmarkDiff100k(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	fill(b, s, 100_000)
	old, err := s.Snapshot(b.Context(), me, mailbox.Inbox)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Commit(b.Context(), me, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: imap.UIDSetNum(50_000), Flags: []imap.Flag{imap.FlagSeen}}}}); err != nil {
		b.Fatal(err)
	}
	now, err := s.Snapshot(b.Context(), me, mailbox.Inbox)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if len(mailbox.Diff(old, now)) != 1 {
			b.Fatal("wrong difference")
		}
	}
}

// BenchmarkOpen10k opens an account with 10,000 messages and selects INBOX.
func BenchmarkOpen10k(b *testing.B) {
	root := b.TempDir()
	s := open(b, root, Options{})
	fill(b, s, 10_000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		s, err := Open(root, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Snapshot(b.Context(), me, mailbox.Inbox); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

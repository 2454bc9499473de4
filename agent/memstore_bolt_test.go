package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
	"pizza/mailbox/boltstore"
)

// TestMemStoreIsAsBolt gives the same random changes to the store of the simulator and to
// the real one: the same are refused for the same kind of reason, and the same lies there
// after each.
func TestMemStoreIsAsBolt(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bolt := openBolt(t, dir)
			mem := openMem(simAccount, newMemDisk())
			r := &storeRand{Rand: rand.New(rand.NewPCG(seed, 3))}
			refused, steps := 0, 60
			for step := range steps {
				if step == steps/2 { // another process
					if err := bolt.Close(); err != nil {
						t.Fatal(err)
					}
					bolt, mem = openBolt(t, dir), openMem(simAccount, mem.disk)
				}
				tx := r.tx(bolt, mem, step)
				_, err := bolt.Commit(t.Context(), simAccount, tx)
				_, memErr := mem.Commit(t.Context(), simAccount, tx)
				if refusedAs(err) != refusedAs(memErr) {
					t.Fatalf("step %d, %s: the real store says %v, that of the simulator %v", step, opsText(tx), err, memErr)
				}
				if err != nil {
					refused++
				}
				if want, got := r.lies(bolt), r.lies(mem); want != got {
					t.Fatalf("step %d, %s:\nreal\n%s\nsimulator\n%s", step, opsText(tx), want, got)
				}
				if want, got := r.claims(bolt, step), r.claims(mem, step); want != got {
					t.Fatalf("step %d: the real store gives %s, that of the simulator %s", step, want, got)
				}
			}
			if refused < steps/10 || refused > steps*9/10 {
				t.Errorf("%d of %d were refused: that compares little", refused, steps)
			}
		})
	}
}

func openBolt(t *testing.T, dir string) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(dir, boltstore.Options{})
	if err == nil {
		err = s.CreateAccount(t.Context(), simAccount, append([]mailbox.Mailbox{{ID: mailbox.Inbox, Name: "INBOX"}}, SystemMailboxes()...))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // it may be closed
	return s
}

func refusedAs(err error) string {
	var me *mailbox.Error
	switch {
	case err == nil:
		return "nothing"
	case errors.As(err, &me):
		return fmt.Sprint(me.Kind)
	}
	return err.Error()
}

func opsText(tx mailbox.Tx) string {
	var b strings.Builder
	for _, op := range tx.Ops {
		fmt.Fprintf(&b, "%T%+v; ", op, op)
	}
	return b.String()
}

// storeRand draws changes of few things, so that many meet.
type storeRand struct {
	*rand.Rand
	mails []mailbox.MessageID
}

var simNoon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func (r *storeRand) tx(bolt, mem mailbox.Store, step int) (tx mailbox.Tx) {
	if r.IntN(4) == 0 {
		tx.Epoch = mem.Epoch(simAccount) - uint64(r.IntN(2))
	}
	for range 1 + r.IntN(3) {
		tx.Ops = append(tx.Ops, r.op(bolt, mem, step))
	}
	return tx
}

func (r *storeRand) mail() mailbox.MessageID {
	if len(r.mails) == 0 || r.IntN(12) == 0 {
		return 1000
	}
	return r.mails[r.IntN(len(r.mails))]
}

func (r *storeRand) add(bolt, mem mailbox.Store, box mailbox.MailboxID) mailbox.Op {
	ctx := context.Background()
	id, err := bolt.NextMessageID(simAccount)
	memID, memErr := mem.NextMessageID(simAccount)
	text := fmt.Sprintf("mail %d", r.IntN(3))
	blob, e1 := bolt.Stage(ctx, simAccount, strings.NewReader(text), 0)
	_, e2 := mem.Stage(ctx, simAccount, strings.NewReader(text), 0)
	if err := errors.Join(err, memErr, e1, e2); err != nil || id != memID {
		panic(fmt.Sprint("the stores number mails as ", id, " and ", memID, ": ", err)) // the test cannot go on
	}
	r.mails = append(r.mails, id)
	if r.IntN(8) == 0 {
		blob.ID = strings.Repeat("0", len(blob.ID))
	}
	m := mailbox.AddMessage{ID: id, Blob: blob, Date: simNoon, Tag: pick2(r.Rand, "", "t")}
	if r.IntN(8) > 0 {
		m.Places = []mailbox.MailboxID{box}
	}
	if r.IntN(2) == 0 {
		m.Hold = []string{"h1"}
	}
	return m
}

func (r *storeRand) op(bolt, mem mailbox.Store, step int) mailbox.Op {
	key, box, version := pick2(r.Rand, "a", "b", "ab"), pick2(r.Rand, mailbox.Inbox, Action), uint64(r.IntN(4))
	value := fmt.Appendf(nil, `{"n":%d}`, step)
	if key == "b" {
		value = []byte("words")
	}
	switch r.IntN(15) {
	case 0:
		return r.add(bolt, mem, box)
	case 1:
		return mailbox.AddEntry{Message: r.mail(), Mailbox: box}
	case 2:
		return mailbox.RemoveEntry{Message: r.mail(), Mailbox: box, IfPresent: r.IntN(2) == 0}
	case 3:
		return mailbox.Hold{Message: r.mail(), Name: pick2(r.Rand, "h1", "h2"), Release: r.IntN(2) == 0}
	case 4:
		return mailbox.SetTag{Message: r.mail(), Old: pick2(r.Rand, "", "t"), New: pick2(r.Rand, "", "t")}
	case 5:
		return mailbox.MarkMessage{Message: r.mail(), Add: []imap.Flag{pick2(r.Rand, imap.FlagSeen, imap.Flag("$Approved"))}}
	case 6, 7:
		last := uint64(0)
		_ = mem.Events(context.Background(), simAccount, "s"+key, 1, func(seq uint64, _ []byte) error { last = seq; return nil }) // it gives none
		return mailbox.Append{Stream: "s" + key, Expect: last + uint64(r.IntN(5)/4), Events: [][]byte{fmt.Append(nil, step), {1}}}
	case 8:
		if r.IntN(3) > 0 {
			return mailbox.CheckRecord{Key: key, Version: version}
		}
		return mailbox.DropStream{Stream: "s" + key}
	case 9, 10:
		return mailbox.PutRecord{Key: key, Version: version, Any: r.IntN(2) == 0, Value: value, Index: []string{pick2(r.Rand, "i", "j"), "k"}}
	case 11:
		return mailbox.DeleteRecord{Key: key, Version: version}
	case 12:
		return mailbox.Add{Key: key, Sums: map[string]int64{"n": int64(r.IntN(5))}, Most: []mailbox.Most{{Names: []string{"n"}, Max: 60}}}
	case 13:
		return mailbox.DeleteDue{Kind: "run", Key: key}
	}
	return mailbox.PutDue{Due: mailbox.Due{Kind: "run", Key: key, At: simNoon.Add(time.Duration(r.IntN(40)) * time.Minute), Value: value}}
}

// lies tells what a store holds.
func (r *storeRand) lies(s mailbox.Store) string {
	ctx := context.Background()
	var b strings.Builder
	recs, err := s.Records(ctx, simAccount, "", "", 0)
	for _, rec := range recs {
		slices.Sort(rec.Index)
		fmt.Fprintf(&b, "%s %d %s %v\n", rec.Key, rec.Version, rec.Value, rec.Index)
	}
	for _, index := range []string{"i", "j", "k"} {
		list, e := s.Lookup(ctx, simAccount, index)
		n, e2 := s.Count(ctx, simAccount, index)
		fmt.Fprintf(&b, "%s: %d %d\n", index, len(list), n)
		err = errors.Join(err, e, e2)
	}
	for _, stream := range []string{"sa", "sb", "sab"} {
		e := s.Events(ctx, simAccount, stream, 1, func(seq uint64, e []byte) error {
			fmt.Fprintf(&b, "%s %d %q\n", stream, seq, e)
			return nil
		})
		err = errors.Join(err, e)
	}
	for _, id := range r.mails {
		places, e := s.Places(ctx, simAccount, id)
		slices.SortFunc(places, func(x, y mailbox.Place) int { return cmp.Compare(x.Mailbox, y.Mailbox) })
		fmt.Fprintf(&b, "%d %s: %v", id, refusedAs(e), len(places))
		for _, p := range places {
			fmt.Fprintf(&b, " %d/%d", p.Mailbox, p.Entry.UID)
		}
		e = s.Messages(ctx, simAccount, []mailbox.MessageID{id}, func(m *mailbox.Message) error {
			flags := slices.Sorted(slices.Values(m.Flags))
			fmt.Fprintf(&b, " %d %v %q", m.Size, flags, m.Tag)
			return nil
		})
		err = errors.Join(err, e)
		fmt.Fprintln(&b, " "+bodyText(s, id))
	}
	next, e := s.NextDue(ctx, simAccount, "run")
	fmt.Fprintln(&b, "due", next.UTC(), errors.Join(err, e))
	return b.String()
}

func bodyText(s mailbox.Store, id mailbox.MessageID) string {
	body, err := s.OpenMessage(context.Background(), simAccount, id)
	if err != nil {
		return refusedAs(err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
	return fmt.Sprint(string(text), err)
}

// claims claims at a moment of the step's, and gives every third back.
func (r *storeRand) claims(s mailbox.Store, step int) string {
	list, err := s.Claim(context.Background(), simAccount, "run", simNoon.Add(time.Duration(step)*time.Minute/2), 5*time.Minute, 1+step%2)
	var out []string
	for _, d := range list {
		out = append(out, fmt.Sprintf("%s=%s at %s", d.Key, d.Value, d.At.UTC().Format(time.TimeOnly)))
		if step%3 == 0 {
			s.Release(simAccount, "run", d.Key)
		}
	}
	return fmt.Sprint(out, err)
}

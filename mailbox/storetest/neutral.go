package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pizza/internal/scram"
	"pizza/internal/scram/scramtest"
	"pizza/mailbox"
)

func testStreams(f *fixture) {
	ev := func(parts ...string) (out [][]byte) {
		for _, p := range parts {
			out = append(out, []byte(p))
		}
		return out
	}
	f.commit(mailbox.Append{Stream: "run/a", Events: ev("1", "2")}, mailbox.Append{Stream: "run/a", Expect: 2, Events: ev("3")},
		mailbox.Append{Stream: "run/ab", Events: ev("other")})
	f.fails(mailbox.Conflict, mailbox.Append{Stream: "run/a", Expect: 2, Events: ev("x")})
	f.fails(mailbox.Conflict, mailbox.Append{Stream: "run/a", Expect: 4, Events: ev("x")})
	f.fails(mailbox.Invalid, mailbox.Append{Stream: "a\x00b", Events: ev("x")})
	f.fails(mailbox.Invalid, mailbox.Append{Stream: "", Events: ev("x")})
	read := func(stream string, from uint64) string {
		f.Helper()
		var out []string
		f.ok(f.s.Events(f.ctx, account, stream, from, func(seq uint64, b []byte) error {
			out = append(out, fmt.Sprintf("%d=%s", seq, b))
			return nil
		}))
		return strings.Join(out, " ")
	}
	f.same("all", read("run/a", 1), "1=1 2=2 3=3")
	f.same("from", read("run/a", 3), "3=3")
	f.same("beyond", read("run/a", 9)+read("none", 1), "")
	stop := errors.New("stop")
	f.same("stopped", f.s.Events(f.ctx, account, "run/a", 1, func(uint64, []byte) error { return stop }), stop)

	big := strings.Repeat("b", 100<<10) // several transactions
	f.commit(mailbox.Append{Stream: "big", Events: ev(big, big, big, big, big, "")})
	n := 0
	f.ok(f.s.Events(f.ctx, account, "big", 1, func(seq uint64, b []byte) error {
		n += len(b)
		f.commit(mailbox.PutRecord{Key: "inside", Any: true}) // must not block
		return nil
	}))
	f.same("big", n, 5*100<<10)
	f.reopen()
	f.same("after a new start", read("run/a", 2), "2=2 3=3")
	f.commit(mailbox.DropStream{Stream: "run/a"}, mailbox.DropStream{Stream: "none"})
	f.same("dropped", read("run/a", 1)+read("run/ab", 1), "1=other")
	f.commit(mailbox.Append{Stream: "run/a", Events: ev("again")})
}

func testRecords(f *fixture) {
	put := func(key string, version uint64, value string, index ...string) mailbox.PutRecord {
		return mailbox.PutRecord{Key: key, Version: version, Value: []byte(value), Index: index}
	}
	f.commit(put("a/1", 0, "one", "live", "task/x", "live"), put("a/2", 0, "two", "live"), put("b/1", 0, "three"))
	rec := func(key string) string {
		f.Helper()
		r, err := f.s.Record(f.ctx, account, key)
		if err != nil {
			f.kind(err, mailbox.NotFound)
			return "none"
		}
		return fmt.Sprintf("%s@%d%v", r.Value, r.Version, r.Index)
	}
	f.same("record", rec("a/1"), "one@1[live task/x]")
	f.fails(mailbox.Conflict, put("a/1", 0, "x"))
	f.fails(mailbox.Conflict, put("a/1", 2, "x"))
	f.fails(mailbox.Conflict, put("c/1", 1, "x"))
	f.fails(mailbox.Invalid, put("", 0, "x"))
	f.fails(mailbox.Invalid, put("k", 0, "x", "in\x00dex"))
	f.fails(mailbox.TooLarge, put("k", 0, strings.Repeat("x", 16<<20+1)))
	f.commit(mailbox.CheckRecord{Key: "a/1", Version: 1}, mailbox.CheckRecord{Key: "c/1"})
	f.fails(mailbox.Conflict, mailbox.CheckRecord{Key: "a/1", Version: 2})
	f.fails(mailbox.Conflict, mailbox.CheckRecord{Key: "a/1"})
	f.fails(mailbox.Conflict, mailbox.CheckRecord{Key: "c/1", Version: 1})

	keys := func(rs []mailbox.Record, err error) string {
		f.Helper()
		f.ok(err)
		var out []string
		for _, r := range rs {
			out = append(out, r.Key)
		}
		return strings.Join(out, " ")
	}
	f.same("lookup", keys(f.s.Lookup(f.ctx, account, "live")), "a/1 a/2")
	count := func(index string) int {
		f.Helper()
		n, err := f.s.Count(f.ctx, account, index)
		f.ok(err)
		return n
	}
	f.same("count", []int{count("live"), count("liv"), count("none")}, []int{2, 0, 0})
	f.same("no prefix match", keys(f.s.Lookup(f.ctx, account, "liv")), "")
	f.same("list", keys(f.s.Records(f.ctx, account, "a/", "", 0)), "a/1 a/2")
	f.same("limit", keys(f.s.Records(f.ctx, account, "", "", 2)), "a/1 a/2")
	f.same("after", keys(f.s.Records(f.ctx, account, "", "a/1", 2)), "a/2 b/1")
	f.same("after, within the prefix", keys(f.s.Records(f.ctx, account, "a/", "a/2", 0)), "")

	f.commit(put("a/1", 1, "changed", "dead"), mailbox.PutRecord{Key: "any", Any: true, Value: []byte("v")})
	f.commit(mailbox.PutRecord{Key: "any", Any: true, Value: []byte("w")})
	f.same("index follows", keys(f.s.Lookup(f.ctx, account, "live"))+"|"+keys(f.s.Lookup(f.ctx, account, "dead")), "a/2|a/1")
	f.same("versions", rec("a/1")+" "+rec("any"), "changed@2[dead] w@2[]")
	f.fails(mailbox.Conflict, mailbox.DeleteRecord{Key: "a/1", Version: 1})
	f.fails(mailbox.Conflict, mailbox.DeleteRecord{Key: "none", Version: 1})
	f.commit(mailbox.DeleteRecord{Key: "a/1", Version: 2}, mailbox.DeleteRecord{Key: "none"})
	f.reopen()
	f.same("gone", rec("a/1")+keys(f.s.Lookup(f.ctx, account, "dead")), "none")
	f.same("stays", rec("any"), "w@2[]")
}

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

func due(kind, key string, minutes int, value string) mailbox.PutDue {
	return mailbox.PutDue{Due: mailbox.Due{Kind: kind, Key: key, At: noon.Add(time.Duration(minutes) * time.Minute), Value: []byte(value)}}
}

// claim claims entries at noon plus minutes and lists them.
func (f *fixture) claim(kind string, minutes, limit int) string {
	f.Helper()
	ds, err := f.s.Claim(f.ctx, account, kind, noon.Add(time.Duration(minutes)*time.Minute), 10*time.Minute, limit)
	f.ok(err)
	var out []string
	for _, d := range ds {
		out = append(out, d.Key+"="+string(d.Value))
		if d.Kind != kind {
			f.Errorf("claimed %+v", d)
		}
	}
	return strings.Join(out, " ")
}

func (f *fixture) nextDue(kind string) string {
	f.Helper()
	at, err := f.s.NextDue(f.ctx, account, kind)
	f.ok(err)
	if at.IsZero() {
		return "none"
	}
	return fmt.Sprint(at.Sub(noon).Minutes())
}

func testDue(f *fixture) {
	f.same("empty", f.nextDue("run")+f.claim("run", 0, 9), "none")
	f.commit(due("run", "b", 5, "B"), due("run", "a", -5, "A"), due("run", "c", 0, "C"), due("runs", "x", -9, "X"),
		mailbox.PutDue{Due: mailbox.Due{Kind: "asap", Key: "k"}})
	f.same("next", f.nextDue("run"), -5)
	if got := f.claim("asap", 0, 1); got != "k=" {
		f.Errorf("the zero time is due: %q", got)
	}
	f.commit(due("run", "a", 1, "A2")) // replaced
	f.same("next", f.nextDue("run"), 0)
	f.reopen()
	f.same("in order of time", f.claim("run", 1, 9), "c=C a=A2")
	f.commit(mailbox.DeleteDue{Kind: "run", Key: "c"}, mailbox.DeleteDue{Kind: "run", Key: "none"})
	f.same("later", f.claim("run", 5, 9), "b=B")
	f.fails(mailbox.Invalid, due("", "k", 0, ""))
	f.fails(mailbox.Invalid, due("k", "a\x00", 0, ""))
}

func testClaims(f *fixture) {
	f.commit(due("run", "a", 0, "A"), due("run", "b", 1, "B"))
	f.same("limit", f.claim("run", 2, 1), "a=A")
	f.same("held by another", f.claim("run", 2, 9), "b=B")
	f.same("nothing left", f.claim("run", 2, 9), "")
	f.same("end of the first lease", f.nextDue("run"), 12)
	f.s.Release(account, "run", "b")
	f.same("released", f.nextDue("run"), 1)
	f.same("again", f.claim("run", 2, 9), "b=B")
	f.commit(due("run", "b", 3, "B2"))
	f.same("replaced while held: still held", f.claim("run", 9, 9), "")
	f.commit(mailbox.DeleteDue{Kind: "run", Key: "b"})
	f.commit(due("run", "b", 4, "B3"))
	f.same("deleted: the claim went along", f.claim("run", 9, 9), "b=B3")
	f.same("a lease ends", f.claim("run", 12, 1), "a=A")
	f.reopen()
	f.same("a lease ends with the process", f.claim("run", 5, 9), "a=A b=B3")
}

func testEpoch(f *fixture) {
	epoch := f.s.Epoch(account)
	_, err := f.s.Commit(f.ctx, account, mailbox.Tx{Epoch: epoch, Ops: []mailbox.Op{mailbox.PutRecord{Key: "k", Any: true}}})
	f.ok(err)
	f.reopen()
	f.same("raised by one", f.s.Epoch(account), epoch+1)
	_, err = f.s.Commit(f.ctx, account, mailbox.Tx{Epoch: epoch, Ops: []mailbox.Op{mailbox.PutRecord{Key: "k", Any: true}}})
	f.kind(err, mailbox.Conflict)
	f.same("unknown account", f.s.Epoch("nobody000"), 0)
}

func testClosed(f *fixture) {
	f.ok(f.s.Close())
	_, err := f.s.Commit(f.ctx, account, mailbox.Tx{})
	f.same("commit", errors.Is(err, mailbox.ErrClosed), true)
	_, err = f.s.Snapshot(f.ctx, account, inbox)
	f.same("snapshot", errors.Is(err, mailbox.ErrClosed), true)
	f.same("again", f.s.Close(), nil)
	f.s = nil
}

func testAccounts(f *fixture) {
	holder, ok := f.s.(interface{ AccountDB() mailbox.Accounts })
	if !ok {
		f.Skip("the store has no logins")
	}
	db := holder.AccountDB()
	me := mailbox.Account{Login: "me", Name: "Me"}
	f.ok(db.Put(f.ctx, me, mailbox.Credential{Name: "default", Scope: mailbox.ScopeFull}, "pässword"))
	f.ok(db.Put(f.ctx, me, mailbox.Credential{Name: "cron", Scope: mailbox.ScopeSend}, "other"))
	login := func(name, password string) string {
		f.Helper()
		id, err := db.Authenticate(f.ctx, name, password)
		if err != nil {
			f.kind(err, mailbox.Denied)
			return "denied"
		}
		return fmt.Sprint(id.Login, id.Credential, id.Scope, id.Addresses)
	}
	full := fmt.Sprint("me", "default", "full", []string{"me@localhost", "me@pizza.localhost"})
	for _, name := range []string{"me", "ME@localhost", "Me@Pizza.LocalHost", "me"} {
		f.same("login "+name, login(name, "pässword"), full)
	}
	f.same("without the password", scramLogin(f, db, "ME@localhost", "pässword"), full)
	f.same("without the password, other credential", strings.Contains(scramLogin(f, db, "me", "other"), "cron"), true)
	f.same("wrong proof", scramLogin(f, db, "me", "wrong"), "denied")
	f.same("no such login", scramLogin(f, db, "you", ""), "denied")
	unknown, err := db.Verifiers(f.ctx, "you")
	f.ok(err)
	f.same("decomposed", login("me", "pa\u0308ssword"), full)
	f.same("other credential", login("me", "other"), fmt.Sprint("me", "cron", "send", []string{"me@localhost", "me@pizza.localhost"}))
	for _, bad := range [][2]string{{"me", ""}, {"me", "Pässword"}, {"you", "other"}, {"", ""}, {"me@example.com", "other"}, {"me@localhost@localhost", "other"}} {
		f.same(bad[0]+" "+bad[1], login(bad[0], bad[1]), "denied")
	}
	list, err := db.List(f.ctx)
	f.ok(err)
	f.same("list", []any{len(list), list[0].Login, list[0].Name, list[0].Credentials}, []any{1, "me", "Me", "[{default full} {cron send}]"})
	if len(list[0].ID) != 10 || strings.Trim(string(list[0].ID), "0123456789abcdefghjkmnpqrstvwxyz") != "" {
		f.Errorf("account id %q", list[0].ID)
	}
	f.ok(db.Put(f.ctx, me, mailbox.Credential{Name: "default", Scope: mailbox.ScopeRead}, "new"))
	f.same("replaced: the old one is forgotten", login("me", "pässword"), "denied")
	f.same("replaced", login("me", "new"), fmt.Sprint("me", "default", "read", []string{"me@localhost", "me@pizza.localhost"}))
	f.kind(db.Put(f.ctx, mailbox.Account{ID: "another00", Login: "me"}, mailbox.Credential{Name: "x", Scope: mailbox.ScopeFull}, "p"), mailbox.Conflict)
	for _, acc := range []mailbox.Account{{Login: ""}, {Login: "Me"}, {Login: "a b"}, {Login: "x", ID: "../x"}} {
		f.kind(db.Put(f.ctx, acc, mailbox.Credential{Name: "x", Scope: mailbox.ScopeFull}, "p"), mailbox.Invalid)
	}
	f.kind(db.Put(f.ctx, me, mailbox.Credential{Name: "x", Scope: "all"}, "p"), mailbox.Invalid)
	f.kind(db.Put(f.ctx, me, mailbox.Credential{Name: "x", Scope: mailbox.ScopeFull}, ""), mailbox.Invalid)
	f.kind(db.Remove(f.ctx, "me", "none"), mailbox.NotFound)
	f.ok(db.Remove(f.ctx, "me", "cron"))
	f.same("removed", login("me", "other"), "denied")
	f.reopen()
	db = f.s.(interface{ AccountDB() mailbox.Accounts }).AccountDB()
	again, err := db.Verifiers(f.ctx, "YOU@localhost")
	f.ok(err)
	f.same("an unknown login looks the same after a new start", again, unknown)
	f.same("an unknown login has a salt of the usual length", len(again.Salt), 16)
	other, err := db.Verifiers(f.ctx, "they")
	f.ok(err)
	f.same("two unknown logins have one salt", bytes.Equal(other.Salt, again.Salt), false)
	f.same("after a new start", strings.Contains(login("me", "new"), "read"), true)
	f.ok(db.Remove(f.ctx, "ME@localhost", ""))
	f.same("login gone", login("me", "new"), "denied")
	f.kind(db.Remove(f.ctx, "me", ""), mailbox.NotFound)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := db.Authenticate(ctx, "me", "new"); err == nil {
		f.Error("a login without anybody waiting")
	}
}

// scramLogin logs in by SCRAM-SHA-256.
func scramLogin(f *fixture, db mailbox.Accounts, name, password string) string {
	f.Helper()
	s := scram.New(func(login string) (mailbox.Verifiers, error) { return db.Verifiers(f.ctx, login) })
	c := &scramtest.Client{User: name, Password: password, Nonce: "nonce"}
	first, _, err := s.Next([]byte(c.First()))
	f.ok(err)
	final, err := c.Final(string(first))
	f.ok(err)
	proof, _, err := s.Next([]byte(final))
	if errors.Is(err, scram.ErrProof) {
		return "denied"
	}
	f.ok(err)
	f.same("the server's proof", c.Trusts(string(proof)), true)
	id := s.Identity()
	return fmt.Sprint(id.Login, id.Credential, id.Scope, id.Addresses)
}

// testFence: a straggler cannot write. A stream is fenced by its end, a record by its
// version, and a Tx that states its epoch by the process that has the account.
func testFence(f *fixture) {
	run := func(seq, version, epoch uint64) error {
		_, err := f.s.Commit(f.ctx, account, mailbox.Tx{Epoch: epoch, Ops: []mailbox.Op{
			mailbox.Append{Stream: "run/a", Expect: seq, Events: [][]byte{{1}}}, mailbox.PutRecord{Key: "run/a", Version: version},
			due("run", "a", 0, ""),
		}})
		return err
	}
	epoch := f.s.Epoch(account)
	f.ok(run(0, 0, epoch))
	f.kind(run(0, 1, epoch), mailbox.Conflict) // somebody appended
	f.kind(run(1, 0, epoch), mailbox.Conflict) // somebody changed the record
	f.kind(run(1, 1, epoch+1), mailbox.Conflict)
	f.ok(run(1, 1, epoch))
	f.reopen()
	f.kind(run(2, 2, epoch), mailbox.Conflict) // the process that had it is gone
	f.ok(run(2, 2, f.s.Epoch(account)))
	f.ok(run(3, 3, 0))
	rec, err := f.s.Record(f.ctx, account, "run/a")
	f.ok(err)
	n := 0
	f.ok(f.s.Events(f.ctx, account, "run/a", 1, func(uint64, []byte) error { n++; return nil }))
	f.same("what was refused left nothing", []any{rec.Version, n}, []any{4, 4})
}

// testRaces: of many who write one record from the same version one wins, and nobody's
// number is lost; so with a stream.
func testRaces(f *fixture) {
	const writers, rounds = 16, 8
	var wg sync.WaitGroup
	var won, lost atomic.Int32
	f.commit(mailbox.PutRecord{Key: "n", Value: []byte("0")})
	for range writers {
		wg.Go(func() {
			for range rounds {
				for done := false; !done; {
					rec, err := f.s.Record(f.ctx, account, "n")
					f.ok(err)
					var n int
					_, err = fmt.Sscan(string(rec.Value), &n)
					f.ok(err)
					_, err = f.s.Commit(f.ctx, account, mailbox.Tx{Ops: []mailbox.Op{
						mailbox.PutRecord{Key: "n", Version: rec.Version, Value: fmt.Append(nil, n+1)},
						mailbox.Append{Stream: "n", Expect: uint64(n), Events: [][]byte{rec.Value}},
					}})
					if done = err == nil; done {
						won.Add(1)
					} else {
						f.kind(err, mailbox.Conflict)
						lost.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	rec, err := f.s.Record(f.ctx, account, "n")
	f.ok(err)
	f.same("counted", []any{string(rec.Value), rec.Version, won.Load()}, []any{fmt.Sprint(writers * rounds), writers*rounds + 1, writers * rounds})
	f.ok(f.s.Events(f.ctx, account, "n", 1, func(seq uint64, b []byte) error {
		f.same("event", string(b), fmt.Sprint(seq-1))
		return nil
	}))
	f.Logf("%d lost", lost.Load())
}

// testClaimRaces: two claimers never have one entry at the same time; a lease that ended,
// and what was given back, can be claimed again, once.
func testClaimRaces(f *fixture) {
	const entries, claimers = 24, 8
	for i := range entries {
		f.commit(due("run", fmt.Sprintf("k%02d", i), 0, ""))
	}
	round := func(what string, minutes, want int) {
		f.Helper()
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := map[string]int{}
		for range claimers {
			wg.Go(func() {
				for {
					ds, err := f.s.Claim(f.ctx, account, "run", noon.Add(time.Duration(minutes)*time.Minute), 10*time.Minute, 2)
					f.ok(err)
					if len(ds) == 0 {
						return
					}
					mu.Lock()
					for _, d := range ds {
						got[d.Key]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		f.same(what, len(got), want)
		for key, n := range got {
			if n != 1 {
				f.Errorf("%s: %d have %s", what, n, key)
			}
		}
	}
	round("first", 0, entries)
	round("all are held", 9, 0)
	f.s.Release(account, "run", "k03")
	f.s.Release(account, "run", "k04")
	f.s.Release(account, "run", "none")
	round("two were given back", 9, 2)
	round("the others' leases ended", 10, entries-2)
	f.commit(mailbox.DeleteDue{Kind: "run", Key: "k05"})
	round("all leases ended; one is done", 60, entries-1)
}

// testWakeUps: a wake-up may be lost or merged, what it was about never is. Whoever looks
// after each one, and once before the first, sees everything.
func testWakeUps(f *fixture) {
	const n = 50
	wake, stop := f.s.Watch(account, 0)
	defer stop()
	seen := map[string]bool{}
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range n {
			f.commit(due("run", fmt.Sprint(i), 0, ""))
		}
	})
	for look := func() int {
		ds, err := f.s.Claim(f.ctx, account, "run", noon, time.Hour, n)
		f.ok(err)
		for _, d := range ds {
			seen[d.Key] = true
		}
		return len(seen)
	}; look() < n; {
		f.within(wake, fmt.Sprintf("%d of %d entries", len(seen), n))
	}
	writer.Wait()
}

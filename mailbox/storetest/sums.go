package storetest

import (
	"fmt"
	"math"
	"sync"

	"pizza/mailbox"
)

// testSums: numbers that many add to at once, without a version, and bounds that hold
// whoever adds.
func testSums(f *fixture) {
	add := func(key string, sums map[string]int64, most ...mailbox.Most) mailbox.Add {
		return mailbox.Add{Key: key, Sums: sums, Most: most}
	}
	got := func(key string) string {
		f.Helper()
		rec, err := f.s.Record(f.ctx, account, key)
		f.ok(err)
		sums, err := rec.Sums()
		f.ok(err)
		return fmt.Sprint(sums, rec.Version, rec.Index)
	}
	f.commit(add("n", map[string]int64{"a": 2, "b": -1}), add("n", map[string]int64{"a": 3}), add("n", nil))
	f.same("sums", got("n"), "map[a:5 b:-1] 3 []")
	f.commit(mailbox.PutRecord{Key: "n", Version: 3, Value: []byte(`{"a":1}`), Index: []string{"i"}}, add("n", map[string]int64{"a": 1}))
	f.same("index stays", got("n"), "map[a:2] 5 [i]")
	f.fails(mailbox.Conflict, mailbox.CheckRecord{Key: "n", Version: 4})

	f.commit(mailbox.PutRecord{Key: "text", Value: []byte("words")}, mailbox.PutRecord{Key: "null", Value: []byte("null")},
		add("big", map[string]int64{"a": math.MaxInt64}))
	f.fails(mailbox.Invalid, add("text", map[string]int64{"a": 1}))
	f.fails(mailbox.Invalid, add("null", map[string]int64{"a": 1}))
	f.fails(mailbox.Invalid, add("big", map[string]int64{"a": 1}))
	f.fails(mailbox.Invalid, add("", map[string]int64{"a": 1}))
	most := func(n int64, names ...string) mailbox.Most { return mailbox.Most{Names: names, Max: n} }
	f.fails(mailbox.Conflict, add("n", map[string]int64{"a": 1}, most(2, "a")))
	f.fails(mailbox.Conflict, add("n", map[string]int64{"b": 1}, most(9, "a"), most(2, "a", "b")))
	f.commit(add("n", map[string]int64{"b": 1}, most(3, "a", "b", "none")))
	f.same("bounded", got("n"), "map[a:2 b:1] 6 [i]")

	const writers, rounds, room = 20, 10, 150
	var wg sync.WaitGroup
	taken := make(chan int64, writers*rounds)
	for range writers {
		wg.Go(func() {
			for range rounds {
				_, err := f.s.Commit(f.ctx, account, mailbox.Tx{Ops: []mailbox.Op{add("many", map[string]int64{"all": 1})}})
				if err != nil {
					f.Errorf("add: %v", err)
				}
				if _, err := f.s.Commit(f.ctx, account, mailbox.Tx{Ops: []mailbox.Op{add("few", map[string]int64{"all": 1}, most(room, "all"))}}); err == nil {
					taken <- 1
				}
			}
		})
	}
	wg.Wait()
	f.same("of all", got("many"), fmt.Sprintf("map[all:%d] %[1]d []", writers*rounds))
	f.same("of those there was room for", fmt.Sprint(len(taken), " ", got("few")), fmt.Sprintf("%d map[all:%[1]d] %[1]d []", room))
	f.reopen()
	f.same("after a new start", got("n"), "map[a:2 b:1] 6 [i]")
}

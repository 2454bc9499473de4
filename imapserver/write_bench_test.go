package imapserver

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// letter is a message of about 11 KB, each with bytes of its own.
func letter(n int64) string {
	return strings.Replace(mail, "Hello", fmt.Sprintf("Hello %d", n), 1) + strings.Repeat("a line of the text of this letter\r\n", 250+int(n%150))
}

// BenchmarkAppend is APPEND, durable, by as many connections at once, one command in
// flight on each.
func BenchmarkAppend(b *testing.B) {
	for _, conns := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("conns=", conns), func(b *testing.B) {
			h := newHouse(b, func(o *Options) { o.Log = nil })
			var n atomic.Int64
			var wg sync.WaitGroup
			lines := make([]*wire, conns)
			for i := range lines {
				lines[i] = h.dial(fmt.Sprint(i))
				lines[i].must("LOGIN me secret")
			}
			b.ResetTimer()
			for _, w := range lines {
				wg.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						text := letter(i)
						io.WriteString(w.c, fmt.Sprintf("zz APPEND INBOX {%d+}\r\n%s\r\n", len(text), text))
						w.await()
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// BenchmarkStore changes a flag of 10,000 messages, and of one of them.
func BenchmarkStore(b *testing.B) {
	h := newHouse(b, func(o *Options) { o.Log = nil })
	h.fill(10_000)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	for _, bm := range []struct{ name, set string }{{"all", "1:*"}, {"one", "5000"}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				w.raw("STORE " + bm.set + " " + "+-"[i%2:i%2+1] + `FLAGS (\Flagged)`)
			}
		})
	}
}

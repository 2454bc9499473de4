package imapserver

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// BenchmarkAppendFloor is the least a durable APPEND can cost with the store's syncs:
// the bytes of all letters that wait go to a file, that is synced, then a page that
// says they count, and that is synced. Compare BenchmarkAppend with it, in one run.
func BenchmarkAppendFloor(b *testing.B) {
	for _, conns := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("conns=", conns), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			queue := make(chan chan error, conns)
			go floor(f, queue)
			defer close(queue)
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range conns {
				wg.Go(func() {
					done := make(chan error)
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						queue <- done
						if err := <-done; err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// floor writes a letter for everybody who waits, and answers them together.
func floor(f *os.File, queue chan chan error) {
	text := []byte(letter(1))
	end := int64(4096)
	put := func(b []byte, at int64) error {
		if _, err := f.WriteAt(b, at); err != nil {
			return err
		}
		return syscall.Fdatasync(int(f.Fd()))
	}
	for first := range queue {
		group := append([]chan error{first}, make([]chan error, 0, len(queue))...)
		for range len(queue) {
			group = append(group, <-queue)
		}
		data := make([]byte, 0, len(group)*len(text))
		for range group {
			data = append(data, text...)
		}
		err := put(data, end)
		if end += int64(len(data)); err == nil {
			err = put(make([]byte, 4096), 0)
		}
		for _, done := range group {
			done <- err
		}
	}
}

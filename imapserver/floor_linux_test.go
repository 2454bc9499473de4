package imapserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// BenchmarkAppendFloor is the least a durable APPEND can cost with the store's syncs, and
// BenchmarkAppend is to be compared with it in one run: the same letters come over the
// same kind of connection; the bytes of all that wait go to a file, that is synced, then
// a page that says they count, and that is synced. Nothing is parsed, hashed or indexed.
func BenchmarkAppendFloor(b *testing.B) {
	for _, conns := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("conns=", conns), func(b *testing.B) {
			addr := serveFloor(b)
			var n atomic.Int64
			var wg sync.WaitGroup
			lines := make([]net.Conn, conns)
			for i := range lines {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				lines[i] = c
			}
			b.ResetTimer()
			for _, c := range lines {
				wg.Go(func() {
					answers := bufio.NewReader(c)
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						text := letter(i)
						io.WriteString(c, fmt.Sprintf("zz APPEND INBOX {%d+}\r\n%s\r\n", len(text), text))
						if _, err := answers.ReadString('\n'); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// pending is a letter that waits for its sync.
type pending struct {
	text []byte
	done chan error
}

// serveFloor takes letters and answers each when it is on disk.
func serveFloor(b *testing.B) (addr string) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	queue := make(chan pending, 64)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { takeFloor(c, queue) })
		}
	})
	go floor(f, queue)
	b.Cleanup(func() { l.Close(); wg.Wait(); close(queue); f.Close() })
	return l.Addr().String()
}

// takeFloor reads letters from one connection.
func takeFloor(c net.Conn, queue chan<- pending) {
	defer c.Close()
	in, done := bufio.NewReader(c), make(chan error)
	var buf []byte
	for {
		line, err := in.ReadString('\n')
		var size int
		if n, _ := fmt.Sscanf(line, "zz APPEND INBOX {%d+}", &size); n != 1 || err != nil {
			return
		}
		if cap(buf) < size+2 {
			buf = make([]byte, size+2)
		}
		if _, err := io.ReadFull(in, buf[:size+2]); err != nil {
			return
		}
		queue <- pending{buf[:size], done}
		if <-done != nil {
			return
		}
		io.WriteString(c, "zz OK\r\n")
	}
}

// floor writes the letters of everybody who waits, and answers them together.
func floor(f *os.File, queue <-chan pending) {
	end := int64(4096)
	put := func(b []byte, at int64) error {
		if _, err := f.WriteAt(b, at); err != nil {
			return err
		}
		return syscall.Fdatasync(int(f.Fd()))
	}
	for first := range queue {
		group := append([]pending{first}, make([]pending, 0, len(queue))...)
		for range len(queue) {
			group = append(group, <-queue)
		}
		var data []byte
		for _, p := range group {
			data = append(data, p.text...)
		}
		err := put(data, end)
		if end += int64(len(data)); err == nil {
			err = put(make([]byte, 4096), 0)
		}
		for _, p := range group {
			p.done <- err
		}
	}
}

package imapserver

import (
	"io"
	"strconv"
	"sync"
)

// bufferSize is how many octets wait for a flush at most, and the step in which
// bodies are read.
const bufferSize = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize+4096); return &b }}

// writer collects responses. It is flushed when 64 KiB wait, and by the connection
// before it waits for input. Its first error stays; later writes do nothing.
type writer struct {
	w    io.Writer
	buf  []byte
	pool *[]byte
	sent int64
	err  error
}

func (w *writer) grow(n int) {
	if w.pool == nil {
		w.pool = buffers.Get().(*[]byte)
		w.buf = (*w.pool)[:0]
	}
	if len(w.buf)+n > bufferSize {
		w.push()
	}
}

// push sends what waits and keeps the buffer.
func (w *writer) push() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
		w.sent += int64(len(w.buf))
	}
	w.buf = w.buf[:0]
}

// flush sends what waits and gives the buffer back, so that an idle connection
// holds none.
func (w *writer) flush() error {
	if w.pool != nil {
		w.push()
		if cap(w.buf) <= 2*bufferSize {
			*w.pool = w.buf[:0]
			buffers.Put(w.pool)
		}
		w.pool, w.buf = nil, nil
	}
	return w.err
}

func (w *writer) str(s string) *writer {
	w.grow(len(s))
	w.buf = append(w.buf, s...)
	return w
}

func (w *writer) bytes(b []byte) *writer {
	if len(b) > bufferSize && w.err == nil { // not worth a copy
		w.push()
		if w.err == nil {
			_, w.err = w.w.Write(b)
			w.sent += int64(len(b))
		}
		return w
	}
	w.grow(len(b))
	w.buf = append(w.buf, b...)
	return w
}

func (w *writer) num(n uint64) *writer {
	w.grow(20)
	w.buf = strconv.AppendUint(w.buf, n, 10)
	return w
}

func (w *writer) crlf() *writer { return w.str("\r\n") }

// quoted writes a string as quoted, or as a literal where quoted cannot carry it.
// utf8 allows 8-bit octets in quoted (RFC 6855).
func (w *writer) quoted(s string, utf8 bool) *writer {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == 0 || c == '\r' || c == '\n' || c >= 0x80 && !utf8 {
			return w.str("{").num(uint64(len(s))).str("}\r\n").str(s)
		}
	}
	w.grow(2*len(s) + 2)
	w.buf = append(w.buf, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			w.buf = append(w.buf, '\\')
		}
		w.buf = append(w.buf, s[i])
	}
	w.buf = append(w.buf, '"')
	return w
}

// literal writes b as a literal; an empty one as "", like literalFrom.
func (w *writer) literal(b []byte) {
	if len(b) == 0 {
		w.str(`""`)
		return
	}
	w.str("{").num(uint64(len(b))).str("}\r\n").bytes(b)
}

// literalFrom writes size octets of r from off as a literal, in steps. An empty one
// is written as "" (iOS 18.2 stalls on {0}). An error of r is the writer's from then
// on, for a literal cannot be taken back.
func (w *writer) literalFrom(r io.ReaderAt, off, size int64) {
	if size <= 0 {
		w.str(`""`)
		return
	}
	w.str("{").num(uint64(size)).str("}\r\n")
	for size > 0 && w.err == nil {
		n := int(min(size, bufferSize-1024))
		if room := bufferSize - len(w.buf); room < n {
			n = max(min(n, room), 0)
		}
		if n < 1024 && int64(n) < size {
			w.push()
			continue
		}
		at := len(w.buf)
		w.buf = w.buf[:at+n]
		got, err := r.ReadAt(w.buf[at:], off)
		if got < n {
			w.buf = w.buf[:at]
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			w.fail(err)
			return
		}
		off, size = off+int64(n), size-int64(n)
	}
}

// fail ends the writer: what waits is sent, nothing after it.
func (w *writer) fail(err error) {
	if w.err == nil {
		w.push()
	}
	if w.err == nil {
		w.err = err
	}
}

func appendDecimal(b []byte, n uint32) []byte { return strconv.AppendUint(b, uint64(n), 10) }

func decimal(n uint32) string { return string(appendDecimal(nil, n)) }

func decimal64(n int64) string { return strconv.FormatInt(n, 10) }

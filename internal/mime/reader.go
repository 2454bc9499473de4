package mime

import (
	"bytes"
	"io"
)

const blockSize = 64 << 10

// line is one line, or a piece of one that is longer than a block.
type line struct {
	b     []byte // with its line end; valid until the next call
	start int64
	first bool // the line starts here
	last  bool // the line, or the message, ends here
}

// eol returns how many octets of l are its line end.
func (l line) eol() int {
	switch {
	case bytes.HasSuffix(l.b, []byte("\r\n")):
		return 2
	case bytes.HasSuffix(l.b, []byte("\n")):
		return 1
	}
	return 0
}

// lineReader cuts a ReaderAt into lines, one block at a time.
type lineReader struct {
	r      io.ReaderAt
	size   int64
	buf    []byte
	lo, hi int   // buf[lo:hi] is unread
	base   int64 // offset of buf[0]
	inLine bool  // the last piece did not end its line
}

func newLineReader(r io.ReaderAt, size int64) *lineReader {
	return &lineReader{r: r, size: size, buf: make([]byte, min(blockSize, max(size, 1)))}
}

// offset is where the next line starts.
func (lr *lineReader) offset() int64 { return lr.base + int64(lr.lo) }

// next returns the next line, and false at the end of the message.
func (lr *lineReader) next() (line, bool, error) {
	for {
		rest := lr.buf[lr.lo:lr.hi]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			return lr.take(i+1, true), true, nil
		}
		if lr.base+int64(lr.hi) >= lr.size {
			if len(rest) == 0 {
				return line{}, false, nil
			}
			return lr.take(len(rest), true), true, nil
		}
		if len(rest) == len(lr.buf) {
			return lr.take(len(rest), false), true, nil
		}
		if err := lr.fill(); err != nil {
			return line{}, false, err
		}
	}
}

func (lr *lineReader) take(n int, last bool) line {
	l := line{b: lr.buf[lr.lo : lr.lo+n], start: lr.offset(), first: !lr.inLine, last: last}
	lr.lo += n
	lr.inLine = !last
	return l
}

// fill moves what is unread to the front of the buffer and reads behind it.
func (lr *lineReader) fill() error {
	lr.base += int64(lr.lo)
	lr.hi = copy(lr.buf, lr.buf[lr.lo:lr.hi])
	lr.lo = 0
	want := min(int64(len(lr.buf)-lr.hi), lr.size-lr.base-int64(lr.hi))
	n, err := lr.r.ReadAt(lr.buf[lr.hi:lr.hi+int(want)], lr.base+int64(lr.hi))
	lr.hi += n
	switch {
	case int64(n) == want:
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// seek goes back to off, the start of a line already read.
func (lr *lineReader) seek(off int64) {
	lr.inLine = false
	if off >= lr.base {
		lr.lo = int(off - lr.base)
		return
	}
	lr.base, lr.lo, lr.hi = off, 0, 0
}

// skipTo passes over plain body octets of the block: up to the last line start before
// the first "\n--". It returns the octets passed, which end in a newline, or nil.
func (lr *lineReader) skipTo() []byte {
	if lr.inLine {
		return nil
	}
	rest := lr.buf[lr.lo:lr.hi]
	if bytes.HasPrefix(rest, []byte("--")) {
		return nil
	}
	end := bytes.Index(rest, []byte("\n--"))
	if end < 0 {
		if end = bytes.LastIndexByte(rest, '\n'); end < 0 {
			return nil
		}
	}
	lr.lo += end + 1
	return rest[:end+1]
}

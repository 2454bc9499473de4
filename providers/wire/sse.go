// Package wire holds what the HTTP wires of model providers share: a reader of
// server-sent events, a client that never sends a key to where it was not meant
// for and gives up on silent streams, the classes of failed calls, and the repair
// of a conversation before it is sent.
//
// No environment variable is read: no proxy, key or address comes from anywhere but
// the configuration given. A proxy is used by passing an *http.Client that has one.
package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is returned for an event over the reader's limit.
var ErrTooLong = errors.New("the stream has an event that is too long")

// Event is one server-sent event.
type Event struct {
	Type string // of the event field; "" is "message"
	Data []byte // data lines joined by LF
}

// EventReader reads server-sent events (WHATWG HTML, section 9.2.6) leniently: lines
// end in CRLF, LF or CR; a BOM, comments and unknown fields are passed over; an
// event that the end of the stream closes is given like any other.
type EventReader struct {
	r      *bufio.Reader
	max    int
	begun  bool
	skipLF bool // the line before ended in CR
	eof    bool
}

// NewEventReader reads from r events of at most limit bytes.
func NewEventReader(r io.Reader, limit int) *EventReader {
	return &EventReader{r: bufio.NewReaderSize(r, 16<<10), max: limit}
}

// Next returns the next event that has data. After the last it returns io.EOF;
// other errors are ErrTooLong and those of the underlying reader.
func (e *EventReader) Next() (Event, error) {
	var ev Event
	has := false
	for !e.eof {
		line, err := e.line(e.max - len(ev.Data))
		if errors.Is(err, io.EOF) {
			e.eof = true
		} else if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if has {
				return ev, nil
			}
			ev.Type = ""
			continue
		}
		name, value := field(line)
		switch name {
		case "event":
			ev.Type = string(value)
		case "data":
			if has {
				ev.Data = append(ev.Data, '\n')
			}
			has = true
			ev.Data = append(ev.Data, value...)
		}
	}
	if has {
		return ev, nil
	}
	return Event{}, io.EOF
}

// field splits a line at its colon; one space after it is no part of the value. A
// comment has the name "".
func field(line []byte) (string, []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	return string(name), bytes.TrimPrefix(value, []byte(" "))
}

var bom = []byte("\xEF\xBB\xBF")

// line returns the next line without its end. At the end of the stream it returns
// what there is with io.EOF.
func (e *EventReader) line(limit int) ([]byte, error) {
	if !e.begun {
		e.begun = true
		if head, _ := e.r.Peek(len(bom)); bytes.Equal(head, bom) {
			_, _ = e.r.Discard(len(bom)) // was peeked, so it is there
		}
	}
	var line []byte
	for {
		if _, err := e.r.Peek(1); err != nil {
			return line, err
		}
		buf, _ := e.r.Peek(e.r.Buffered()) // no more than is there, so it does not fail
		if e.skipLF {
			e.skipLF = false
			if buf[0] == '\n' {
				_, _ = e.r.Discard(1) // was peeked, so it is there
				continue
			}
		}
		end := bytes.IndexAny(buf, "\r\n")
		n := end
		if end < 0 {
			n = len(buf)
		}
		if len(line)+n > limit {
			return nil, ErrTooLong
		}
		line = append(line, buf[:n]...)
		if end < 0 {
			_, _ = e.r.Discard(n) // as above
			continue
		}
		e.skipLF = buf[end] == '\r'
		_, _ = e.r.Discard(n + 1) // as above
		return line, nil
	}
}

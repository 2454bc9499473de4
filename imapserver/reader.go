package imapserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	maxLine    = 64 << 10 // default of Options.MaxCommand
	maxDrain   = 64 << 10 // octets of refused literals that are read and thrown away
	maxDiscard = 1 << 20  // octets of an overlong line that are read and thrown away
)

// errLineTooLong is returned by readLine for a line over its limit.
var errLineTooLong = errors.New("line too long")

// reader cuts the octets of a client into commands.
type reader struct {
	in *bufio.Reader
	// max is how many octets a command may have without its literals, and how many all
	// its literals, APPEND's message aside.
	max int
	// proceed tells the client to send a synchronising literal.
	proceed func()
}

// literal is the announcement of a literal: {size}, {size+} or ~{size}.
type literal struct {
	size   int64 // -1: more than an int64 holds
	sync   bool  // the client waits for a continuation request
	binary bool  // literal8 (RFC 3516)
	spec   int   // octets of the announcement
}

// line is one command as it was sent: the text with its literals (announcement,
// CRLF and octets) in place, without the final CRLF.
type line struct {
	raw []byte
	// message is the literal at the end of raw that was not read: APPEND's message.
	message *literal
	// refused is why the command cannot be carried out; it was read to its end.
	refused *reply
	// lost: what follows cannot be told from commands; answer, then close.
	lost bool
}

// command reads one command. It returns an error only when the connection is of no
// use any more.
func (r *reader) command() (*line, error) {
	l := &line{}
	text, literals := 0, int64(0)
	for {
		seg, over, err := r.segment(r.max - text)
		if err != nil {
			return l, err
		}
		text += len(seg)
		if over != nil {
			l.raw = append(l.raw, seg...)
			l.refused = &reply{kind: bad, text: "Command line too long"}
			l.lost, err = r.finish(over)
			return l, err
		}
		l.raw = append(l.raw, seg...)
		lit := announced(seg)
		if lit == nil {
			return l, nil
		}
		if endsInMessage(l.raw, lit) {
			l.message = lit
			return l, nil
		}
		literals += lit.size
		if lit.size < 0 || literals > int64(r.max) {
			l.refused = &reply{kind: bad, code: "TOOBIG", text: "Literal too large"}
			l.lost, err = r.drain(lit, maxDrain)
			return l, err
		}
		if err := r.buffer(l, lit); err != nil {
			return l, err
		}
	}
}

// buffer reads a literal into the line.
func (r *reader) buffer(l *line, lit *literal) error {
	if lit.sync {
		r.proceed()
	}
	l.raw = append(l.raw, '\r', '\n')
	at := len(l.raw)
	l.raw = append(l.raw, make([]byte, lit.size)...)
	_, err := io.ReadFull(r.in, l.raw[at:])
	return err
}

// drain reads what the client sends of a command after the announcement of a literal
// that is not taken. lost is set when that is more than budget octets.
func (r *reader) drain(lit *literal, budget int64) (lost bool, err error) {
	for lit != nil {
		if lit.sync {
			return false, nil // the client waits, and the tagged reply ends the command
		}
		if lit.size < 0 || lit.size > budget {
			return true, nil
		}
		budget -= lit.size
		if _, err := r.in.Discard(int(lit.size)); err != nil {
			return true, err
		}
		seg, over, err := r.segment(r.max)
		if err != nil {
			return true, err
		}
		if over != nil {
			return r.finishWith(over, budget)
		}
		lit = announced(seg)
	}
	return false, nil
}

// finish reads to the end of a command whose line was too long, from the tail of
// that line on.
func (r *reader) finish(tail []byte) (lost bool, err error) {
	return r.finishWith(tail, maxDrain)
}

func (r *reader) finishWith(tail []byte, budget int64) (lost bool, err error) {
	if tail[len(tail)-1] != '\n' {
		return true, nil
	}
	return r.drain(announced(trimEOL(tail)), budget)
}

// rest throws away what follows a literal, to the end of the command. lost is set when
// its further literals are more than budget octets.
func (r *reader) rest(budget int64) (lost bool, err error) {
	seg, over, err := r.segment(r.max)
	switch {
	case err != nil:
		return true, err
	case over != nil:
		return r.finish(over)
	}
	return r.drain(announced(seg), budget)
}

// readLine reads one line that holds no literal: the lines of AUTHENTICATE and IDLE.
func (r *reader) readLine(limit int) ([]byte, error) {
	seg, over, err := r.segment(limit)
	if err == nil && over != nil {
		err = errLineTooLong
	}
	return seg, err
}

// segment reads to the end of a line and returns it without CRLF (or bare LF). Of a
// line over limit it returns the beginning and, as over, the last octets, which end
// in LF unless the line is endless.
func (r *reader) segment(limit int) (seg, over []byte, err error) {
	total := 0
	for {
		part, err := r.in.ReadSlice('\n')
		total += len(part)
		switch {
		case over != nil:
			over = lastOctets(append(over, part...))
		case len(seg)+len(part) > limit+2:
			over = lastOctets(append(append([]byte(nil), lastOctets(seg)...), part...))
			seg = append(seg, part[:max(0, min(len(part), limit-len(seg)))]...)
		default:
			seg = append(seg, part...)
		}
		switch {
		case err == nil:
			if over != nil {
				return seg, over, nil
			}
			return trimEOL(seg), nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return seg, over, err
		case total > maxDiscard:
			return seg, over, nil
		}
	}
}

// lastOctets keeps what an announcement of a literal can be recognised from.
func lastOctets(b []byte) []byte {
	const keep = 64
	if len(b) > keep {
		return b[len(b)-keep:]
	}
	return b
}

func trimEOL(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

// announced returns the literal that a segment ends with, nil if it ends the command.
func announced(seg []byte) *literal {
	if len(seg) == 0 || seg[len(seg)-1] != '}' {
		return nil
	}
	open := bytes.LastIndexByte(seg, '{')
	if open < 0 {
		return nil
	}
	digits := seg[open+1 : len(seg)-1]
	lit := &literal{sync: true, spec: len(seg) - open}
	if n := len(digits); n > 0 && digits[n-1] == '+' {
		lit.sync, digits = false, digits[:n-1]
	}
	if len(digits) == 0 {
		return nil
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return nil
		}
		if lit.size < 0 || lit.size > 1<<58 {
			lit.size = -1
			continue
		}
		lit.size = lit.size*10 + int64(d-'0')
	}
	if open > 0 && seg[open-1] == '~' {
		lit.binary = true
		lit.spec++
	}
	return lit
}

// endsInMessage reports whether the literal that raw ends with is the message of an
// APPEND. The only literal that can come before it is the name of the mailbox.
func endsInMessage(raw []byte, lit *literal) bool {
	p := parser{b: raw}
	p.tag()
	p.sp()
	if p.word() != "APPEND" || p.err != nil {
		return false
	}
	return !(p.accept(' ') && len(raw)-lit.spec == p.i && !lit.binary)
}

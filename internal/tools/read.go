package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	maxReadLines = 2000
	maxReadBytes = 256 << 10
	sniffLen     = 8 << 10
)

func runRead(ctx context.Context, w Workspace, j *job) Outcome {
	src, err := openTarget(w, j.path)
	if errors.Is(err, errIsFolder) {
		return failed("%s is a folder; list_folder shows what is in it", j.path)
	}
	if err != nil {
		return failed("%s cannot be read: %v", j.path, err)
	}
	defer src.Close()
	r := bufio.NewReaderSize(src, 64<<10)
	head, err := r.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return failed("%s cannot be read: %v", j.path, plainError(err))
	}
	if len(head) == 0 {
		return done("[%s is empty]", j.path)
	}
	if binary(head) {
		return done("[%s is no text: %s, %s. Its content cannot be shown.]", j.path, http.DetectContentType(head), size(src.size))
	}
	e := excerpt{from: max(1, j.args.num["from"]), to: j.args.num["to"]}
	if err := e.read(ctx, r); err != nil {
		return failed("%s cannot be read: %v", j.path, plainError(err))
	}
	return e.outcome(j.path)
}

// binary reports whether the beginning of a file shows that it is no text.
func binary(head []byte) bool {
	control := 0
	for _, c := range head {
		if c == 0 {
			return true
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b {
			control++
		}
	}
	return control*20 > len(head)
}

// excerpt collects lines from..to of a text, within limits.
type excerpt struct {
	from, to int // to 0: to the end

	text  bytes.Buffer
	line  int  // lines seen, also those before from
	last  int  // last line in text
	more  bool // there are lines after last, which the limits left out
	cut   bool // the line last is not whole
	wrong bool // bytes that are no UTF-8 were replaced
}

func (e *excerpt) read(ctx context.Context, r *bufio.Reader) error {
	for {
		if e.line%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if e.to > 0 && e.line >= e.to {
			return nil
		}
		line, cut, err := readLine(ctx, r)
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if e.line++; e.line >= e.from && !e.add(line, cut) {
			return nil
		}
	}
}

// add takes one line; it returns false when a limit is reached.
func (e *excerpt) add(line []byte, cut bool) bool {
	if e.last-e.from+1 >= maxReadLines && e.last > 0 || e.text.Len() > 0 && e.text.Len()+len(line) > maxReadBytes {
		e.more = true
		return false
	}
	if !utf8.Valid(line) {
		line, e.wrong = bytes.ToValidUTF8(line, []byte("\uFFFD")), true
	}
	e.text.Write(line)
	e.last, e.cut = e.line, cut
	return true
}

// readLine reads a line with its end, at most maxReadBytes of it.
func readLine(ctx context.Context, r *bufio.Reader) (line []byte, cut bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if room := maxReadBytes - len(line); len(piece) > room {
			piece, cut = piece[:room], true
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, cut, err
		}
		if ctx.Err() != nil {
			return line, cut, ctx.Err()
		}
	}
}

// outcome is the text with a note of what is not in it.
func (e *excerpt) outcome(t target) Outcome {
	if e.last == 0 {
		return failed("%s has only %d lines", t, e.line)
	}
	var notes []string
	if e.more {
		notes = append(notes, fmt.Sprintf("lines %d to %d; go on with from: %d", e.from, e.last, e.last+1))
	}
	if e.cut {
		notes = append(notes, fmt.Sprintf("line %d is longer than %s and was cut", e.last, size(maxReadBytes)))
	}
	if e.wrong {
		notes = append(notes, "the file is not UTF-8; bytes that are no text are shown as \uFFFD")
	}
	text := e.text.String()
	if len(notes) > 0 {
		text = strings.TrimSuffix(text, "\n") + "\n[" + strings.Join(notes, ". ") + "]"
	}
	return Outcome{Content: text}
}

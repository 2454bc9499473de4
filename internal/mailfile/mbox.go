package mailfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An mbox file is messages one behind the other. Each begins with a line "From sender
// date" after an empty one; a line of a message that begins with From, or with > and
// then From, gets one more > (mboxrd), so that quoting can be undone exactly.
//
// Flags stand in header fields before the message's own: Status and X-Status as mutt and
// others know them, X-Keywords as Dovecot does, and X-Pizza-Bytes: lf when CRLF was
// written as LF and exact when nothing was changed, with -open when the message does not
// end with a line end. All four are always written, in this order, so that fields of the
// same names that belong to the message are told from them.

const (
	fieldBytes  = "X-Pizza-Bytes"
	bytesLF     = "lf"
	bytesExact  = "exact"
	bytesOpen   = "-open"
	mboxSuffix  = ".mbox"
	mboxHeader  = 1 << 20 // of a header that is looked at for flags
	fromLine    = "From "
	mboxDate    = "Mon Jan _2 15:04:05 2006"
	mboxUnknown = "MAILER-DAEMON"
)

// statusLetters are the flags of Status, and of X-Status.
var (
	statusLetters  = map[byte]string{'R': `\Seen`}
	xstatusLetters = map[byte]string{'A': `\Answered`, 'F': `\Flagged`, 'D': `\Deleted`, 'T': `\Draft`}
)

// mboxSink writes one file a folder below a directory: Work/Sub is Work/Sub.mbox.
type mboxSink struct {
	dir string
	f   *os.File
	w   *bufio.Writer
}

// NewMbox writes mbox files below a folder, which it makes.
func NewMbox(dir string) (Sink, error) {
	return &mboxSink{dir: dir}, os.MkdirAll(dir, 0o700)
}

func (s *mboxSink) Folder(name string) error {
	if err := s.Close(); err != nil {
		return err
	}
	levels := strings.Split(name, "/")
	last := len(levels) - 1
	for i, l := range levels {
		levels[i] = escape(l, badInFile)
		if i < last {
			levels[i] = plainDir(levels[i])
		}
	}
	path := filepath.Join(append([]string{s.dir}, levels...)...) + mboxSuffix
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.f, s.w = f, bufio.NewWriterSize(f, 256<<10)
	return nil
}

// plainDir is a directory's name that reading does not take for more than a folder.
func plainDir(name string) string {
	if slices.Contains([]string{"cur", "new", "tmp"}, strings.ToLower(name)) {
		return fmt.Sprintf("%%%02X%s", name[0], name[1:])
	}
	for _, suffix := range []string{".sbd", mboxSuffix} {
		if rest, ok := strings.CutSuffix(name, suffix); ok {
			return rest + "%2E" + suffix[1:]
		}
	}
	return name
}

// badInFile reports what no file name may have on one of the systems we run on, and a
// dot where it would hide the file or leave the folder.
func badInFile(i int, c byte) bool {
	return c == '.' && i == 0 || strings.IndexByte(`%\:*?"<>|`, c) >= 0
}

func (s *mboxSink) Close() error {
	if s.f == nil {
		return nil
	}
	err := errors.Join(s.w.Flush(), s.f.Sync(), s.f.Close())
	s.f, s.w = nil, nil
	return err
}

func (s *mboxSink) Add(m Message) error {
	date := m.Date
	if date.IsZero() {
		date = time.Unix(0, 0)
	}
	fmt.Fprintf(s.w, "%s%s %s\n", fromLine, mboxUnknown, date.UTC().Format(mboxDate))
	status, xstatus, keywords := mboxFlags(m.Flags)
	body, how := m.Body, bytesExact
	if allCRLF(body) {
		body, how = toLF(body), bytesLF
	}
	if !bytes.HasSuffix(body, []byte("\n")) {
		how += bytesOpen
	}
	fmt.Fprintf(s.w, "Status: %s\nX-Status: %s\nX-Keywords: %s\n%s: %s\n", status, xstatus, keywords, fieldBytes, how)
	for line := range bytes.Lines(body) {
		if isQuoted(line) {
			s.w.WriteByte('>')
		}
		s.w.Write(line)
	}
	if strings.HasSuffix(how, bytesOpen) {
		s.w.WriteByte('\n')
	}
	return s.w.WriteByte('\n') // an error of any write before is this one's too
}

// isQuoted reports whether a line is one that mboxrd gives one more >.
func isQuoted(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte(fromLine))
}

func mboxFlags(flags []string) (status, xstatus, keywords string) {
	status = "O" // not new to the program that reads it
	var words []string
	for _, f := range flags {
		switch {
		case f == `\Seen`:
			status = "RO"
		case !strings.HasPrefix(f, `\`):
			words = append(words, f)
		default:
			for _, letter := range []byte("AFDT") {
				if xstatusLetters[letter] == f {
					xstatus += string(letter)
				}
			}
		}
	}
	return status, xstatus, strings.Join(words, " ")
}

// readMbox calls fn with each message of an mbox file.
func readMbox(r io.Reader, where, folder string, fn func(Message, error) error) error {
	br := bufio.NewReaderSize(r, 256<<10)
	line, err := readLine(br)
	if errors.Is(err, io.EOF) { // an empty folder
		return nil
	}
	if err != nil || !bytes.HasPrefix(line, []byte(fromLine)) {
		return fn(Message{}, &Error{Where: where, Text: "not an mbox file: its first line does not begin with \"From \"", Err: noEOF(err)})
	}
	var raw bytes.Buffer
	for n := 1; ; n++ {
		from := string(line)
		raw.Reset()
		at := where + ": message " + strconv.Itoa(n)
		var whole bool
		line, whole, err = readMessage(br, &raw)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var ferr error
		if whole {
			ferr = fn(parseMbox(raw.Bytes(), from, folder, at), nil)
		} else {
			ferr = fn(Message{}, &Error{Where: at, Text: "larger than " + strconv.Itoa(MaxMessage>>20) + " MiB"})
		}
		if ferr != nil || err != nil {
			return ferr
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readLine reads a line with its end; the last one may have none.
func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadBytes('\n')
	if len(line) > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// readMessage reads up to the next line that begins a message, which it returns, and
// leaves out the empty line before it. whole is false when the message is too large.
func readMessage(br *bufio.Reader, raw *bytes.Buffer) (next []byte, whole bool, err error) {
	empty, whole, start := false, true, true
	for {
		part, err := br.ReadSlice('\n')
		if start && empty && isFrom(part) {
			line := bytes.Clone(part)
			if errors.Is(err, bufio.ErrBufferFull) {
				rest, err := br.ReadBytes('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return nil, whole, err
				}
				line = append(line, rest...)
			}
			dropEmpty(raw)
			return line, whole, nil
		}
		if whole = whole && raw.Len()+len(part) <= MaxMessage; whole {
			raw.Write(part)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			dropEmpty(raw)
			return nil, whole, err
		}
		empty = start && (string(part) == "\n" || string(part) == "\r\n")
		start = err == nil
	}
}

// dropEmpty takes off the empty line that ends a message in the file.
func dropEmpty(raw *bytes.Buffer) {
	b := raw.Bytes()
	switch {
	case bytes.HasSuffix(b, []byte("\n\r\n")):
		raw.Truncate(raw.Len() - 2)
	case bytes.HasSuffix(b, []byte("\n\n")):
		raw.Truncate(raw.Len() - 1)
	}
}

// isFrom reports whether a line begins a message. Files that were written without
// quoting have lines in their texts that begin so too: those have no time of day.
func isFrom(line []byte) bool {
	if !bytes.HasPrefix(line, []byte(fromLine)) {
		return false
	}
	for i, c := range line[:max(0, len(line)-5)] {
		if c == ':' && isDigit(line[i+1]) && isDigit(line[i+2]) && i > 1 && isDigit(line[i-1]) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// parseMbox makes a message of what lies between two From lines.
func parseMbox(raw []byte, from, folder, where string) Message {
	m := Message{Folder: folder, Where: where, Date: dateOfFrom(from)}
	fields, rest := exported(raw)
	if fields == nil {
		fields, rest = leading(raw)
	}
	how := fields["x-pizza-bytes"]
	raw = unquote(rest)
	if len(fields) == 0 {
		fields = laterFields(raw)
	}
	m.Flags = flagsOf(fields)
	if strings.HasSuffix(how, bytesOpen) {
		raw = bytes.TrimSuffix(raw, []byte("\n"))
	}
	if !strings.HasPrefix(how, bytesExact) {
		raw = toCRLF(raw)
	}
	m.Body = raw
	return m
}

// exported reads the four fields that our own files have; nil when it is none of ours.
func exported(raw []byte) (fields map[string]string, rest []byte) {
	fields, rest = map[string]string{}, raw
	for _, want := range []string{"status", "x-status", "x-keywords", "x-pizza-bytes"} {
		name, value, behind, ok := ownField(rest)
		if !ok || name != want {
			return nil, nil
		}
		fields[name], rest = value, behind
	}
	return fields, rest
}

// leading reads the file's fields that other programs put before the message's.
func leading(raw []byte) (fields map[string]string, rest []byte) {
	fields, rest = map[string]string{}, raw
	for {
		name, value, behind, ok := ownField(rest)
		if _, twice := fields[name]; !ok || twice || name == "x-pizza-bytes" || folded(behind) {
			return fields, rest
		}
		fields[name], rest = value, behind
	}
}

// folded reports whether b goes on with a field that has begun.
func folded(b []byte) bool { return len(b) > 0 && (b[0] == ' ' || b[0] == '\t') }

// ownFields are the fields that are the file's and not the message's, when they stand
// before all others.
var ownFields = map[string]bool{"status": true, "x-status": true, "x-keywords": true, "x-pizza-bytes": true,
	"x-mozilla-status": true, "x-mozilla-status2": true, "x-mozilla-keys": true}

// ownField reads the first field when it is one of them.
func ownField(raw []byte) (name, value string, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(raw, []byte("\n"))
	if !found {
		return "", "", nil, false
	}
	n, v, found := strings.Cut(string(line[:min(len(line), 4096)]), ":")
	name = strings.ToLower(n)
	return name, strings.TrimSpace(v), rest, found && ownFields[name]
}

// laterFields looks for the fields anywhere in the header, where other programs put
// them. They stay in the message.
func laterFields(raw []byte) map[string]string {
	fields := map[string]string{}
	for line := range bytes.Lines(raw[:min(len(raw), mboxHeader)]) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		n, v, ok := strings.Cut(string(line), ":")
		if n = strings.ToLower(n); ok && ownFields[n] && n != "x-pizza-bytes" {
			fields[n] = strings.TrimSpace(v)
		}
	}
	return fields
}

// flagsOf reads the flags of the fields.
func flagsOf(fields map[string]string) []string {
	var set []string
	add := func(f string) {
		for _, have := range set {
			if strings.EqualFold(have, f) {
				return
			}
		}
		set = append(set, f)
	}
	letters := func(value string, known map[byte]string) {
		for i := range len(value) {
			if f := known[value[i]]; f != "" {
				add(f)
			}
		}
	}
	letters(fields["status"], statusLetters)
	letters(fields["x-status"], xstatusLetters)
	// Bits of Thunderbird: read 1, replied 2, marked 4, expunged 8, forwarded 0x1000.
	if n, err := strconv.ParseUint(fields["x-mozilla-status"], 16, 32); err == nil {
		for bit, f := range map[uint64]string{1: `\Seen`, 2: `\Answered`, 4: `\Flagged`, 8: `\Deleted`, 0x1000: "$Forwarded"} {
			if n&bit != 0 {
				add(f)
			}
		}
	}
	for _, word := range strings.Fields(fields["x-keywords"] + " " + fields["x-mozilla-keys"]) {
		add(word)
	}
	return set
}

// unquote takes one > off the lines that writing gave one.
func unquote(b []byte) []byte {
	if !bytes.Contains(b, []byte(">"+fromLine)) {
		return bytes.Clone(b)
	}
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		if line[0] == '>' && isQuoted(line) {
			line = line[1:]
		}
		out = append(out, line...)
	}
	return out
}

// dateLayouts are the dates of From lines that programs write, from their weekday on.
var dateLayouts = []string{"Mon Jan 2 15:04:05 2006", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 15:04:05 -0700 2006",
	"Mon Jan 2 15:04:05 2006 -0700", "Mon Jan 2 15:04 2006", "Mon Jan 2 15:04:05 2006 MST", "Mon, 2 Jan 2006 15:04:05 -0700"}

// dateOfFrom reads the date of a From line; zero when it has none.
func dateOfFrom(line string) time.Time {
	fields := strings.Fields(line)
	for i := 1; i < len(fields); i++ {
		text := strings.Join(fields[i:], " ")
		for _, layout := range dateLayouts {
			if t, err := time.Parse(layout, text); err == nil {
				return t
			}
		}
	}
	return time.Time{}
}

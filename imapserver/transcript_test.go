package imapserver

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"golang.org/x/tools/txtar"
)

var updateTranscripts = flag.Bool("update", false, "rewrite the S: lines of testdata/*.txtar")

// Transcripts. Each archive of testdata is a dialogue with a fresh server:
//
//	C: text      sent with CRLF          C2: the same on a second connection
//	C| "text"    sent as it is, a Go string
//	             in it UIDVALIDITY(BOX) stands for that number
//	S: text      expected; * stands for anything
//	S: EOF       the server closes
//	M: BOX FILE [FLAG...]   a file of the archive is delivered to a mailbox
//	O: maxliteral N         an option, before the first connection; also: peraccount N, notls
//	T:           the connection goes on under TLS
//	# comment
//
// A connection is opened when it is first used. The comment of the archive says what
// it pins. -update leaves an S: line that fits as it is, with its wildcards.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runTranscript(t, file)
		})
	}
}

type transcript struct {
	t     *testing.T
	house *house
	files map[string][]byte
	opt   func(*Options)
	conns map[string]*peer
	out   []string // the lines as they are to be, for -update
	lines []string // what is left of the session
	old   []string // the S: lines that stood where the next ones go
}

// peer is the client's end of a connection.
type peer struct {
	net.Conn
	r   *bufio.Reader
	tag string
}

func runTranscript(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(data)
	x := &transcript{t: t, files: map[string][]byte{}, conns: map[string]*peer{}}
	session := -1
	for i, f := range ar.Files {
		if f.Name == "session" {
			session = i
			continue
		}
		x.files[f.Name] = bytes.ReplaceAll(f.Data, []byte("\n"), []byte("\r\n"))
	}
	if session < 0 {
		t.Fatal("no session")
	}
	lines := strings.Split(strings.TrimSuffix(string(ar.Files[session].Data), "\n"), "\n")
	for n, line := range lines {
		x.lines = lines[n+1:]
		if err := x.line(line); err != nil {
			t.Errorf("%s: session line %d: %s: %v", file, n+1, line, err)
			if !*updateTranscripts {
				return
			}
		}
	}
	if *updateTranscripts {
		x.drain()
		ar.Files[session].Data = []byte(strings.Join(x.out, "\n") + "\n")
		if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (x *transcript) line(line string) error {
	verb, arg, _ := strings.Cut(line, ":")
	if bar := strings.IndexByte(line, '|'); bar > 0 && bar <= 2 {
		verb, arg = line[:bar]+"|", line[bar+1:]
	}
	arg = strings.TrimPrefix(arg, " ")
	if *updateTranscripts {
		if strings.HasPrefix(verb, "S") {
			return nil
		}
		x.drain()
		x.out, x.old = append(x.out, line), x.answers()
	}
	switch {
	case line == "" || line[0] == '#':
		return nil
	case verb == "M":
		return x.deliver(strings.Fields(arg))
	case verb == "O":
		return x.option(strings.Fields(arg))
	case strings.HasSuffix(verb, "|"):
		raw, err := strconv.Unquote(arg)
		if err != nil {
			return err
		}
		return x.send(verb[1:len(verb)-1], raw)
	case verb[0] == 'C':
		return x.send(verb[1:], x.withUIDValidity(arg)+"\r\n")
	case verb[0] == 'T':
		return x.upgrade(x.peer(verb[1:]))
	case verb[0] == 'S':
		return x.expect(x.peer(verb[1:]), arg)
	}
	return errors.New("unknown verb")
}

// answers are the S: lines that come next.
func (x *transcript) answers() []string {
	n := slices.IndexFunc(x.lines, func(s string) bool { return !strings.HasPrefix(s, "S") })
	if n < 0 {
		n = len(x.lines)
	}
	return x.lines[:n]
}

// note writes down what the server said on a connection, in the words that stood there
// if they fit.
func (x *transcript) note(name, said string) {
	prefix := "S" + name + ": "
	line := prefix + generalise(said)
	if len(x.old) > 0 {
		if want, same := strings.CutPrefix(x.old[0], prefix); same && wildcard(want, said) {
			line = x.old[0]
		}
		x.old = x.old[1:]
	}
	x.out = append(x.out, line)
}

func (x *transcript) start() *house {
	if x.house == nil {
		x.house = newHouse(x.t, x.opt)
	}
	return x.house
}

func (x *transcript) option(args []string) error {
	switch args[0] {
	case "maxliteral":
		n, err := strconv.ParseInt(args[1], 10, 64)
		x.opt = func(o *Options) { o.MaxLiteral = n }
		return err
	case "peraccount":
		n, err := strconv.Atoi(args[1])
		x.opt = func(o *Options) { o.MaxConnsPerAccount = n }
		return err
	case "notls":
		x.opt = func(o *Options) { o.TLS = nil }
		return nil
	}
	return errors.New("unknown option")
}

func (x *transcript) deliver(args []string) error {
	raw, found := x.files[args[1]]
	if !found {
		return errors.New("no such file in the archive")
	}
	var flags []imap.Flag
	for _, f := range args[2:] {
		flags = append(flags, imap.Flag(f))
	}
	x.start().deliver(args[0], raw, flags...)
	return nil
}

func (x *transcript) peer(name string) *peer {
	if p := x.conns[name]; p != nil {
		return p
	}
	c, err := net.Dial("tcp", x.start().addr)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { c.Close() })
	p := &peer{Conn: c, r: bufio.NewReader(c)}
	x.conns[name] = p
	p.tag = "*"
	return p
}

func (x *transcript) send(name, s string) error {
	p := x.peer(name)
	if *updateTranscripts && p.tag == "*" {
		x.drain() // the greeting
	}
	if tag, _, found := strings.Cut(s, " "); found {
		p.tag = tag
	}
	_, err := io.WriteString(p, s)
	return err
}

// withUIDValidity fills in what a client knows from before.
func (x *transcript) withUIDValidity(s string) string {
	head, tail, found := strings.Cut(s, "UIDVALIDITY(")
	if !found {
		return s
	}
	name, tail, _ := strings.Cut(tail, ")")
	return head + decimal(x.house.box(name).UIDValidity) + tail
}

func (x *transcript) upgrade(p *peer) error {
	p.SetReadDeadline(time.Now().Add(10 * time.Second))
	c := tls.Client(p.Conn, &tls.Config{InsecureSkipVerify: true}) // the test's own certificate
	if err := c.Handshake(); err != nil {
		return err
	}
	p.Conn, p.r = c, bufio.NewReader(c)
	return nil
}

func (x *transcript) expect(p *peer, want string) error {
	got, err := p.read(10 * time.Second)
	if errors.Is(err, io.EOF) && want == "EOF" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w after %q", err, got)
	}
	if !wildcard(want, got) {
		return fmt.Errorf("got %s", got)
	}
	return nil
}

func (p *peer) read(wait time.Duration) (string, error) {
	p.SetReadDeadline(time.Now().Add(wait))
	s, err := p.r.ReadString('\n')
	return strings.TrimRight(s, "\r\n"), err
}

// drain writes down what the server says until it is silent.
func (x *transcript) drain() {
	for _, name := range []string{"", "2", "3"} {
		p := x.conns[name]
		for p != nil {
			s, err := p.read(150 * time.Millisecond)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				x.out = append(x.out, "S"+name+": EOF")
				delete(x.conns, name)
				break
			}
			x.note(name, s)
		}
	}
}

// changing are values of their own form that are others in every run.
var changing = regexp.MustCompile(`(MAILBOXID \()[^)]*(\))|(SAVEDATE ")[^"]*(")`)

// generalise keeps of a line what does not change from run to run.
func generalise(s string) string {
	for _, code := range []string{"[UIDVALIDITY ", "(UIDVALIDITY ", " UIDVALIDITY ", "[APPENDUID ", "[COPYUID "} {
		if i := strings.Index(s, code); i >= 0 {
			i += len(code)
			j := i
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			s = s[:i] + "*" + s[j:]
		}
	}
	if strings.HasPrefix(s, "* OK [HIGHESTMODSEQ ") && strings.HasSuffix(s, "] Highest") { // of SELECT
		return "* OK [HIGHESTMODSEQ *] Highest"
	}
	s = changing.ReplaceAllString(s, "$1$3*$2$4")
	if head, _, found := strings.Cut(s, "[CAPABILITY "); found {
		return head + "[CAPABILITY *"
	}
	return strings.TrimRight(s, " ")
}

// wildcard reports whether s is pattern, in which * after the first octet stands for
// anything.
func wildcard(pattern, s string) bool {
	s = strings.TrimRight(s, " ")
	if strings.HasPrefix(pattern, "* ") && strings.HasPrefix(s, "* ") {
		pattern, s = pattern[2:], s[2:]
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

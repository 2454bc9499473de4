package smtpgate

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the S: lines of the transcripts")

// TestTranscripts plays testdata/*.txt. Lines of a session:
//
//	C: text       send a line
//	R: "quoted"   send these octets
//	S: pattern    the next line from the server; * stands for anything
//	E:            the server closes
//	TLS:          do the handshake
//	M: n          so many mails have been accepted
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range archive.Files {
				h := start(t, func(o *Options) {
					o.MaxSize = 64 << 10
					o.StrayTime = 50 * time.Millisecond
				})
				play := player{t: t, h: h}
				if strings.HasSuffix(f.Name, "tls") {
					play.p = h.dialTLS()
				} else {
					play.p = h.dial()
				}
				archive.Files[i].Data = []byte(play.run(string(f.Data)))
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type player struct {
	t *testing.T
	h *harness
	p *peer
}

func (pl *player) run(session string) string {
	pl.t.Helper()
	var out strings.Builder
	for n, line := range strings.Split(strings.TrimSuffix(session, "\n"), "\n") {
		kind, arg, _ := strings.Cut(line, ":")
		arg = strings.TrimPrefix(arg, " ")
		switch kind {
		case "C":
			pl.p.send(arg + "\r\n")
		case "R":
			raw, err := strconv.Unquote(arg)
			if err != nil {
				pl.t.Fatalf("line %d: %v", n+1, err)
			}
			pl.p.send(raw)
		case "S":
			line = pl.receive(n+1, arg)
		case "E":
			pl.p.gone()
		case "TLS":
			pl.p.upgrade()
		case "M":
			want, err := strconv.Atoi(arg)
			if err != nil {
				pl.t.Fatal(err)
			}
			pl.h.wantMails(want)
		default:
			pl.t.Fatalf("line %d: what is %q?", n+1, line)
		}
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// receive compares the next line with a pattern and returns the line to keep.
func (pl *player) receive(n int, pattern string) string {
	pl.t.Helper()
	got, err := pl.p.in.ReadString('\n')
	if err != nil {
		pl.t.Fatalf("line %d: want %q: %v", n, pattern, err)
	}
	if !strings.HasSuffix(got, "\r\n") {
		pl.t.Fatalf("line %d: %q has no CRLF", n, got)
	}
	got = strings.TrimRight(got, "\r\n")
	if globs(pattern, got) {
		return "S: " + pattern
	}
	if !*update {
		pl.t.Fatalf("line %d:\n got %q\nwant %q", n, got, pattern)
	}
	return "S: " + got
}

func globs(pattern, s string) bool {
	// path.Match stops at slashes and knows classes; replies have brackets.
	escape := strings.NewReplacer("/", "|", "[", `\[`, "?", `\?`, `\`, `\\`)
	ok, err := path.Match(escape.Replace(pattern), strings.ReplaceAll(s, "/", "|"))
	return err == nil && ok
}

package imapserver

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRefusedLiterals sends random streams of commands in which literals are refused and
// hold commands, one way or another: too large, behind a fault, of the wrong kind, in
// commands that take none, in later messages of an APPEND, before and after the login,
// with LITERAL+ or waiting to be asked for. No octet of them is a command, and each
// command gets one tagged reply, in order.
func TestRefusedLiterals(t *testing.T) {
	t.Parallel()
	rounds, seed := 150, rand.Uint64()
	if s := os.Getenv("PIZZA_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	h := newHouse(t, func(o *Options) { o.MaxLiteral, o.MaxCommand = 2000, 1000 })
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range rounds {
		g := &refusals{rng: rng, w: h.dial("r")}
		if login := rng.IntN(4); login > 0 {
			g.say("LOGIN me secret")
		}
		for range 1 + rng.IntN(8) {
			g.command()
		}
		if err := g.end(); err != nil {
			t.Fatalf("seed %d, round %d: %v\n%s", seed, round, err, g.sent.String())
		}
	}
	all, err := h.store.Mailboxes(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.HasPrefix(m.Name, "pwned") {
			t.Errorf("seed %d: %s was made by an octet of a literal", seed, m.Name)
		}
	}
}

// refusals is a client that makes up such a stream.
type refusals struct {
	rng  *rand.Rand
	w    *wire
	sent strings.Builder
	n    int
	bye  bool
	err  error
}

// literal is some text in which every line is a command, as a literal.
func (g *refusals) literal(size int) (announcement, text string) {
	for i := 0; len(text) < size; i++ {
		text += "x" + strconv.Itoa(g.n) + " CREATE pwned" + strconv.Itoa(g.rng.IntN(1000)) + "\r\n"
	}
	text = text[len(text)-size:]
	return strconv.Itoa(len(text)), text
}

// command sends one command with literals and reads its reply.
func (g *refusals) command() {
	heads := []string{
		"APPEND INBOX", "APPEND nowhere", `APPEND INBOX (\Bad)`, `APPEND INBOX (\Seen) "no date"`, "APPEND INBOX CATENATE (TEXT",
		"APPEND INBOX UTF8 (", "APPEND", "SEARCH SUBJECT", "LOGIN me", "LOGIN", "FETCH 1 BODY[HEADER.FIELDS (", "CREATE", "NOOP",
		"LIST", "ID (\"x\"", "STORE 1 FLAGS", "UID SEARCH CHARSET", "BOGUS", "AUTHENTICATE PLAIN", "SELECT", "RENAME a",
	}
	text := heads[g.rng.IntN(len(heads))]
	for range 1 + g.rng.IntN(3) {
		sizes := []int{0, 1, 30, 300, 999, 1001, 1999, 2001, 5000}
		n, body := g.literal(sizes[g.rng.IntN(len(sizes))])
		if n == "0" && g.rng.IntN(2) == 0 {
			continue
		}
		kind := []string{" {%s+}", " ~{%s+}", "{%s+}", " {%s}", " ~{%s}", " (\\Seen) {%s+}", " (\\Bad) {%s+}", ") {%s+}"}[g.rng.IntN(8)]
		text += fmt.Sprintf(kind, n) + "\r\n"
		if !strings.Contains(kind, "+") { // wait to be asked; a reply ends the command
			if !g.ask(&text) {
				return
			}
		}
		text += body
	}
	text += []string{"", ")", " garbage", "\x00"}[g.rng.IntN(4)]
	g.say(text)
}

// ask sends what there is up to a literal that waits, and reports whether the server
// wants it. text is what goes on then.
func (g *refusals) ask(text *string) (wanted bool) {
	line := g.tagged(*text)
	*text = ""
	if g.send(line) {
		s := g.answer()
		if strings.HasPrefix(s, "+ ") {
			return true
		}
		g.judge(s)
	}
	return false
}

// tagged gives a command its tag, unless it has been begun.
func (g *refusals) tagged(text string) string {
	if g.w.n == g.n {
		g.n++
		return "t" + strconv.Itoa(g.n) + " " + text
	}
	return text
}

func (g *refusals) say(text string) {
	if !g.send(g.tagged(text) + "\r\n") {
		return
	}
	s := g.answer()
	if strings.HasPrefix(s, "+ ") && g.send("*\r\n") { // AUTHENTICATE: called off
		s = g.answer()
	}
	g.judge(s)
}

func (g *refusals) send(s string) bool {
	g.sent.WriteString(s)
	if g.bye || g.err != nil {
		return false
	}
	_, err := g.w.c.Write([]byte(s))
	return err == nil
}

// answer reads to the next response that is not untagged.
func (g *refusals) answer() string {
	for {
		s, err := g.w.response()
		switch {
		case err != nil && g.bye:
			return ""
		case err != nil:
			g.err = fmt.Errorf("after command %d: %w", g.n, err)
			return ""
		case strings.HasPrefix(s, "* BYE"):
			g.bye = true
		case !strings.HasPrefix(s, "* "):
			g.sent.WriteString("\n    " + s + "\n")
			return s
		}
	}
}

// judge checks the tagged reply to the command that was sent last.
func (g *refusals) judge(s string) {
	g.w.n = g.n
	if g.err == nil && s != "" && !strings.HasPrefix(s, "t"+strconv.Itoa(g.n)+" ") {
		g.err = fmt.Errorf("command %d is answered by %q", g.n, s)
	}
}

// end sees that the stream is where it should be: a last command is the next that is
// answered.
func (g *refusals) end() error {
	g.say("CAPABILITY")
	return g.err
}

//go:build e2e || soak

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// The crash test: many tasks, one server that is killed again and again.

// ledgerTask edits a ledger file twice; each edit adds a line, so an edit that ran
// twice shows as a line that is there twice.
//
// The thinking is short against the server's lives: a call that crashes take ten times
// in a row ends its run with a failure mail, as it should.
func ledgerTask(i int) string {
	edit := func(line string) string {
		return fmt.Sprintf(`call edit_file {"path":"/local/ledgers/%d.txt","old":"END","new":"%s\nEND"}`, i, line)
	}
	return strings.Join([]string{
		"think 20ms", fmt.Sprintf(`call read_file {"path":"/local/ledgers/%d.txt"}`, i), "think 20ms", edit("first"),
		"and " + `call list_folder {"path":"/local/ledgers"}`, "think 20ms", edit("second"), fmt.Sprintf("say task %d is done", i),
	}, "\n")
}

// control talks to the server's control socket directly: a command of the command
// line would open the store by itself while the server is down.
type control struct{ http *http.Client }

func newControl(s *server) *control {
	socket := s.endpoints.Control
	return &control{&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

func (c *control) list(box string) ([]item, error) {
	resp, err := c.http.Get("http://control/of/me/list/" + box)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var items []item
	return items, json.NewDecoder(resp.Body).Decode(&items)
}

func (c *control) decide(id, verb string) error {
	body, err := json.Marshal(map[string]string{"id": id, "verb": verb})
	if err != nil {
		return err
	}
	resp, err := c.http.Post("http://control/of/me/decide", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// crashRig is one server that is killed again and again.
type crashRig struct {
	t        *testing.T
	s        *server
	tasks    int
	ledgers  string
	password string
	asked    int // unknown outcomes answered from the ledger
	allowed  int // tasks that may be sent by now

	mu       sync.Mutex
	unsent   []int
	validity map[string]uint32
	seen     map[string]string // "mailbox uid" -> Message-ID
}

func newCrashRig(t *testing.T, tasks int) *crashRig {
	r := &crashRig{t: t, tasks: tasks, ledgers: filepath.Join(t.TempDir(), "ledgers"), validity: map[string]uint32{}, seen: map[string]string{}}
	if err := os.Mkdir(r.ledgers, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		r.unsent = append(r.unsent, i)
		if err := os.WriteFile(r.ledger(i), []byte("END\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.s = newServer(t, "--grant", r.ledgers+":rw")
	return r
}

func (r *crashRig) ledger(i int) string { return filepath.Join(r.ledgers, fmt.Sprintf("%d.txt", i)) }

// lives runs the server for a while, acting as the owner, then kills it.
func (r *crashRig) lives(d time.Duration) {
	r.s.start()
	if r.password == "" {
		r.password = readPasswordFile(r.t, r.s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var busy sync.WaitGroup
	busy.Go(func() { r.submitAll(ctx) })
	busy.Go(func() { r.decideAll(ctx) })
	busy.Go(func() { r.checkUIDs() })
	<-ctx.Done()
	r.s.kill()
	busy.Wait()
}

// submitAll sends what has no 250 yet, under the same Message-ID each time, as a
// mail program does that lost the connection.
func (r *crashRig) submitAll(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		if len(r.unsent) == 0 || r.tasks-len(r.unsent) >= r.allowed {
			r.mu.Unlock()
			return
		}
		i := r.unsent[0]
		r.mu.Unlock()
		message := fmt.Sprintf("From: me@localhost\r\nTo: pizza@localhost\r\nSubject: task %d\r\nMessage-ID: <crash-%d@client.example>\r\n\r\n%s\r\n",
			i, i, strings.ReplaceAll(ledgerTask(i), "\n", "\r\n"))
		if submitSMTP(r.s.endpoints.SMTP, r.password, message) == nil {
			r.mu.Lock()
			r.unsent = r.unsent[1:]
			r.mu.Unlock()
		}
	}
}

func submitSMTP(addr, password, message string) error {
	c, err := smtp.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Auth(sasl.NewPlainClient("", "me", password)); err != nil {
		return err
	}
	return c.SendMail("me@localhost", []string{"pizza@localhost"}, strings.NewReader(message))
}

// decideAll answers everything open: approvals with approve, unknown outcomes from
// the ledger.
func (r *crashRig) decideAll(ctx context.Context) {
	c := newControl(r.s)
	for ctx.Err() == nil {
		items, err := c.list("Action")
		if err != nil {
			return
		}
		for _, it := range items {
			verb, err := r.verb(it)
			if err != nil || c.decide(it.Decision, verb) != nil {
				return // killed meanwhile
			}
		}
		pause(10 * time.Millisecond)
	}
}

// verb is what the owner says to an open decision: approve, or what the ledger says
// of an unknown outcome. An error is the kill.
func (r *crashRig) verb(it item) (string, error) {
	if it.Kind != "question" {
		return "approve", nil
	}
	text, err := r.fetchText("Action", it.UID)
	if err != nil {
		return "", err
	}
	ledger, line := r.questionOf(it, text)
	content, err := os.ReadFile(r.ledger(ledger))
	if err != nil {
		r.t.Errorf("ledger %d: %v", ledger, err)
	}
	r.asked++
	if strings.Contains(string(content), line) {
		return "happened", nil
	}
	return "repeat", nil
}

// questionOf reads which edit of which ledger a question is about.
func (r *crashRig) questionOf(it item, text string) (ledger int, line string) {
	at := max(0, strings.Index(text, "/local/ledgers/"))
	if _, err := fmt.Sscanf(text[at:], "/local/ledgers/%d.txt", &ledger); err != nil {
		r.t.Errorf("question %s names no ledger: %v\n%s", it.Decision, err, text)
	}
	if strings.Contains(text, "second") {
		return ledger, "second"
	}
	return ledger, "first"
}

func dialIMAP(addr, password string) (*imapclient.Client, error) {
	c, err := imapclient.DialInsecure(addr, nil)
	if err != nil {
		return nil, err
	}
	if err := c.Login("me", password).Wait(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (r *crashRig) fetchText(box string, uid int) (string, error) {
	c, err := dialIMAP(r.s.endpoints.IMAP, r.password)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Select(box, &imap.SelectOptions{ReadOnly: true}).Wait(); err != nil {
		return "", err
	}
	section := &imap.FetchItemBodySection{Peek: true}
	got, err := c.Fetch(imap.UIDSetNum(imap.UID(uid)), &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
	if err != nil || len(got) != 1 {
		return "", fmt.Errorf("fetch of %d: %d messages, %w", uid, len(got), err)
	}
	return string(got[0].FindBodySection(section)), nil
}

// checkUIDs compares each UID's Message-ID with what it was before. Errors of the
// connection are the kill.
func (r *crashRig) checkUIDs() {
	c, err := dialIMAP(r.s.endpoints.IMAP, r.password)
	if err != nil {
		return
	}
	defer c.Close()
	for _, box := range []string{"INBOX", "Action", "Sent", "Running"} {
		selected, err := c.Select(box, &imap.SelectOptions{ReadOnly: true}).Wait()
		if err != nil {
			return
		}
		if before, ok := r.validity[box]; ok && before != selected.UIDValidity {
			r.t.Errorf("%s: UIDVALIDITY went from %d to %d", box, before, selected.UIDValidity)
		}
		r.validity[box] = selected.UIDValidity
		if selected.NumMessages == 0 {
			continue
		}
		list, err := c.Fetch(imap.SeqSet{imap.SeqRange{Start: 1, Stop: 0}}, &imap.FetchOptions{UID: true, Envelope: true}).Collect()
		if err != nil {
			return
		}
		for _, m := range list {
			if m.Envelope == nil { // flags that changed, told in between
				continue
			}
			key := fmt.Sprintf("%s %d", box, m.UID)
			if before, ok := r.seen[key]; ok && before != m.Envelope.MessageID {
				r.t.Errorf("UID %s was %s and is %s", key, before, m.Envelope.MessageID)
			}
			r.seen[key] = m.Envelope.MessageID
		}
	}
}

// finish lets the server run until every task has its result.
func (r *crashRig) finish() []item {
	r.s.start()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var busy sync.WaitGroup
	busy.Go(func() { r.submitAll(ctx) })
	busy.Go(func() { r.decideAll(ctx) })
	c := newControl(r.s)
	for ctx.Err() == nil {
		live, err := c.list("Running")
		if err != nil {
			r.t.Errorf("list Running: %v\n%s", err, r.s.log)
			break
		}
		r.mu.Lock()
		unsent := len(r.unsent)
		r.mu.Unlock()
		if len(live) == 0 && unsent == 0 {
			break
		}
		pause(50 * time.Millisecond)
	}
	cancel()
	busy.Wait()
	r.checkUIDs()
	items, err := c.list("INBOX")
	if err != nil {
		r.t.Fatal(err)
	}
	return items
}

// check holds the promises: one result a task, each edit exactly once.
func (r *crashRig) check(items []item) {
	results := map[string]int{}
	for _, it := range items {
		switch it.Kind {
		case "result":
			results[it.Subject]++
		case "failure", "notice":
			r.t.Errorf("unexpected %s: %s", it.Kind, it.Subject)
		}
	}
	for i := range r.tasks {
		if n := results[fmt.Sprintf("Re: task %d", i)]; n != 1 {
			r.t.Errorf("task %d has %d results, want 1", i, n)
		}
		content, err := os.ReadFile(r.ledger(i))
		if err != nil {
			r.t.Error(err)
		}
		if want := "first\nsecond\nEND\n"; string(content) != want {
			r.t.Errorf("ledger %d holds %q, want %q", i, content, want)
		}
	}
}

// crash kills the server kills times while it works tasks tasks. Submissions are
// spread over the kills: there is always something under way.
func crash(t *testing.T, kills, tasks int) {
	r := newCrashRig(t, tasks)
	random := rand.New(rand.NewPCG(1, uint64(kills)))
	for n := range kills {
		r.allowed = (n + 1) * 2 * tasks / kills // all are sent by half of the kills
		r.lives(time.Duration(random.IntN(250)) * time.Millisecond)
	}
	r.allowed = tasks
	r.check(r.finish())
	t.Logf("%d kills, %d tasks, %d unknown outcomes asked", kills, tasks, r.asked)
}

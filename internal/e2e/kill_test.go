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

// The crash test: tasks of all kinds, one server that is killed again and again, and an
// owner who decides by mail, by move and by command whenever it lives.

// killSettings let tasks have workers and calls enough for what kills cost.
const killSettings = `{
	"workers": {"clerk": {"description": "edits files", "instructions": "Do the steps.", "tools": ["edit_file"]}},
	"limits": {"move_window_seconds": 0, "model_calls": 1000, "tool_calls": 1000, "worker_model_calls": 1000, "worker_tool_calls": 1000}
}`

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
	var items []item
	return items, c.get("list/"+box, &items)
}

func (c *control) get(path string, out any) error {
	resp, err := c.http.Get("http://control/of/me/" + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// post gives a command. What it refuses was decided, or ended, before: that is looked at
// in the end.
func (c *control) post(path string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := c.http.Post("http://control/of/me/"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (c *control) decide(id, verb string) error {
	return c.post("decide", map[string]string{"id": id, "verb": verb})
}

// killMessage is a mail of the owner, sent under the same Message-ID until it is accepted, as
// a mail program does that lost the connection.
type killMessage struct{ id, to, subject, answers, text string }

func (l killMessage) String() string {
	head := fmt.Sprintf("From: me@localhost\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: %s\r\n", l.to, l.subject, l.id)
	if l.answers != "" {
		head += "In-Reply-To: " + l.answers + "\r\n"
	}
	return head + "\r\n" + strings.ReplaceAll(l.text, "\n", "\r\n") + "\r\n"
}

// crashRig is one server that is killed again and again.
type crashRig struct {
	t        *testing.T
	s        *server
	random   *rand.Rand // of the goroutine that kills
	tasks    []killTask
	ledgers  string
	password string
	began    time.Time
	killed   []time.Time
	allowed  int // letters that may be sent by now

	mu       sync.Mutex // guards what follows
	letters  []killMessage
	sent     int
	told     map[string]string // decisions, and tasks cancelled, that the server has acknowledged: how
	validity map[string]uint32
	seen     map[string]string // "mailbox uid" -> Message-ID
}

func newCrashRig(t *testing.T, tasks int) *crashRig {
	r := &crashRig{
		t: t, ledgers: filepath.Join(t.TempDir(), "ledgers"), began: time.Now(),
		told: map[string]string{}, validity: map[string]uint32{}, seen: map[string]string{},
	}
	err := os.Mkdir(r.ledgers, 0o700)
	if err == nil {
		r.tasks, err = newKillTasks(r.ledgers, tasks)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.tasks {
		first := killMessage{id: fmt.Sprintf("<crash-%d@client.example>", k.n), to: "pizza@localhost", subject: k.subject(), text: k.steps}
		r.letters = append(r.letters, first)
		if k.more != "" {
			r.letters = append(r.letters, first.answer("more", k.more))
		}
	}
	r.s = newServer(t, "--grant", r.ledgers+":rw")
	r.s.settings(killSettings)
	return r
}

// answer is a reply to a letter of the owner's own.
func (l killMessage) answer(what, text string) killMessage {
	return killMessage{id: "<" + what + "-" + l.id[1:], to: l.to, subject: "Re: " + l.subject, answers: l.id, text: text}
}

// lives runs the server for a while, acting as the owner, then kills it.
func (r *crashRig) lives(d time.Duration) {
	r.s.start()
	if r.password == "" {
		r.password = readPasswordFile(r.t, r.s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	stop := r.acts(ctx)
	<-ctx.Done()
	r.killed = append(r.killed, time.Now())
	r.s.kill()
	stop()
}

func (r *crashRig) how(what string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told[what]
}

func (r *crashRig) has(what string) bool { return r.how(what) != "" }

func moveOf(uid int) string { return fmt.Sprint("move of ", uid) }

func (r *crashRig) tell(what, how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[what] = how
}

func (r *crashRig) allSent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent == len(r.letters)
}

// acts does what the owner does until ctx ends, and returns what waits for that.
func (r *crashRig) acts(ctx context.Context) (wait func()) {
	var busy sync.WaitGroup
	busy.Go(func() { r.submitAll(ctx) })
	busy.Go(func() { r.decideAll(ctx) })
	busy.Go(func() { r.cancelSome(ctx) })
	if len(r.killed)%8 == 0 {
		busy.Go(func() { r.checkUIDs() })
	}
	return busy.Wait
}

// submitAll sends what has no 250 yet.
func (r *crashRig) submitAll(ctx context.Context) {
	for next := r.sent; ctx.Err() == nil && next < min(r.allowed, len(r.letters)); {
		if submitSMTP(r.s.endpoints.SMTP, r.password, r.letters[next]) != nil {
			continue
		}
		next++
		r.mu.Lock()
		r.sent = next
		r.mu.Unlock()
	}
}

func submitSMTP(addr, password string, l killMessage) error {
	c, err := smtp.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Auth(sasl.NewPlainClient("", "me", password)); err != nil {
		return err
	}
	return c.SendMail("me@localhost", []string{l.to}, strings.NewReader(l.String()))
}

// openDecision is what `pizza show` tells of a decision.
type openDecision struct {
	ID, Kind, Run, Tool, State string
	MailID                     string `json:"mail_id"`
	Args                       json.RawMessage
}

// decideAll answers everything open, each once: approvals as the task has it, unknown
// outcomes by what is in the folder.
func (r *crashRig) decideAll(ctx context.Context) {
	c := newControl(r.s)
	for ctx.Err() == nil {
		items, err := c.list("Action")
		if err != nil {
			return
		}
		for _, it := range items {
			// More than three moved at once come back, under other UIDs, undecided.
			how := r.how(it.Decision)
			moved := strings.HasPrefix(how, "move of ") && how != moveOf(it.UID)
			if it.Decision == "" || how != "" && !moved {
				continue
			}
			if r.decide(c, it) != nil {
				break // killed meanwhile
			}
		}
		pause(10 * time.Millisecond)
	}
}

// decide answers one decision by one of the ways there are. An error is the kill.
func (r *crashRig) decide(c *control, it item) error {
	var shown struct{ Decision *openDecision }
	if err := c.get("show/"+it.Decision, &shown); err != nil {
		return err
	}
	d := shown.Decision
	if d == nil || d.State != "open" {
		return nil
	}
	verb := r.verb(it, d)
	way := []string{"mail", "move", "command"}[int(d.ID[0]+d.ID[1])%3]
	if way == "move" && (d.Kind != "approval" || r.has(d.ID)) {
		way = "command"
	}
	var err error
	switch way {
	case "mail":
		reply := killMessage{id: "<decide-" + d.ID + "@client.example>", to: "pizza+a." + d.ID + "@localhost", subject: "Re: " + it.Subject, answers: d.MailID, text: verb}
		err = submitSMTP(r.s.endpoints.SMTP, r.password, reply)
	case "move":
		err = r.move(it.UID, map[string]string{"approve": "Action/Approve", "reject": "Action/Reject"}[verb])
	default:
		err = c.decide(d.ID, verb)
	}
	if err == nil {
		r.tell(d.ID, map[bool]string{true: moveOf(it.UID), false: d.Kind + " by " + way}[way == "move"])
	}
	return err
}

// verb is what the owner says to an open decision.
func (r *crashRig) verb(it item, d *openDecision) string {
	var n int
	_, name, _ := strings.Cut(string(d.Args), "/local/ledgers/")
	if _, err := fmt.Sscanf(name, "%d-", &n); err != nil || n >= len(r.tasks) {
		r.t.Errorf("decision %s is about no task: %q %s", d.ID, it.Subject, d.Args)
		return "approve"
	}
	e := r.tasks[n].effectOf(string(d.Args))
	switch {
	case d.Kind == "approval" && e != nil && e.reject:
		return "reject"
	case d.Kind == "approval":
		return "approve"
	case d.Kind != "unknown":
		r.t.Errorf("unexpected decision %s of kind %s: %s", d.ID, d.Kind, it.Subject)
		return "continue"
	}
	happened := 0
	var err error
	if e != nil {
		happened, err = e.times(r.ledgers)
	} else if _, gone := os.Stat(filepath.Join(r.ledgers, r.tasks[n].effects[1].file)); gone != nil {
		happened = 1 // the move
	}
	if err != nil {
		r.t.Error(err)
	}
	return map[bool]string{true: "happened", false: "repeat"}[happened > 0]
}

func (r *crashRig) move(uid int, to string) error {
	c, err := dialIMAP(r.s.endpoints.IMAP, r.password)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Select("Action", nil).Wait(); err != nil {
		return err
	}
	_, err = c.Move(imap.UIDSetNum(imap.UID(uid)), to).Wait()
	return err
}

// cancelSome cancels tasks of that kind at some moment of theirs.
func (r *crashRig) cancelSome(ctx context.Context) {
	c := newControl(r.s)
	random := rand.New(rand.NewPCG(7, uint64(len(r.killed))))
	for ctx.Err() == nil {
		items, err := c.list("Running")
		if err != nil {
			return
		}
		for _, it := range items {
			_, name, ok := strings.Cut(it.Subject, "cancel task ")
			var n int
			if _, err := fmt.Sscanf(name, "%d", &n); !ok || err != nil || r.has("cancel "+name) || random.IntN(8) > 0 {
				continue
			}
			if r.cancel(c, it.Task, r.tasks[n]) == nil {
				r.tell("cancel "+name, "cancel by "+r.tasks[n].cancel)
			}
		}
		pause(20 * time.Millisecond)
	}
}

func (r *crashRig) cancel(c *control, task string, k killTask) error {
	if k.cancel == "command" {
		return c.post("cancel/"+task, struct{}{})
	}
	for _, l := range r.letters {
		if l.subject == k.subject() {
			return submitSMTP(r.s.endpoints.SMTP, r.password, l.answer("cancel", "cancel"))
		}
	}
	return errors.New("no such letter")
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

// finish lets the server run until every task has ended.
func (r *crashRig) finish() {
	r.s.start()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	wait := r.acts(ctx)
	c := newControl(r.s)
	told := time.Now()
	for quiet := 0; quiet < 5 && ctx.Err() == nil; pause(100 * time.Millisecond) {
		live, err := c.list("Running")
		if err != nil {
			r.t.Errorf("list Running: %v\n%s", err, r.s.log)
			break
		}
		if quiet++; len(live) > 0 || !r.allSent() {
			quiet = 0
		}
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			r.t.Logf("%d tasks are live still", len(live))
		}
	}
	cancel()
	wait()
	r.checkUIDs()
}

// crash kills the server kills times while it works tasks tasks. Submissions are
// spread over the kills: there is always something under way.
func crash(t *testing.T, kills, tasks int) {
	r := newCrashRig(t, tasks)
	r.random = rand.New(rand.NewPCG(1, uint64(kills)))
	for n := range kills {
		r.allowed = 1 + (n+1)*len(r.letters)*10/(9*kills) // all are sent by nine tenths of the kills
		r.lives(life(r.random))
		if n%50 == 49 {
			t.Logf("%d kills, %d mails sent, %d answers", n+1, r.sent, len(r.told))
		}
	}
	r.allowed = len(r.letters)
	r.finish()
	r.check()
}

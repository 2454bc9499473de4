package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/imapserver"
	"pizza/mailbox"
)

// The tables below are the meaning of the mailboxes: what each act does that a person can
// do in a mail program, as the program says it over IMAP. Every row is a connection to a
// server over a store with the agent as its guard.

// act is one row. It is about one message, the subject, which lies in the mailbox that is
// selected. In what is said, $U is its UID there, $A that in Action, $I in INBOX and $V in
// Unread; "2: " before a command has another session say it.
type act struct {
	name    string
	subject string   // approval, unknown, status, plain, note, schedule, ours, drop
	in      string   // mailbox that is selected
	say     []string // one command each
	want    string   // the end of the last reply
	now     string   // what is so then
	later   string   // and after the window; "": the same
}

// scene is a desk that is spoken to over IMAP.
type scene struct {
	*desk
	addr    string
	conn    net.Conn
	in      *bufio.Reader
	dec     Decision
	msg     mailbox.MessageID
	subject string
	run     string
	tags    int
}

// nobody but me logs in here.
type onlyMe struct{ id mailbox.Identity }

func (o onlyMe) Authenticate(context.Context, string, string) (mailbox.Identity, error) {
	return o.id, nil
}

func (onlyMe) Verifiers(context.Context, string) (mailbox.Verifiers, error) {
	return mailbox.Verifiers{}, errors.New("not in this test")
}

func newScene(t *testing.T) *scene {
	t.Helper()
	d := newDesk(t)
	d.clock.now = time.Now() // imapserver says when an act was
	srv := imapserver.New(imapserver.Options{Store: d.store, Accounts: onlyMe{d.me}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
	})
	s := &scene{desk: d, addr: l.Addr().String()}
	s.login()
	return s
}

// login begins a session of its own.
func (s *scene) login() {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	s.conn, s.in = conn, bufio.NewReader(conn)
	s.line()
	s.ok("LOGIN me secret")
}

// another is a further session with the same server.
func (s *scene) another() *scene {
	s.t.Helper()
	o := &scene{desk: s.desk, addr: s.addr}
	o.login()
	return o
}

func (s *scene) line() string {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(patience))
	l, err := s.in.ReadString('\n')
	if err != nil {
		s.t.Fatalf("read: %v", err)
	}
	return strings.TrimRight(l, "\r\n")
}

// say sends a command and returns its tagged reply without the tag.
func (s *scene) say(format string, args ...any) string {
	s.t.Helper()
	s.tags++
	tag := fmt.Sprintf("a%d ", s.tags)
	if _, err := fmt.Fprintf(s.conn, tag+format+"\r\n", args...); err != nil {
		s.t.Fatal(err)
	}
	for {
		if l, ok := strings.CutPrefix(s.line(), tag); ok {
			return l
		}
	}
}

func (s *scene) ok(format string, args ...any) {
	s.t.Helper()
	if r := s.say(format, args...); !strings.HasPrefix(r, "OK") {
		s.t.Fatalf(format+": %s", append(args, r)...)
	}
}

// boxes are all mailboxes by id.
func (s *scene) boxes() map[mailbox.MailboxID]string {
	s.t.Helper()
	list, err := s.store.Mailboxes(s.t.Context(), s.me.Account)
	if err != nil {
		s.t.Fatal(err)
	}
	names := map[mailbox.MailboxID]string{}
	for _, m := range list {
		names[m.ID] = m.Name
	}
	return names
}

func (s *scene) box(name string) mailbox.MailboxID {
	s.t.Helper()
	for id, n := range s.boxes() {
		if n == name {
			return id
		}
	}
	s.t.Fatalf("no mailbox %s", name)
	return 0
}

// prepare puts the subject of a row there.
func (s *scene) prepare(a act) {
	s.t.Helper()
	s.subject = a.subject
	switch a.subject {
	case "approval", "unknown":
		kind := map[string]string{"approval": decisionApproval, "unknown": decisionUnknown}[a.subject]
		s.dec = s.ask(kind)
		s.msg, s.run = s.dec.Mail, s.dec.Run
	case "status":
		s.run = runID(s.mustGive(s.me, s.message(s.me, "say a"), "pizza@localhost").Task, 1)
		s.msg = s.count(s.me.Account, Running, 1)[0].id
	case "plain", "note", "schedule", "drop":
		s.place(a)
	}
}

// place puts a mail of somebody's there, as the system.
func (s *scene) place(a act) {
	s.t.Helper()
	op := s.appendOp(s.box(a.in), s.message(s.me, "a letter", "From: ann@example.org", "Message-ID: <letter@example.org>"))
	if a.subject == "schedule" {
		op.Tag = scheduleTag + "s1"
	}
	s.msg = op.ID
	if a.subject != "drop" {
		s.commit(op)
		return
	}
	s.mustAct(op)
	s.tend()
	run := s.runs(s.me.Account)[0]
	s.run = run.ID
}

// facts says in one line what is so.
func (s *scene) facts() string {
	s.t.Helper()
	var list []string
	if s.dec.ID != "" {
		d, _, err := s.a.loadDecision(s.t.Context(), s.me.Account, s.dec.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, string(d.State))
	}
	places, err := s.store.Places(s.t.Context(), s.me.Account, s.msg)
	if err != nil {
		s.t.Fatal(err)
	}
	names := s.boxes()
	var in []string
	for _, p := range places {
		in = append(in, names[p.Mailbox])
	}
	slices.Sort(in)
	list = append(list, strings.Join(in, " "))
	live, cancelled := 0, 0
	for _, r := range s.runs(s.me.Account) {
		st, err := Fold(s.journal(r.ID))
		if err != nil {
			s.t.Fatal(err)
		}
		if st.Cancel != nil {
			cancelled++
		} else {
			live++
		}
	}
	if s.subject != "approval" && s.subject != "unknown" {
		list = append(list, map[bool]string{true: "live " + strconv.Itoa(live)}[live > 0])
	}
	list = append(list, map[bool]string{true: "cancelled"}[cancelled > 0])
	return strings.Join(slices.DeleteFunc(list, func(f string) bool { return f == "" }), "; ")
}

// play does a row and checks it.
func (s *scene) play(a act) {
	s.t.Helper()
	s.ok("CREATE Own")
	if strings.Contains(a.in+strings.Join(a.say, " "), "Unread") {
		s.unread()
	}
	s.prepare(a)
	s.ok("SELECT %s", a.in)
	reply := s.sayAll(a)
	if !strings.HasPrefix(reply, a.want) || a.want == "OK" && strings.HasPrefix(reply, "OK [ALERT") {
		s.t.Errorf("%v\n got %s\nwant %s", a.say, reply, a.want)
	}
	s.tend()
	if got := s.facts(); got != a.now {
		s.t.Errorf("%v: %q, want %q", a.say, got, a.now)
	}
	s.clock.add(2 * s.a.opt.Window)
	s.tend()
	s.tend()
	want := a.later
	if want == "" {
		want = a.now
	}
	if got := s.facts(); got != want {
		s.t.Errorf("%v, after the window: %q, want %q", a.say, got, want)
	}
}

// sayAll says what a row says, all but the last with success, and returns the last reply.
func (s *scene) sayAll(a act) (reply string) {
	s.t.Helper()
	uids := strings.NewReplacer("$U", s.uidIn(s.box(a.in)), "$A", s.uidIn(Action), "$I", s.uidIn(mailbox.Inbox), "$V", s.uidIn(Unread))
	var second *scene
	for i, cmd := range a.say {
		who := s
		text, isSecond := strings.CutPrefix(cmd, "2: ")
		if isSecond && second == nil {
			second = s.another()
		}
		if isSecond {
			who = second
		}
		if reply = who.say("%s", uids.Replace(text)); i < len(a.say)-1 && !strings.HasPrefix(reply, "OK") {
			s.t.Fatalf("%s: %s", cmd, reply)
		}
	}
	return reply
}

// uidIn is the subject's UID in a mailbox, "" when it is not there.
func (s *scene) uidIn(box mailbox.MailboxID) string {
	s.t.Helper()
	if _, shown := s.boxes()[box]; !shown {
		return ""
	}
	for _, e := range s.list(s.me.Account, box) {
		if e.id == s.msg {
			return fmt.Sprint(e.uid)
		}
	}
	return ""
}

const (
	noWaits  = "NO [CANNOT] this waits for your decision: answer it, or move it to Action/Approve or Action/Reject"
	noFile   = "NO [CANNOT] this waits for your decision: answer it, or move it to Action/Approve or Action/Reject. It can be filed from INBOX"
	noAgain  = "NO [CANNOT] this is about to be decided already"
	noReply  = "NO [CANNOT] this asks what came of a call: answer it by reply with happened, repeat or stop"
	noFiling = "NO [CANNOT] Running shows the live tasks; a status can be deleted, which cancels its task, but not filed"
	noAction = "NO [CANNOT] Action holds what waits for your decision and nothing else"
	noDecide = "NO [CANNOT] only an approval that waits in Action can be moved here"
	noPut    = "NO [CANNOT] Running shows the live tasks and nothing else"
	noView   = "NO [CANNOT] Unread is a view of other mailboxes; put the mail there"
	noSecret = "NO [CANNOT] mail about a decision is between you and the server: the agent does not get to see it"
	noSched  = "NO [CANNOT] Schedules takes back what was deleted from it; making a schedule is not available yet"
)

// acts on an open approval. Until the window ends everything can be taken back.
var actsOnApproval = []act{
	{"approve", "approval", "Action", []string{"UID MOVE $U Action/Approve"}, "OK", "deciding; Action/Approve INBOX", "approved; INBOX"},
	{"reject", "approval", "Action", []string{"UID MOVE $U Action/Reject"}, "OK", "deciding; Action/Reject INBOX", "rejected; INBOX"},
	{"approve from INBOX", "approval", "INBOX", []string{"UID MOVE $U Action/Approve"}, "OK", "deciding; Action/Approve", "approved; Archive"},
	{"approve without MOVE", "approval", "Action", []string{"UID COPY $U Action/Approve", `UID STORE $U +FLAGS.SILENT (\Deleted)`, "EXPUNGE"}, "OK", "deciding; Action/Approve INBOX", "approved; INBOX"},
	{"approve without MOVE, by CLOSE", "approval", "INBOX", []string{"UID COPY $U Action/Approve", `UID STORE $U +FLAGS (\Deleted)`, "CLOSE"}, "OK", "deciding; Action Action/Approve", "approved; Archive"},
	{"only copied", "approval", "Action", []string{"UID COPY $U Action/Approve"}, "OK", "open; Action Action/Approve INBOX", "open; Action INBOX"},
	{"only marked", "approval", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`}, "OK", "open; Action INBOX", ""},
	{"marked and not", "approval", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`, `UID STORE $U -FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "open; Action INBOX", ""},
	{"deleted", "approval", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"deleted by UID EXPUNGE", "approval", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`, "UID EXPUNGE $U"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"deleted by CLOSE", "approval", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`, "CLOSE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"left by UNSELECT", "approval", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`, "UNSELECT"}, "OK", "open; Action INBOX", ""},
	{"moved to Trash", "approval", "Action", []string{"UID MOVE $U Trash"}, "OK", "deciding; INBOX Trash", "rejected; INBOX Trash"},
	{"deleted without MOVE", "approval", "Action", []string{"UID COPY $U Trash", `UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"swiped to Archive", "approval", "Action", []string{"UID MOVE $U Archive"}, noWaits, "open; Action INBOX", ""},
	{"swiped without MOVE", "approval", "Action", []string{"UID COPY $U Archive"}, noWaits, "open; Action INBOX", ""},
	{"taken for junk", "approval", "Action", []string{"UID MOVE $U Junk"}, noWaits, "open; Action INBOX", ""},
	{"marked as junk", "approval", "Action", []string{`UID STORE $U +FLAGS ($Junk)`, `UID STORE $U -FLAGS (NonJunk)`}, "OK", "open; Action INBOX", ""},
	{"read, flagged, tagged", "approval", "Action", []string{`UID STORE $U +FLAGS (\Seen \Flagged $label1 $Approved)`, `UID STORE $U FLAGS ()`}, "OK", "open; Action INBOX", ""},
	{"moved to a folder", "approval", "Action", []string{"UID MOVE $U Own"}, noWaits, "open; Action INBOX", ""},
	{"moved to INBOX", "approval", "Action", []string{"UID MOVE $U INBOX"}, noWaits, "open; Action INBOX", ""},
	{"dropped into Tasks", "approval", "INBOX", []string{"UID MOVE $U Tasks"}, noSecret, "open; Action INBOX", ""},
	{"copied into Tasks", "approval", "INBOX", []string{"UID COPY $U Tasks"}, noSecret, "open; Action INBOX", ""},
	{"copied into Memory", "approval", "INBOX", []string{"UID COPY $U Memory"}, noSecret, "open; Action INBOX", ""},
	{"INBOX: filed", "approval", "INBOX", []string{"UID MOVE $U Own"}, "OK", "open; Action Own", ""},
	{"INBOX: swiped to Archive", "approval", "INBOX", []string{"UID MOVE $U Archive"}, "OK", "open; Action Archive", ""},
	{"INBOX: taken for junk", "approval", "INBOX", []string{"UID MOVE $U Junk"}, "OK", "open; Action Junk", ""},
	{"INBOX: deleted", "approval", "INBOX", []string{`UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "open; Action", ""},
	{"INBOX: moved to Trash", "approval", "INBOX", []string{"UID MOVE $U Trash"}, "OK", "open; Action Trash", ""},
	{"INBOX: copied to a folder", "approval", "INBOX", []string{"UID COPY $U Own"}, "OK", "open; Action INBOX", ""},
	{"INBOX renamed", "approval", "INBOX", []string{"RENAME INBOX Old"}, "OK", "open; Action Old", ""},
	{"INBOX: moved to Action", "approval", "INBOX", []string{"UID MOVE $U Action"}, noAction, "open; Action INBOX", ""},
	{"INBOX: moved to Running", "approval", "INBOX", []string{"UID MOVE $U Running"}, noPut, "open; Action INBOX", ""},
	{"unknown outcome: approved", "unknown", "Action", []string{"UID MOVE $U Action/Approve"}, noReply, "open; Action INBOX", ""},
	{"unknown outcome: copied", "unknown", "Action", []string{"UID COPY $U Action/Approve"}, noReply, "open; Action INBOX", ""},
	{"unknown outcome: deleted", "unknown", "Action", []string{"UID MOVE $U Trash"}, noReply, "open; Action INBOX", ""},
	{"unknown outcome: marked", "unknown", "Action", []string{`UID STORE $U +FLAGS (\Deleted)`}, noReply, "open; Action INBOX", ""},
}

// acts on an open approval by COPY: it has an entry in Action and one in INBOX, and only the
// deletion of the one that was copied decides. Deleting the other one is what it always is.
var actsByCopy = []act{
	// Copied in Action.
	{"INBOX's entry filed", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", `UID STORE $I +FLAGS (\Deleted)`, "UID EXPUNGE $I"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX's entry filed by EXPUNGE", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", `UID STORE $I +FLAGS.SILENT (\Deleted)`, "EXPUNGE"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX's entry filed by CLOSE", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", `UID STORE $I FLAGS (\Deleted)`, "CLOSE"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX's entry marked", "approval", "Action", []string{"UID COPY $A Action/Reject", "SELECT INBOX", `UID STORE $I +FLAGS (\Deleted)`}, "OK", "open; Action Action/Reject INBOX", "open; Action INBOX"},
	{"INBOX's entry to Trash", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", "UID MOVE $I Trash"}, "OK", "open; Action Action/Approve Trash", "open; Action Trash"},
	{"INBOX's entry archived", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", "UID MOVE $I Archive"}, "OK", "open; Action Action/Approve Archive", "open; Action Archive"},
	{"INBOX renamed, and filed there", "approval", "Action", []string{"UID COPY $A Action/Approve", "RENAME INBOX Old", "SELECT Old", `UID STORE 1:* +FLAGS (\Deleted)`, "CLOSE"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX's entry filed, reject", "approval", "Action", []string{"UID COPY $A Action/Reject", "SELECT INBOX", `UID STORE $I +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "open; Action Action/Reject", "open; Action"},
	{"INBOX's entry filed by another session", "approval", "Action", []string{"UID COPY $A Action/Approve", "2: SELECT INBOX", `2: UID STORE $I +FLAGS (\Deleted)`, "2: UID EXPUNGE $I"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX's entry filed, then its own deleted", "approval", "Action", []string{"UID COPY $A Action/Approve", "2: SELECT INBOX", `2: UID STORE $I +FLAGS (\Deleted)`, "2: EXPUNGE", `UID STORE $A +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; Action/Approve", "approved; Archive"},
	{"its own deleted, then INBOX's filed and taken back", "approval", "Action", []string{"UID COPY $A Action/Approve", `UID STORE $A +FLAGS (\Deleted)`, "2: SELECT INBOX", `2: UID STORE $I +FLAGS (\Deleted)`, `2: UID STORE $I -FLAGS (\Deleted)`}, "OK", "deciding; Action Action/Approve INBOX", "approved; INBOX"},
	{"its own deleted by another session", "approval", "Action", []string{"UID COPY $A Action/Approve", "2: SELECT Action", `2: UID STORE $A +FLAGS (\Deleted)`, "2: CLOSE"}, "OK", "deciding; Action/Approve INBOX", "approved; INBOX"},
	{"its own deleted by UID EXPUNGE", "approval", "Action", []string{"UID COPY $A Action/Reject", `UID STORE $A FLAGS (\Deleted)`, "UID EXPUNGE $A"}, "OK", "deciding; Action/Reject INBOX", "rejected; INBOX"},
	{"its own deleted and taken back", "approval", "Action", []string{"UID COPY $A Action/Approve", `UID STORE $A +FLAGS (\Deleted)`, `2: SELECT Action`, `2: UID STORE $A -FLAGS (\Deleted)`}, "OK", "open; Action INBOX", ""},
	{"taken back, then marked again", "approval", "Action", []string{"UID COPY $A Action/Approve", `UID STORE $A +FLAGS (\Deleted)`, `UID STORE $A FLAGS ()`, `UID STORE $A +FLAGS (\Deleted)`}, "OK", "open; Action INBOX", ""},
	{"marked before it was copied", "approval", "Action", []string{`UID STORE $A +FLAGS (\Deleted)`, "UID COPY $A Action/Approve", "EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"its own to Trash", "approval", "Action", []string{"UID COPY $A Action/Approve", "UID MOVE $A Trash"}, "OK", "deciding; INBOX Trash", "rejected; INBOX Trash"},
	{"its own moved", "approval", "Action", []string{"UID COPY $A Action/Reject", "UID MOVE $A Action/Approve"}, "OK", "deciding; Action/Approve INBOX", "approved; INBOX"},
	{"the other one moved", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", "UID MOVE $I Action/Reject"}, "OK", "deciding; Action/Reject", "rejected; Archive"},
	{"both copied", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT INBOX", "UID COPY $I Action/Approve"}, noAgain, "open; Action Action/Approve INBOX", "open; Action INBOX"},

	// Copied in INBOX.
	{"Action's entry deleted", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Action", `UID STORE $A +FLAGS (\Deleted)`, "UID EXPUNGE $A"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"Action's entry deleted by EXPUNGE", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Action", `UID STORE $A +FLAGS.SILENT (\Deleted)`, "EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"Action's entry deleted by CLOSE", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Action", `UID STORE $A FLAGS (\Deleted)`, "CLOSE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"Action's entry deleted by another session", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "2: SELECT Action", `2: UID STORE $A +FLAGS (\Deleted)`, "2: EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"Action's entry to Trash", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "2: SELECT Action", "2: UID MOVE $A Trash"}, "OK", "deciding; INBOX Trash", "rejected; INBOX Trash"},
	{"Action's entry to Trash and back", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Action", "UID MOVE $A Trash", "SELECT Trash", "UID MOVE 1 Action"}, "OK", "open; Action INBOX", ""},
	{"Action's entry marked", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Action", `UID STORE $A +FLAGS (\Deleted)`}, "OK", "open; Action Action/Approve INBOX", "open; Action INBOX"},
	{"Action's entry marked and not", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Action", `UID STORE $A +FLAGS (\Deleted)`, `UID STORE $A -FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "open; Action Action/Approve INBOX", "open; Action INBOX"},
	{"Action's entry deleted, then its own", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "2: SELECT Action", `2: UID STORE $A +FLAGS (\Deleted)`, "2: EXPUNGE", `UID STORE $I +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding", "rejected; Archive"},
	{"its own deleted, then Action's", "approval", "INBOX", []string{"UID COPY $I Action/Approve", `UID STORE $I +FLAGS (\Deleted)`, "EXPUNGE", "2: SELECT Action", `2: UID STORE $A +FLAGS (\Deleted)`, "2: EXPUNGE"}, "OK", "deciding", "rejected; Archive"},
	{"its own deleted, then Action's to Trash", "approval", "INBOX", []string{"UID COPY $I Action/Approve", `UID STORE $I +FLAGS (\Deleted)`, "2: SELECT Action", "2: UID MOVE $A Trash"}, "OK", "deciding; INBOX Trash", "rejected; INBOX Trash"},
	{"reject, Action's entry marked", "approval", "INBOX", []string{"UID COPY $I Action/Reject", "SELECT Action", `UID STORE $A +FLAGS (\Deleted)`}, "OK", "open; Action Action/Reject INBOX", "open; Action INBOX"},
	{"reject, Action's entry deleted", "approval", "INBOX", []string{"UID COPY $I Action/Reject", "SELECT Action", `UID STORE $A +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"reject, its own deleted", "approval", "INBOX", []string{"UID COPY $I Action/Reject", `UID STORE $I +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; Action Action/Reject", "rejected; Archive"},
	{"INBOX: deleted and taken back", "approval", "INBOX", []string{"UID COPY $I Action/Approve", `UID STORE $I +FLAGS (\Deleted)`, `UID STORE $I -FLAGS (\Deleted)`}, "OK", "open; Action INBOX", ""},
	{"INBOX: filed, back and deleted: another entry", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "UID MOVE $I Own", "SELECT Own", "UID MOVE 1 INBOX", "SELECT INBOX", `UID STORE 1:* +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX: filed and deleted there", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "UID MOVE $I Own", "SELECT Own", `UID STORE 1 +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "open; Action Action/Approve", "open; Action"},
	{"INBOX: to Trash", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "UID MOVE $I Trash"}, "OK", "open; Action Action/Approve Trash", "open; Action Trash"},

	// In Unread, which shows INBOX's entry while there is one.
	{"Unread: its own deleted", "approval", "Unread", []string{"UID COPY $V Action/Approve", `UID STORE $V +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; Action Action/Approve", "approved; Archive"},
	{"Unread: its own deleted and taken back", "approval", "Unread", []string{"UID COPY $V Action/Approve", `UID STORE $V +FLAGS (\Deleted)`, `UID STORE $V -FLAGS (\Deleted)`}, "OK", "open; Action INBOX", ""},
	{"Unread: deleted in INBOX", "approval", "Unread", []string{"UID COPY $V Action/Reject", "2: SELECT INBOX", `2: UID STORE $I +FLAGS (\Deleted)`, "2: EXPUNGE"}, "OK", "deciding; Action Action/Reject", "rejected; Archive"},
	{"Unread: Action's entry deleted", "approval", "Unread", []string{"UID COPY $V Action/Approve", "2: SELECT Action", `2: UID STORE $A +FLAGS (\Deleted)`, "2: EXPUNGE"}, "OK", "deciding; INBOX", "rejected; INBOX"},
	{"copied in Action, deleted in Unread", "approval", "Action", []string{"UID COPY $A Action/Approve", "SELECT Unread", `UID STORE $V +FLAGS (\Deleted)`}, noFile, "open; Action Action/Approve INBOX", "open; Action INBOX"},
	{"copied in INBOX, deleted in Unread", "approval", "INBOX", []string{"UID COPY $I Action/Approve", "SELECT Unread", `UID STORE $V +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "deciding; Action Action/Approve", "approved; Archive"},
	{"copied in Unread, shown from Action, deleted", "approval", "Unread", []string{"UID COPY $V Action/Approve", "2: SELECT INBOX", "2: UID MOVE $I Own", `UID STORE $V +FLAGS (\Deleted)`}, noFile, "open; Action Action/Approve Own", "open; Action Own"},
}

// acts on what shows a live task.
var actsOnStatus = []act{
	{"deleted", "status", "Running", []string{`UID STORE $U +FLAGS.SILENT (\Deleted)`, "EXPUNGE"}, "OK", "cancelled", ""},
	{"moved to Trash", "status", "Running", []string{"UID MOVE $U Trash"}, "OK", "Trash; cancelled", ""},
	{"deleted without MOVE", "status", "Running", []string{"UID COPY $U Trash", `UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "cancelled", ""},
	{"swiped to Archive", "status", "Running", []string{"UID MOVE $U Archive"}, noFiling, "Running; live 1", ""},
	{"swiped without MOVE", "status", "Running", []string{"UID COPY $U Archive"}, noFiling, "Running; live 1", ""},
	{"taken for junk", "status", "Running", []string{"UID MOVE $U Junk"}, noFiling, "Running; live 1", ""},
	{"dropped into Tasks", "status", "Running", []string{"UID COPY $U Tasks"}, noFiling, "Running; live 1", ""},
	{"flagged and tagged", "status", "Running", []string{`UID STORE $U +FLAGS (\Flagged $label1)`, `UID STORE $U -FLAGS (\Flagged)`}, "OK", "Running; live 1", ""},
}

// acts on a letter of somebody's.
var actsOnLetter = []act{
	{"dropped into Tasks", "plain", "INBOX", []string{"UID MOVE $U Tasks"}, "OK", "Tasks; live 1", ""},
	{"dropped without MOVE", "plain", "INBOX", []string{"UID COPY $U Tasks", `UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "live 1", ""},
	{"dropped from Trash", "plain", "Trash", []string{"UID MOVE $U Tasks"}, "OK", "Tasks; live 1", ""},
	{"taught", "plain", "INBOX", []string{"UID MOVE $U Memory"}, "OK", "Memory", ""},
	{"taught by a copy", "plain", "INBOX", []string{"UID COPY $U Memory"}, "OK", "INBOX", ""},
	{"into Schedules", "plain", "INBOX", []string{"UID MOVE $U Schedules"}, noSched, "INBOX", ""},
	{"copied into Schedules", "plain", "INBOX", []string{"UID COPY $U Schedules"}, noSched, "INBOX", ""},
	{"into Action", "plain", "INBOX", []string{"UID MOVE $U Action"}, noAction, "INBOX", ""},
	{"into Action/Approve", "plain", "INBOX", []string{"UID COPY $U Action/Approve"}, noDecide, "INBOX", ""},
	{"restored into Action/Reject", "plain", "Trash", []string{"UID MOVE $U Action/Reject"}, noDecide, "Trash", ""},
	{"into Running", "plain", "INBOX", []string{"UID COPY $U Running"}, noPut, "INBOX", ""},
	{"filed", "plain", "INBOX", []string{"UID MOVE $U Own"}, "OK", "Own", ""},
	{"restored", "plain", "Trash", []string{"UID MOVE $U INBOX"}, "OK", "INBOX", ""},

	{"Tasks: taken back", "drop", "Tasks", []string{"UID MOVE $U INBOX"}, "OK", "INBOX; cancelled", ""},
	{"Tasks: deleted", "drop", "Tasks", []string{`UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "cancelled", ""},
	{"Tasks: copied", "drop", "Tasks", []string{"UID COPY $U Own"}, "OK", "Tasks; live 1", ""},
	{"Tasks: flagged", "drop", "Tasks", []string{`UID STORE $U +FLAGS (\Seen \Flagged)`}, "OK", "Tasks; live 1", ""},

	{"Memory: deleted", "note", "Memory", []string{`UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "Trash", ""},
	{"Memory: deleted by CLOSE", "note", "Memory", []string{`UID STORE $U +FLAGS (\Deleted)`, "CLOSE"}, "OK", "Trash", ""},
	{"Memory: moved to Trash", "note", "Memory", []string{"UID MOVE $U Trash"}, "OK", "Trash", ""},
	{"Memory: deleted without MOVE", "note", "Memory", []string{"UID COPY $U Trash", `UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "Trash", ""},
	{"Memory: deleted and restored", "note", "Memory", []string{"UID MOVE $U Trash", "SELECT Trash", "UID MOVE 1 Memory"}, "OK", "Memory", ""},
	{"Memory: filed", "note", "Memory", []string{"UID MOVE $U Archive"}, "OK", "Archive", ""},
	{"Memory: dropped into Tasks", "note", "Memory", []string{"UID COPY $U Tasks"}, "OK", "Memory; live 1", ""},

	{"Schedules: deleted", "schedule", "Schedules", []string{`UID STORE $U +FLAGS (\Deleted)`, "EXPUNGE"}, "OK", "Trash", ""},
	{"Schedules: deleted and restored", "schedule", "Schedules", []string{"UID MOVE $U Trash", "SELECT Trash", "UID MOVE 1 Schedules"}, "OK", "Schedules", ""},
	{"Schedules: dropped into Tasks", "schedule", "Schedules", []string{"UID MOVE $U Tasks"}, "NO [CANNOT] this is a schedule: it lies in Schedules, or deleted in Trash", "Schedules", ""},
}

func TestActs(t *testing.T) {
	t.Parallel()
	for _, table := range []struct {
		name string
		acts []act
	}{{"approval", actsOnApproval}, {"copy", actsByCopy}, {"status", actsOnStatus}, {"letter", actsOnLetter}} {
		for _, a := range table.acts {
			t.Run(table.name+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				newScene(t).play(a)
			})
		}
	}
}

// acts on mailboxes themselves.
func TestActsOnMailboxes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.ok("CREATE Own")
	stays := "is a system mailbox; it stays"
	name := "is a system mailbox; its name stays"
	for _, tt := range []struct{ say, want string }{
		{"DELETE INBOX", "NO [CANNOT] INBOX " + stays},
		{"DELETE Action", "NO [CANNOT] Action " + stays},
		{"DELETE Action/Approve", "NO [CANNOT] Action/Approve " + stays},
		{"DELETE Running", "NO [CANNOT] Running " + stays},
		{"DELETE Memory", "NO [CANNOT] Memory " + stays},
		{"DELETE Sent", "NO [CANNOT] Sent " + stays},
		{"DELETE Unread", "NO [NONEXISTENT]"},
		{"RENAME Action Done", "NO [CANNOT] Action " + name},
		{"RENAME Tasks Own/Tasks", "NO [CANNOT] Tasks " + name},
		{"RENAME Trash Bin", "NO [CANNOT] Trash " + name},
		{"RENAME Own Action", "NO [ALREADYEXISTS]"},
		{"RENAME Own Action/Own", "NO [CANNOT] no mailboxes can be made below Action"},
		{"RENAME Own Running/Own", "NO [CANNOT] no mailboxes can be made below Running"},
		{"RENAME INBOX Tasks/Old", "NO [CANNOT] no mailboxes can be made below Tasks"},
		{"RENAME Own Unread", "NO [CANNOT] Unread is a view"},
		{"CREATE Action/Later", "NO [CANNOT] no mailboxes can be made below Action"},
		{"CREATE Action/Approve/Now", "NO [CANNOT] no mailboxes can be made below Action"},
		{"CREATE Memory/Work", "NO [CANNOT] no mailboxes can be made below Memory"},
		{"CREATE Schedules/Daily", "NO [CANNOT] no mailboxes can be made below Schedules"},
		{"CREATE Unread", "NO [CANNOT] Unread is a view"},
		{"CREATE Archive/2026", "OK"},
		{"CREATE INBOX/Lists", "OK"},
		{"UNSUBSCRIBE Action", "OK"},
		{"SUBSCRIBE Action", "OK"},
	} {
		if got := s.say("%s", tt.say); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.say, got, tt.want)
		}
	}
}

// APPEND, also with a Message-ID that says whose mail it is.
func TestActsAppend(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	dec := s.ask(decisionApproval)
	s.unread()
	letter := s.message(s.me, "a letter", "From: ann@example.org")
	for _, tt := range []struct{ box, raw, want string }{
		{"Action", letter, noAction}, {"Action/Approve", letter, noDecide}, {"Action/Reject", letter, noDecide},
		{"Running", letter, noPut}, {"Schedules", letter, noSched}, {"Unread", letter, noView},
		{"Memory", letter, "OK [APPENDUID"}, {"Tasks", letter, "OK [APPENDUID"}, {"INBOX", letter, "OK"},
		{"Sent", letter, "OK"}, {"Drafts", letter, "OK"}, {"Trash", letter, "OK"},
		{"Tasks", s.message(s.me, "x", "Message-ID: <"+dec.MailID+">"), noSecret},
		{"Memory", s.message(s.me, "x", "Message-ID: <"+dec.MailID+">"), noSecret},
	} {
		if got := s.say("APPEND %s {%d+}\r\n%s", tt.box, len(tt.raw), tt.raw); !strings.HasPrefix(got, tt.want) {
			t.Errorf("APPEND %s: %s, want %s", tt.box, got, tt.want)
		}
	}
	s.tend()
	if n := len(s.runs(s.me.Account)); n != 2 {
		t.Errorf("%d runs, want the one that asks and the one of Tasks", n)
	}
	if s.ok("SELECT INBOX"); !strings.HasPrefix(s.say("UID COPY 1 Unread"), noView) || !strings.HasPrefix(s.say("UID MOVE 1 Unread"), noView) {
		t.Error("COPY and MOVE into Unread are not refused")
	}
}

// Several at once: one that may not go stops all, and more than three come back.
func TestActsOnSelections(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	approval, unknown := s.ask(decisionApproval), s.ask(decisionUnknown)
	s.ok("SELECT Action")
	if got := s.say("UID MOVE 1:* Action/Approve"); !strings.HasPrefix(got, noReply) {
		t.Errorf("mixed: %s", got)
	}
	s.state(approval, Open)
	s.state(unknown, Open)
	for range crowdSize {
		s.ask(decisionApproval)
	}
	s.ok("NOOP")
	s.ok("UID MOVE 1,3:* Action/Approve")
	s.clock.add(2 * s.a.opt.Window)
	s.tend()
	s.count(s.me.Account, Action, crowdSize+2)
	s.count(s.me.Account, Approve, 0)
}

// What shows a task is always read.
func TestRunningIsAlwaysSeen(t *testing.T) {
	t.Parallel()
	for _, cmd := range []string{`STORE 1 -FLAGS (\Seen)`, `STORE 1 -FLAGS.SILENT (\seen)`, `STORE 1 FLAGS (\Flagged)`, `STORE 1 FLAGS.SILENT ()`} {
		t.Run(cmd, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.mustGive(s.me, s.message(s.me, "say a"), "pizza@localhost")
			s.ok("SELECT Running")
			s.ok("%s", cmd)
			if got := s.count(s.me.Account, Running, 1)[0]; !has(got.flags, imap.FlagSeen) {
				t.Errorf("flags %v", got.flags)
			}
		})
	}
}

// Unread over IMAP: what is read stays until it is left, and an act means the message.
func TestActsInUnread(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.ok("CREATE Own")
	if got := s.say("SELECT Unread"); !strings.HasPrefix(got, "NO [NONEXISTENT]") {
		t.Errorf("switched off: %s", got)
	}
	s.unread()
	for i, box := range []mailbox.MailboxID{mailbox.Inbox, s.box("Own"), mailbox.Inbox, mailbox.Inbox, Memory} {
		s.commit(s.appendOp(box, s.message(s.me, "x", fmt.Sprintf("Subject: m%d", i+1))))
	}
	shows := func(want string) {
		t.Helper()
		if got := strings.Join(subjects(s.shows()), " "); got != want {
			t.Errorf("Unread shows %q, want %q", got, want)
		}
	}
	s.ok("SELECT Unread")
	shows("m1 m2 m3 m4 m5")
	s.ok(`STORE 1 +FLAGS (\Seen)`)
	s.ok("NOOP")
	shows("m1 m2 m3 m4 m5") // read, and the mailbox is open
	if got := s.say("SEARCH UNSEEN"); !strings.HasPrefix(got, "OK") {
		t.Error(got)
	}
	if got := s.say("UID MOVE 3 Own"); !strings.HasPrefix(got, "OK") {
		t.Error(got)
	}
	s.ok("NOOP")
	shows("m1 m2 m4 m5 m3") // it lies in Own, and is unseen: it comes back under a new UID
	s.count(s.me.Account, s.box("Own"), 2)
	s.ok("UID MOVE 4 Trash")
	s.ok(`UID STORE 2 +FLAGS (\Deleted)`)
	s.ok("EXPUNGE")
	shows("m1 m5 m3")
	s.count(s.me.Account, s.box("Own"), 1)
	s.count(s.me.Account, mailbox.Inbox, 1)
	s.ok(`UID STORE 5 +FLAGS (\Deleted)`) // a note: what is deleted in Memory lies in Trash
	s.ok("EXPUNGE")
	s.count(s.me.Account, Trash, 2)
	s.ok("CLOSE")
	shows("m3") // m1 was read
	s.ok("STATUS Unread (MESSAGES UNSEEN UIDNEXT)")
	s.ok("SELECT Unread")
	s.ok(`STORE 1 +FLAGS (\Seen)`)
	s.conn.Close() // a program that crashes leaves too
	s.eventually("Unread to be empty", func() bool { return len(s.shows()) == 0 })
}

// eventually waits for what another goroutine commits.
func (d *desk) eventually(what string, cond func() bool) {
	d.t.Helper()
	wake, stop := d.store.Watch(d.me.Account, 0)
	defer stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-wake:
		case <-deadline:
			d.t.Fatalf("waited for %s in vain", what)
		}
	}
}

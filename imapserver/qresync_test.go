package imapserver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// known is what a QRESYNC client keeps of a mailbox between two sessions.
type known struct {
	validity string
	modSeq   int // its HIGHESTMODSEQ
	next     int // UIDs from here on are news
	msgs     map[int]string
}

// mirror is a client that does what RFC 7162 section 6 says, and no more.
type mirror struct {
	*wire
	known
	seqs    []int  // UIDs by message number; 0 not known
	highest int    // among the MODSEQ of this command
	code    int    // HIGHESTMODSEQ of this command, 0: none
	delays  bool   // VANISHED is not allowed in the command that runs
	adds    string // the flag that a STORE .SILENT adds
	addsTo  []int  // the message numbers that it names
}

// TestResync lets others change a mailbox at random, a QRESYNC client follow some of it,
// and the server start anew. A client that comes back with any state that it was ever
// left with must end with what the mailbox holds.
func TestResync(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			(&resyncWorld{world: &world{t: t, dir: t.TempDir()}, rnd: rand.New(rand.NewPCG(seed, 11))}).run(60)
		})
	}
}

type resyncWorld struct {
	*world
	rnd   *rand.Rand
	other *wire
	live  *mirror
	left  []known // states that a client was left with
	floor mailbox.ModSeq
	n     int
}

// forgetful is a store whose history of expunges begins at floor.
type forgetful struct {
	store
	w *resyncWorld
}

func (f forgetful) Gone(ctx context.Context, id mailbox.AccountID, box mailbox.MailboxID, since mailbox.ModSeq) (imap.UIDSet, bool, error) {
	if since < f.w.floor {
		return nil, false, nil
	}
	return f.store.Gone(ctx, id, box, since)
}

func (w *resyncWorld) run(steps int) {
	w.start()
	defer func() { w.stop() }()
	w.begin()
	w.other.must("CREATE Box")
	w.other.must("SELECT Box")
	w.live.open(w, known{})
	for range steps {
		if w.rnd.IntN(3) > 0 {
			w.change()
		} else {
			w.follow()
		}
		switch w.rnd.IntN(40) {
		case 0:
			w.again()
		case 1:
			w.recreate()
		case 2, 3, 4:
			w.comeBack()
		case 5:
			w.floor = mailbox.ModSeq(w.live.modSeq)
		}
		if w.t.Failed() {
			w.t.Fatal(strings.Join(w.log[max(0, len(w.log)-60):], "\n"))
		}
	}
	for range 20 {
		w.comeBack()
	}
}

// begin opens the connections to a server that has just started.
func (w *resyncWorld) begin() {
	w.h.srv.opt.Store = forgetful{w.h.srv.opt.Store, w}
	w.n++
	w.other = w.client(fmt.Sprintf("o%d-", w.n))
	w.other.must("LOGIN me secret")
	w.live = w.dial()
}

func (w *resyncWorld) dial() *mirror {
	w.n++
	m := &mirror{wire: w.client(fmt.Sprintf("m%d-", w.n))}
	m.must("LOGIN me secret")
	m.must("ENABLE QRESYNC")
	return m
}

// again starts the server anew.
func (w *resyncWorld) again() {
	state := w.live.leave(w)
	w.stop()
	w.start()
	w.begin()
	w.other.must("SELECT Box")
	w.live.open(w, state)
}

// recreate puts another mailbox of the same name in the place of the first.
func (w *resyncWorld) recreate() {
	w.live.leave(w)
	w.other.must("UNSELECT")
	w.other.must("DELETE Box")
	w.other.must("CREATE Box")
	w.other.must("SELECT Box")
	w.live = w.dial()
	w.live.open(w, w.left[w.rnd.IntN(len(w.left))])
}

// comeBack opens the mailbox with any state that was left.
func (w *resyncWorld) comeBack() {
	w.live.leave(w)
	w.live.c.Close()
	w.live = w.dial()
	w.live.open(w, w.left[w.rnd.IntN(len(w.left))])
}

// change is something that another client does.
func (w *resyncWorld) change() {
	some := w.some(w.other.uids)
	var cmd string
	switch k := w.rnd.IntN(10); {
	case k < 3 || some == "":
		cmd = fmt.Sprintf("APPEND Box (%s) {%d+}\r\n%s", w.flag(), len(mail), mail)
	case k < 6:
		cmd = fmt.Sprintf("UID STORE %s %cFLAGS.SILENT (%s)", some, "+-"[w.rnd.IntN(2)], w.flag())
	case k < 7:
		cmd = "UID MOVE " + some + " Trash"
	case k < 8:
		cmd = "UID COPY " + some + " Box"
	case k < 9:
		w.other.must("UID STORE %s +FLAGS.SILENT (\\Deleted)", some)
		cmd = "UID EXPUNGE " + some
	default:
		cmd = "EXPUNGE"
	}
	w.log = append(w.log, "other: "+firstLine([]byte(cmd)))
	w.other.must("%s", cmd)
	w.other.must("UID FETCH 1:* (UID)")
}

// some picks UIDs that a client knows, as a set.
func (w *resyncWorld) some(uids []string) string {
	var out []string
	for _, uid := range uids {
		if w.rnd.IntN(4) == 0 && uid != "" {
			out = append(out, uid)
		}
	}
	return strings.Join(out, ",")
}

func (w *resyncWorld) flag() string {
	return []string{`\Seen`, `\Flagged`, `\Deleted`, "kw", "$x"}[w.rnd.IntN(5)]
}

// follow is something that the client itself does. Between two commands it may be cut
// off: what it knows then is one of the states to come back with.
func (w *resyncWorld) follow() {
	m := w.live
	n := 1 + w.rnd.IntN(max(1, len(m.seqs)))
	some := w.some(strings.Fields(strings.Trim(fmt.Sprint(m.seqs), "[]")))
	cmd := "NOOP"
	if len(m.seqs) > 0 {
		cmd = []string{
			"NOOP",
			"IDLE",
			fmt.Sprintf("FETCH %d (UID FLAGS MODSEQ)", n),
			fmt.Sprintf("FETCH %d BODY[TEXT]", n),
			fmt.Sprintf("STORE %d +FLAGS.SILENT (%s)", n, w.flag()),
			fmt.Sprintf("STORE %d (UNCHANGEDSINCE %d) -FLAGS (%s)", n, w.rnd.IntN(m.modSeq+1), w.flag()),
			fmt.Sprintf("STORE 1:%d (UNCHANGEDSINCE %d) +FLAGS.SILENT (%s)", n, m.modSeq, w.flag()),
			fmt.Sprintf("SEARCH MODSEQ %d", m.modSeq),
			fmt.Sprintf("UID SEARCH %d", n),
			fmt.Sprintf("UID FETCH 1:* (FLAGS) (CHANGEDSINCE %d VANISHED)", 1+w.rnd.IntN(m.modSeq)),
			"UID FETCH " + strconv.Itoa(max(m.next, 1)) + ":* (FLAGS MODSEQ)",
			"UID STORE " + cmpOr(strings.ReplaceAll(some, "0", ""), "1") + " +FLAGS (kw)",
			"EXPUNGE",
		}[w.rnd.IntN(13)]
	}
	m.exchange(w, cmd)
	if cmd == "NOOP" || cmd == "EXPUNGE" || cmd == "IDLE" {
		m.catchUp(w)
		m.compare(w, "after "+cmd)
	}
	w.left = append(w.left, m.state())
}

func cmpOr(s, other string) string {
	if s = strings.Trim(s, ","); s == "" || strings.Contains(s, ",,") {
		return other
	}
	return s
}

func (m *mirror) state() known {
	k := m.known
	k.msgs = maps.Clone(k.msgs)
	return k
}

// leave notes what the client has when it goes.
func (m *mirror) leave(w *resyncWorld) known {
	k := m.state()
	w.left = append(w.left, k)
	return k
}

// open selects the mailbox with what the client knows of it.
func (m *mirror) open(w *resyncWorld, k known) {
	cmd := "SELECT Box"
	m.known, m.seqs = k, nil
	m.msgs = maps.Clone(k.msgs)
	if k.validity != "" {
		cmd += fmt.Sprintf(" (QRESYNC (%s %d%s))", k.validity, k.modSeq, m.what(w))
	}
	m.exchange(w, cmd)
	if m.validity != k.validity { // nothing of it holds
		m.msgs, m.next = map[int]string{}, 1
	}
	m.catchUp(w)
	m.exchange(w, "UID FETCH 1:* (UID)")
	m.compare(w, "after "+cmd)
}

// what names the UIDs that the client has, or some message numbers with them, or neither.
func (m *mirror) what(w *resyncWorld) string {
	out := ""
	if last := m.highestUID(); w.rnd.IntN(2) == 0 && last > 0 {
		out = " 1:" + strconv.Itoa(last)
	}
	uids := slices.Sorted(maps.Keys(m.msgs))
	if w.rnd.IntN(2) == 0 && len(uids) > 0 {
		var a, b []string
		for i, uid := range uids {
			if i == len(uids)-1 || w.rnd.IntN(3) == 0 {
				a, b = append(a, strconv.Itoa(i+1)), append(b, strconv.Itoa(uid))
			}
		}
		out += " (" + strings.Join(a, ",") + " " + strings.Join(b, ",") + ")"
	}
	return out
}

// catchUp fetches what is new.
func (m *mirror) catchUp(w *resyncWorld) {
	m.exchange(w, fmt.Sprintf("UID FETCH %d:* (FLAGS MODSEQ)", max(m.next, 1)))
	m.next = max(m.next, m.highestUID()+1)
}

func (m *mirror) highestUID() (uid int) {
	for u := range m.msgs {
		uid = max(uid, u)
	}
	return uid
}

// compare checks the client's state against the store.
func (m *mirror) compare(w *resyncWorld, when string) {
	w.t.Helper()
	row := w.h.box("Box")
	snap, err := w.h.store.Snapshot(context.Background(), account, row.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	want := map[int]string{}
	for _, e := range snap.All() {
		flags := w.h.store.Flags(account, e.Flags)
		if e.Deleted {
			flags = append(slices.Clone(flags), imap.FlagDeleted)
		}
		want[int(e.UID)] = describe(strings.Trim(fmt.Sprint(flags), "[]"), int(e.ModSeq))
	}
	if !maps.Equal(m.msgs, want) || m.validity != decimal(row.UIDValidity) || len(m.seqs) != len(want) {
		w.t.Errorf("%s:\nclient has %v (%d messages)\nmailbox is %v", when, m.msgs, len(m.seqs), want)
	}
}

func describe(flags string, modSeq int) string {
	list := slices.DeleteFunc(strings.Fields(flags), func(f string) bool { return f == `\Recent` })
	slices.Sort(list)
	return fmt.Sprint(modSeq, list)
}

// exchange sends a command and takes in what is told, to the tagged reply.
func (m *mirror) exchange(w *resyncWorld, cmd string) {
	m.n++
	tag := m.name + strconv.Itoa(m.n)
	verb, _, _ := strings.Cut(cmd, " ")
	m.delays = verb == "FETCH" || verb == "STORE" || verb == "SEARCH" || strings.HasPrefix(cmd, "UID SEARCH")
	m.highest, m.code, m.adds = 0, 0, ""
	if to, flag, silent := strings.Cut(cmd, " +FLAGS.SILENT ("); silent && verb == "STORE" {
		m.adds, m.addsTo = strings.TrimSuffix(flag, ")"), numbers(strings.Fields(to)[1])
	}
	before := m.modSeq
	w.log = append(w.log, tag+" "+cmd)
	io.WriteString(m.c, tag+" "+cmd+"\r\n")
	for {
		s, err := m.response()
		w.log = append(w.log, "  "+s)
		if err != nil {
			w.t.Fatalf("%v\n%s", err, strings.Join(w.log, "\n"))
		}
		if s == "+ idling" {
			io.WriteString(m.c, "DONE\r\n")
			continue
		}
		m.hear(w, s)
		if strings.HasPrefix(s, tag+" ") {
			break
		}
	}
	switch {
	case m.code > 0:
		m.modSeq = m.code
	case m.highest > m.modSeq && m.validity != "":
		m.modSeq = m.highest
	}
	if m.modSeq < before && verb != "SELECT" {
		w.t.Errorf("%s: HIGHESTMODSEQ went from %d to %d", cmd, before, m.modSeq)
	}
}

// hear takes in one response.
func (m *mirror) hear(w *resyncWorld, s string) {
	if n, found := after(s, "[HIGHESTMODSEQ "); found {
		m.code = number(n)
	}
	if n, found := after(s, "[UIDVALIDITY "); found {
		m.validity = n
	}
	f := strings.Fields(s)
	switch {
	case f[0] != "*":
	case f[1] == "VANISHED" && f[2] == "(EARLIER)":
		for _, uid := range numbers(f[3]) {
			if slices.Contains(m.seqs, uid) {
				w.t.Errorf("%s, but the session has it", s)
			}
			delete(m.msgs, uid)
		}
	case f[1] == "VANISHED":
		if m.delays {
			w.t.Errorf("%s in a command with numbers", s)
		}
		for _, uid := range numbers(f[2]) {
			m.drop(w, s, uid)
		}
	case len(f) > 2 && f[2] == "EXPUNGE":
		w.t.Error(s)
	case len(f) > 2 && f[2] == "EXISTS":
		n := number(f[1])
		if n < len(m.seqs) {
			w.t.Errorf("%s, had %d", s, len(m.seqs))
		}
		for len(m.seqs) < n {
			m.seqs = append(m.seqs, 0)
		}
	case len(f) > 2 && f[2] == "FETCH":
		m.fetched(w, s, number(f[1]))
	}
}

// drop takes out one message; one whose UID was not known yet lies among its neighbours.
func (m *mirror) drop(w *resyncWorld, s string, uid int) {
	at := slices.Index(m.seqs, uid)
	for i := 0; at < 0 && i < len(m.seqs); i++ {
		if m.seqs[i] == 0 && slices.Max(m.seqs[:i+1]) < uid {
			at = i
		}
	}
	if at < 0 {
		w.t.Errorf("%s: UID %d is not in %v", s, uid, m.seqs)
		return
	}
	m.seqs = slices.Delete(m.seqs, at, at+1)
	delete(m.msgs, uid)
}

func (m *mirror) fetched(w *resyncWorld, s string, n int) {
	if n > len(m.seqs) {
		w.t.Errorf("%s of %d", s, len(m.seqs))
		return
	}
	uid := m.seqs[n-1]
	if said, found := after(s, "UID "); found {
		if uid != 0 && uid != number(said) {
			w.t.Errorf("%s, but number %d is UID %d", s, n, uid)
		}
		uid = number(said)
		m.seqs[n-1] = uid
		if m.msgs == nil {
			m.msgs = map[int]string{}
		}
	}
	said, found := after(s, "MODSEQ (")
	if !found || uid == 0 {
		return
	}
	m.highest = max(m.highest, number(said))
	modSeq, flags, _ := strings.Cut(m.msgs[uid], " ")
	if number(said) < number(modSeq) {
		w.t.Errorf("%s, was %s", s, modSeq)
	}
	if _, rest, told := strings.Cut(s, "FLAGS ("); told {
		flags, _, _ = strings.Cut(rest, ")")
	} else {
		flags = strings.Trim(flags, "[]")
		if slices.Contains(m.addsTo, n) && m.adds != "" && !slices.Contains(strings.Fields(flags), m.adds) {
			flags += " " + m.adds
		}
		if _, there := m.msgs[uid]; !there {
			return
		}
	}
	m.msgs[uid] = describe(flags, number(said))
}

// after returns the digits behind a text.
func after(s, text string) (digits string, found bool) {
	_, rest, found := strings.Cut(s, text)
	if !found {
		return "", false
	}
	return rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))], true
}

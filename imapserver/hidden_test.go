package imapserver

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// TestHidden: what is hidden from an account is not advertised after its login, its
// commands are unknown and ENABLE does not switch it on; others keep it.
func TestHidden(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) {
		o.Hidden = func(login string) []string {
			if login == "me" {
				return []string{"move", "UTF8=ACCEPT", "APPENDLIMIT", "IDLE"}
			}
			return nil
		}
	})
	ask := func(w *wire, cmd string) string { return strings.Join(w.do("%s", cmd), "\r\n") }
	w := h.dial("a")
	if s := ask(w, "CAPABILITY"); !strings.Contains(s, " MOVE ") {
		t.Errorf("before the login nobody is known: %s", s)
	}
	offered := ask(w, "LOGIN me secret")
	for _, name := range []string{" MOVE", " UTF8=ACCEPT", " APPENDLIMIT", " IDLE"} {
		if strings.Contains(offered, name) {
			t.Errorf("%s is offered: %s", name, offered)
		}
	}
	for _, tt := range []struct{ cmd, want string }{
		{"ENABLE UTF8=ACCEPT", "* ENABLED\r\n"},
		{"SELECT INBOX", "OK "},
		{"MOVE 1 Trash", "BAD Unknown command"},
		{"UID MOVE 1 Trash", "BAD Unknown command"},
		{"IDLE", "BAD Unknown command"},
	} {
		if got := ask(w, tt.cmd); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.cmd, got)
		}
	}
	if s := ask(h.dial("b"), "LOGIN reader secret"); !strings.Contains(s, " MOVE ") {
		t.Errorf("another login: %s", s)
	}
}

func TestHideable(t *testing.T) {
	t.Parallel()
	list := Hideable()
	for _, name := range []string{"MOVE", "IDLE", "APPENDLIMIT", "UTF8=ACCEPT"} {
		if !slices.Contains(list, name) {
			t.Errorf("%s cannot be hidden", name)
		}
	}
	if slices.Contains(list, "IMAP4rev1") {
		t.Error("IMAP4rev1 can be hidden")
	}
	for _, name := range list {
		if _, listed := capabilityWords[name]; !listed {
			t.Errorf("capabilityWords does not say what goes with %s", name)
		}
	}
	for name := range capabilityWords {
		if !slices.Contains(list, name) {
			t.Errorf("%s of capabilityWords cannot be hidden", name)
		}
	}
	for name := range restsOn {
		if _, listed := capabilityWords[name]; !listed {
			t.Errorf("%s of restsOn is none of capabilityWords", name)
		}
	}
}

// wordUses are commands that use a word, by its place: %s is the word, and what follows
// it where that is not nothing is in wordArguments.
var wordUses = map[place]string{
	inSelect: "SELECT INBOX (%s)", inFetch: "FETCH 1 (%s)", inFetchModifier: "UID FETCH 1 FLAGS (CHANGEDSINCE 1 %s)",
	inStoreModifier: "UID STORE 1 (%s) +FLAGS.SILENT ($x)", inStatus: "STATUS INBOX (%s)", inSearch: "SEARCH %s",
	inReturn: "SEARCH RETURN (%s) ALL", inSortReturn: "SORT %s () (ARRIVAL) UTF-8 ALL", inSort: "SORT (%s) UTF-8 ALL",
	inThread: "THREAD %s UTF-8 ALL", inList: `LIST "" * RETURN (%s)`, inCreate: `CREATE New (%s (\Archive))`, inSet: "FETCH %s FLAGS",
	inAppend: "APPEND INBOX %s",
}

var wordArguments = map[string]string{
	"BINARY": "BINARY[1]", "BINARY.PEEK": "BINARY.PEEK[1]", "BINARY.SIZE": "BINARY.SIZE[1]",
	"YOUNGER": "YOUNGER 5", "OLDER": "OLDER 5", "SAVEDSINCE": "SAVEDSINCE 1-Feb-2026", "SAVEDBEFORE": "SAVEDBEFORE 1-Feb-2026",
	"SAVEDON": "SAVEDON 1-Feb-2026", "UNCHANGEDSINCE": "UNCHANGEDSINCE 99999", "QRESYNC": "QRESYNC (1 1)",
	"~": "~{6+}\r\na: b\r\n", "{": "{6+}\r\na: b\r\n {6+}\r\na: b\r\n",
}

// wordCommands are the uses that wordUses has not.
var wordCommands = map[placedWord]string{
	{inReturn, "RETURN"}:              "SEARCH RETURN () ALL",
	{inReturn, "PARTIAL"}:             "SEARCH RETURN (PARTIAL 1:5) ALL",
	{inFetchModifier, "CHANGEDSINCE"}: "UID FETCH 1 FLAGS (CHANGEDSINCE 1)",
	{inFetchModifier, "PARTIAL"}:      "UID FETCH 1 FLAGS (PARTIAL 1:5)",
	{inSearch, "MODSEQ"}:              "SEARCH MODSEQ 1",
	{inSearch, "EMAILID"}:             "SEARCH EMAILID M1",
	{inSearch, "THREADID"}:            "SEARCH THREADID T1",
	{inList, "("}:                     `LIST (SUBSCRIBED) "" *`,
	{inList, "RETURN"}:                `LIST "" * RETURN (CHILDREN)`,
	{inList, "STATUS"}:                `LIST "" * RETURN (STATUS (UNSEEN))`,
	{inCommand, "ID"}:                 "ID NIL",
	{inCommand, "ENABLE"}:             "ENABLE X",
	{inCommand, "MOVE"}:               "MOVE $ Trash",
	{inCommand, "UID MOVE"}:           "UID MOVE $ Trash",
	{inCommand, "UID EXPUNGE"}:        "UID EXPUNGE 9",
	{inCommand, "NOTIFY"}:             "NOTIFY NONE",
	{inCommand, "GETQUOTA"}:           `GETQUOTA ""`,
	{inCommand, "GETQUOTAROOT"}:       "GETQUOTAROOT INBOX",
	{inCommand, "SORT"}:               "SORT (ARRIVAL) UTF-8 ALL",
	{inCommand, "UID SORT"}:           "UID SORT (ARRIVAL) UTF-8 ALL",
	{inCommand, "THREAD"}:             "THREAD REFERENCES UTF-8 ALL",
	{inCommand, "UID THREAD"}:         "UID THREAD ORDEREDSUBJECT UTF-8 ALL",
}

func useOf(w placedWord) string {
	if cmd := wordCommands[w]; cmd != "" {
		return cmd
	}
	use, arg := wordUses[w.at], w.word
	if use == "" {
		return w.word
	}
	if a := wordArguments[w.word]; a != "" {
		arg = a
	}
	return strings.Replace(use, "%s", arg, 1)
}

// TestHiddenWords walks the table: each word works, and is BAD for an account from which
// all its capabilities are hidden.
func TestHiddenWords(t *testing.T) {
	t.Parallel()
	var hidden atomic.Pointer[[]string]
	h := newHouse(t, func(o *Options) {
		o.Hidden = func(string) []string { return *hidden.Load() }
	})
	h.deliver("INBOX", []byte(mail))
	n := 0
	try := func(w placedWord, hide []string) {
		hidden.Store(&hide)
		n++
		c := h.dial("w" + strconv.Itoa(n) + "x")
		c.must("LOGIN me secret")
		if hide == nil {
			c.must("ENABLE QRESYNC")
		}
		c.must("SELECT INBOX")
		cmd := useOf(w)
		if cmd == "IDLE" && hide == nil { // it waits: the reply comes after DONE
			cmd += "\r\nDONE"
		}
		got := c.do("%s", cmd)
		if bad := strings.Contains(got[len(got)-1], "BAD "); bad != (hide != nil) {
			t.Errorf("%v hidden: %s: %s", hide, cmd, strings.Join(got, "\n"))
		}
		c.must("LOGOUT")
		c.hangUp()
	}
	for w, needs := range wordNeeds {
		if w.at != inCode {
			try(w, needs)
			try(w, nil)
		}
	}
}

// TestHiddenCodes: response codes of what is hidden are not sent.
func TestHiddenCodes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) {
		o.Hidden = func(string) []string { return []string{"UIDPLUS", "CONDSTORE", "OBJECTID"} }
	})
	h.deliver("INBOX", []byte(mail))
	w := h.dial("a")
	w.must("LOGIN me secret")
	var got []string
	for _, cmd := range []string{"CREATE X", "SELECT INBOX", "COPY 1 X", "MOVE 1 X", "APPEND X {6+}\r\na: b\r\n"} {
		got = append(got, w.must("%s", cmd)...)
	}
	for _, code := range []string{"APPENDUID", "COPYUID", "HIGHESTMODSEQ", "MAILBOXID"} {
		if strings.Contains(strings.Join(got, "\n"), code) {
			t.Errorf("%s in %q", code, got)
		}
	}
}

// TestDocumented: docs/imap.md has a row for every capability.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/imap.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-Z][^|]*) \|`).FindAllStringSubmatch(string(page), -1)
	var named []string
	for _, row := range rows {
		named = append(named, strings.Split(row[1], ", ")...)
	}
	for _, name := range Hideable() {
		if !slices.Contains(named, name) {
			t.Errorf("%s has no row in docs/imap.md", name)
		}
	}
}

// TestCapabilities: the list is that of capability.go, and a login is not told again how
// to log in.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	w := newHouse(t, nil).dial("a")
	before := strings.Join(w.do("CAPABILITY"), " ")
	after := strings.Join(w.do("LOGIN me secret"), " ")
	for _, name := range strings.Fields(always + " " + afterLogin + " APPENDLIMIT=52428800") {
		for _, list := range []string{before, after} {
			if n := strings.Count(" "+strings.ReplaceAll(list, "]", " ")+" ", " "+name+" "); n != 1 {
				t.Errorf("%s comes %d times in %s", name, n, list)
			}
		}
	}
	for _, name := range []string{"STARTTLS", "AUTH="} {
		if !strings.Contains(before, name) || strings.Contains(after, name) {
			t.Errorf("%s: before the login %s, after it %s", name, before, after)
		}
	}
}

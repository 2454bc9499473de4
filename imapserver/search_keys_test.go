package imapserver

import (
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
)

// TestSearchKeys asks for every key (RFC 9051 section 6.4.4, RFC 5032, 7162, 8474, 8514),
// without a charset and with each that is offered; a key that has no row here fails.
func TestSearchKeys(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.deliver("INBOX", []byte("From: Ann <ann@one.example>\r\nTo: bob@two.example\r\nCc: carol@three.example\r\nBcc: dave@four.example\r\n"+
		"Subject: Hello world\r\nDate: Sun, 1 Feb 2026 23:30:00 -0800\r\nX-Note:\r\nMessage-ID: <one@x>\r\n\r\nThe body of one.\r\n"), imap.FlagSeen, imap.FlagAnswered)
	h.deliver("INBOX", []byte("From: bob@two.example\r\nSubject: Re: other\r\nDate: Tue, 3 Feb 2026 00:30:00 +0100\r\nReferences: <one@x>\r\n"+
		"X-Note: a note\r\n\r\nAnn said hello.\r\n"+strings.Repeat("more text\r\n", 100)), imap.FlagFlagged, imap.FlagDraft, "$Work")
	h.deliver("INBOX", []byte("nothing but text\r\n"), imap.FlagDeleted)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	today := time.Now().Format("2-Jan-2006")
	email := sectionBetween(w.must("FETCH 2 EMAILID")[0], "EMAILID (", ")")
	thread := sectionBetween(w.must("FETCH 1 THREADID")[0], "THREADID (", ")")
	rows := []struct{ keys, want string }{
		{"ALL", "1 2 3"}, {"1", "1"}, {"2:*", "2 3"}, {"*:2", "2 3"}, {"*", "3"}, {"1,3", "1 3"}, {"7", ""}, {"UID 2:3", "2 3"}, {"UID 9:*", "3"},
		{"ANSWERED", "1"}, {"DELETED", "3"}, {"DRAFT", "2"}, {"FLAGGED", "2"}, {"SEEN", "1"},
		{"UNANSWERED", "2 3"}, {"UNDELETED", "1 2"}, {"UNDRAFT", "1 3"}, {"UNFLAGGED", "1 3"}, {"UNSEEN", "2 3"},
		{"RECENT", "1 2 3"}, {"OLD", ""}, {"NEW", "2 3"}, {"KEYWORD $work", "2"}, {"UNKEYWORD $Work", "1 3"}, {"KEYWORD none", ""},
		// INTERNALDATE is 1 February 21:52 -0800 for all: another day in UTC.
		{"ON 1-Feb-2026", "1 2 3"}, {"ON 2-Feb-2026", ""}, {"SINCE 1-Feb-2026", "1 2 3"}, {"SINCE 2-Feb-2026", ""}, {"BEFORE 1-Feb-2026", ""}, {"BEFORE \"2-Feb-2026\"", "1 2 3"},
		// The day of Date, in its own zone; without Date no day matches.
		{"SENTON 1-Feb-2026", "1"}, {"SENTON 3-Feb-2026", "2"}, {"SENTSINCE 2-Feb-2026", "2"}, {"SENTSINCE 1-Feb-2026", "1 2"}, {"SENTBEFORE 2-Feb-2026", "1"},
		{"SENTBEFORE 4-feb-2026", "1 2"}, {"NOT SENTSINCE 1-Feb-2026", "3"},
		{"YOUNGER 60", ""}, {"OLDER 60", "1 2 3"}, {"MODSEQ 1", "1 2 3"}, {"MODSEQ 999999", ""},
		{"LARGER 500", "2"}, {"SMALLER 500", "1 3"}, {"LARGER 18", "1 2"}, {"SMALLER 18", ""}, {"LARGER 0", "1 2 3"},
		{"SUBJECT hello", "1"}, {"SUBJECT \"O W\"", "1"}, {"SUBJECT re:", "2"}, {"FROM ann", "1"}, {"FROM two.example", "2"}, {"FROM \"ann <ann@\"", "1"},
		{"TO bob", "1"}, {"CC carol", "1"}, {"BCC dave", "1"}, {"TO carol", ""},
		{"BODY hello", "2"}, {"BODY \"body of\"", "1"}, {"BODY subject", ""}, {"TEXT hello", "1 2"}, {"TEXT x-note", "1 2"}, {"TEXT nothing", "3"},
		{"HEADER X-Note \"\"", "1 2"}, {"HEADER x-note note", "2"}, {"HEADER X-None \"\"", ""}, {"HEADER References one@x", "2"}, {"HEADER Message-ID {0+}\r\n", "1"},
		{"SUBJECT {5+}\r\nworld", "1"},
		{"SAVEDON " + today + " OR SAVEDON " + today + " ALL", "1 2 3"}, {"SAVEDSINCE 1-Jan-2026", "1 2 3"}, {"SAVEDBEFORE 1-Jan-2026", ""}, {"SAVEDATESUPPORTED", "1 2 3"},
		{"EMAILID " + email, "2"}, {"THREADID " + thread, "1 2"},
		{"NOT 2", "1 3"}, {"OR SEEN DELETED", "1 3"}, {"OR (SEEN 2) DELETED", "3"}, {"(ALL)", "1 2 3"}, {"NOT (OR SEEN (FLAGGED DRAFT))", "3"}, {"SEEN UNSEEN", ""},
	}
	asked := map[string]bool{}
	for _, row := range rows {
		for _, word := range strings.FieldsFunc(row.keys, func(c rune) bool { return c == ' ' || c == '(' || c == ')' }) {
			asked[strings.ToUpper(word)] = true
		}
		want := strings.TrimRight("* SEARCH "+row.want, " ")
		for _, charset := range []string{"", "CHARSET UTF-8 ", "CHARSET us-ascii ", "CHARSET \"utf-8\" "} {
			answer := w.must("SEARCH %s%s", charset, row.keys)
			got, _, _ := strings.Cut(answer[len(answer)-2], " (MODSEQ")
			if got != want {
				t.Errorf("SEARCH %s%s: %s, want %s", charset, row.keys, got, want)
			}
		}
		if got := last(w.do("SEARCH CHARSET ISO-8859-1 %s", row.keys)); !strings.Contains(got, "NO [BADCHARSET (UTF-8 US-ASCII)]") {
			t.Errorf("ISO-8859-1, %s: %s", row.keys, got)
		}
	}
	for name := range searchPlain {
		if !asked[name] {
			t.Errorf("nothing asks for %s", name)
		}
	}
	for name := range searchArgs {
		if !asked[name] {
			t.Errorf("nothing asks for %s", name)
		}
	}
}

// sectionBetween returns what lies between two texts.
func sectionBetween(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// TestSearchSyntaxErrors: what is no search is one BAD.
func TestSearchSyntaxErrors(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.deliver("INBOX", []byte(mail))
	for _, keys := range []string{
		"", "FOO", "NOT", "OR SEEN", "OR SEEN ", "(SEEN", "()", "SEEN)", "SUBJECT", "SUBJECT ", "HEADER X", "KEYWORD", "KEYWORD \\Seen", "UID", "UID x", "0", "1:0", "1:", ",1",
		"LARGER x", "LARGER -1", "SINCE 1-Feb", "SINCE 31-Feb-2026", "SINCE Feb-1-2026", "CHARSET", "CHARSET UTF-8", "CHARSET X", "RETURN ALL ALL", "RETURN (FOO) ALL", "RETURN () ",
		"SUBJECT {3+}\r\n\xff\xfe\xfd", "SUBJECT \"\xe9\"", "SEEN  SEEN", "EMAILID ()", "YOUNGER",
		// nz-number (RFC 5032, 9394, 9051)
		"OLDER 0", "YOUNGER 0", "OLDER 00", "YOUNGER 4294967296", "NOT OLDER 0", "RETURN (PARTIAL 0:1) ALL", "RETURN (PARTIAL -1:-0) ALL", "UID 0", "UID 1:0", "1,0",
	} {
		w := h.dial("a")
		w.must("LOGIN me secret")
		w.must("SELECT INBOX")
		got := w.do("SEARCH %s", keys)
		if len(got) != 1 || !strings.Contains(got[0], " BAD ") {
			t.Errorf("SEARCH %q: %q", keys, got)
		}
		w.must("NOOP")
		w.c.Close()
	}
}

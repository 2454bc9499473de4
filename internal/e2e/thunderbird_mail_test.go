//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// eval runs the body of a function inside Thunderbird and decodes what it returns.
func (t *thunderbird) eval(script string, into any) {
	t.tb.Helper()
	if err := json.Unmarshal([]byte(t.do("eval", script)), into); err != nil {
		t.tb.Fatal(err)
	}
}

// TestThunderbirdMailboxes is what a person does with mail that is there, in two
// Thunderbirds of the same account at once: each change shows in the other, which is
// told by the server, and is on the server.
func TestThunderbirdMailboxes(t *testing.T) {
	s := startServer(t)
	w := login(t, s)
	w.fill("INBOX", "note", 6)
	one, two := startThunderbird(t, s, "none"), startThunderbird(t, s, "tls")
	two.do("open", "INBOX")

	one.do("flag", "INBOX", "1", "star")
	one.do("flag", "INBOX", "2", "+$label1")
	one.do("move", "INBOX", "uid:3", "Archive")
	one.do("delete", "INBOX", "uid:4")
	one.do("flag", "INBOX", "uid:5", "read")
	onServer(w, "INBOX", "FLAGGED", "1")
	onServer(w, "INBOX", "KEYWORD $label1", "1")
	onServer(w, "INBOX", "SEEN SUBJECT \"note 4\"", "1")
	onServer(w, "Archive", `SUBJECT "note 2"`, "1")
	onServer(w, "Trash", `SUBJECT "note 3"`, "1")
	two.settle(`const all = messagesOf(findFolder("INBOX")).map(describe);
		return all.length == 4 && all[0].starred && all[1].keywords.includes("$label1") && all.some(m => m.uid == 5 && m.read)`)
	two.do("sync", "Archive")
	if rows := two.list("Archive"); len(rows) != 1 || rows[0].Subject != "note 2" {
		t.Errorf("the other Thunderbird has %+v in Archive", rows)
	}

	// The other way, and a new message for both.
	two.do("flag", "INBOX", "1", "unstar")
	one.settle(`return !describe(messagesOf(findFolder("INBOX"))[0]).starred`)
	w.fill("INBOX", "late", 1)
	one.do("wait-message", "INBOX", "late 0")
	two.do("wait-message", "INBOX", "late 0")

	var found []string
	one.eval(searchOnServer("INBOX", "Line of note 5"), &found)
	if len(found) != 1 || found[0] != "note 5" {
		t.Errorf("a search on the server found %q", found)
	}
	drafts(t, one, w)
}

// onServer counts what matches a search.
func onServer(w *wire, box, search, count string) {
	w.t.Helper()
	w.ask(fmt.Sprintf("EXAMINE %q", box))
	if got := w.ask("SEARCH RETURN (COUNT) " + search); !strings.Contains(got, "COUNT "+count+"\r\n") {
		w.t.Errorf("%s in %s: %s", search, box, got)
	}
	w.ask("UNSELECT")
}

// settle waits until Thunderbird shows what condition, the body of a function, says.
// Nothing here makes it ask the server.
func (t *thunderbird) settle(condition string) {
	t.tb.Helper()
	var done bool
	t.eval(`await until("what the other one did", () => { `+condition+` }); return true`, &done)
	if !done {
		t.tb.Error("it did not show")
	}
}

// searchOnServer is the search for text in bodies that the search window makes, run on
// the server.
func searchOnServer(folder, text string) string {
	return fmt.Sprintf(`const folder = findFolder(%q);
		const session = Cc["@mozilla.org/messenger/searchSession;1"].createInstance(Ci.nsIMsgSearchSession);
		const term = session.createTerm();
		term.attrib = Ci.nsMsgSearchAttrib.Body; term.op = Ci.nsMsgSearchOp.Contains; term.booleanAnd = true;
		const value = term.value; value.attrib = term.attrib; value.str = %q; term.value = value;
		session.appendTerm(term);
		session.addScopeTerm(Ci.nsMsgSearchScope.onlineMail, folder);
		const found = []; let status = null;
		session.registerListener({
			onNewSearch() {}, onSearchDone(s) { status = s; },
			onSearchHit(hit) { found.push(hit.mime2DecodedSubject); },
		});
		session.search(mainWindow().msgWindow);
		await until("the search to end", () => status !== null);
		return found`, folder, text)
}

// drafts saves a draft, writes on and saves it again: Drafts has the later one only.
func drafts(t *testing.T, tb *thunderbird, w *wire) {
	var ok bool
	tb.eval(`const fields = Cc["@mozilla.org/messengercompose/composefields;1"].createInstance(Ci.nsIMsgCompFields);
		Object.assign(fields, { to: "pizza@localhost", subject: "a draft" });
		const params = Cc["@mozilla.org/messengercompose/composeparams;1"].createInstance(Ci.nsIMsgComposeParams);
		params.type = Ci.nsIMsgCompType.New; params.format = Ci.nsIMsgCompFormat.Default; params.composeFields = fields;
		const win = await composeWindow(() => MailServices.compose.OpenComposeWindowWithParams(null, params));
		typeText(win, "say first");
		for (const more of [" words", " of a draft"]) {
			typeText(win, more);
			win.SaveAsDraft();
			await until("the draft to be saved", () => !win.gSaveOperationInProgress && !win.gSendOperationInProgress && !win.gContentChanged && win.gMsgCompose.compFields.draftId);
			await quiet();
		}
		await discard(win);
		return true`, &ok)
	onServer(w, "Drafts", `DRAFT SUBJECT "a draft" BODY "first words of a draft"`, "1")
	onServer(w, "Drafts", `UNDELETED`, "1")
}

// TestThunderbirdOffline downloads 2,000 messages, as a first start does, and reads one
// without the server.
func TestThunderbirdOffline(t *testing.T) {
	s := startServer(t)
	login(t, s).fill("INBOX", "mirrored", 2000)
	tb := startThunderbird(t, s, "none")
	var have int
	deadline := time.Now().Add(2 * time.Minute)
	for have != 2000 && time.Now().Before(deadline) {
		tb.eval(`return messagesOf(findFolder("INBOX")).filter(m => m.flags & Ci.nsMsgMessageFlags.Offline).length`, &have)
		pause(200 * time.Millisecond)
	}
	if have != 2000 {
		t.Fatalf("%d of 2,000 messages are downloaded", have)
	}
	tb.eval(`Services.io.offline = true; return 0`, &have)
	mustContain(t, "a message read offline", tb.text("INBOX", "1000"), "Line of mirrored 999.")
}

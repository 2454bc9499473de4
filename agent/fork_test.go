package agent

import (
	"slices"
	"strings"
	"testing"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// said is the text of a request's messages, one string a message, its role before it.
func said(req providers.Request) (out []string) {
	for _, m := range req.Messages {
		text := string(m.Role) + ":"
		for _, p := range m.Parts {
			text += " " + p.Text
			if p.Result != nil {
				text += " " + p.Result.Content
			}
		}
		out = append(out, text)
	}
	return out
}

// thread has a conversation of three runs; the first mail has a file.
func threeRuns(t *testing.T, more ...providertest.Turn) (*office, *providertest.Model, string, []shown) {
	t.Helper()
	m := providertest.Script(append([]providertest.Turn{
		providertest.Say("answer one"), providertest.Say("answer two"), providertest.Say("answer three")}, more...)...)
	o := newOffice(t, m)
	first := o.mustGive(o.me, withFile(o.desk, "question one", "notes.txt", "the file", "Message-ID: <q1@test>", "Subject: pizza"), "pizza@localhost")
	o.ended(1)
	o.send("question two", "In-Reply-To: <q1@test>", "Message-ID: <q2@test>")
	o.ended(2)
	o.send("question three", "In-Reply-To: <q2@test>", "Message-ID: <q3@test>")
	return o, m, first.Task, o.ended(3)
}

// withFile is a mail with an attachment.
func withFile(d *desk, body, name, content string, header ...string) string {
	header = append(header, "MIME-Version: 1.0", `Content-Type: multipart/mixed; boundary="b"`)
	return d.message(d.me, "--b\nContent-Type: text/plain\n\n"+body+"\n--b\nContent-Type: text/plain\n"+
		`Content-Disposition: attachment; filename="`+name+"\"\n\n"+content+"\n--b--", header...)
}

// wantSaid compares what a request holds: each of want in its message, in order, and as many.
func wantSaid(t *testing.T, req providers.Request, want ...string) {
	t.Helper()
	got := said(req)
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("the model is told %q, want %q", got, want)
	}
}

// A branch knows the thread up to the run whose mail was answered, has its files, and is a
// task of its own; a branch of the branch as well.
func TestFork(t *testing.T) {
	t.Parallel()
	o, m, task, results := threeRuns(t,
		providertest.Calls(providertest.Call("r", "read_file", `{"path":"/in/notes.txt"}`)),
		providertest.Say("branched answer"), providertest.Say("further"), providertest.Say("twig"), providertest.Say("back"))
	reply := "Fork.\n\nand what about\n    code?\n" + quoted("answer two")
	r := o.send(reply, "In-Reply-To: <"+results[1].mid+">", "Message-ID: <f@test>", "Subject: Re: pizza")
	if r.Task == task || !strings.Contains(r.Note, task+" after its run "+task+".2") {
		t.Fatalf("%+v", r)
	}
	mails := o.ended(4)
	branched := mails[len(mails)-1]
	for _, want := range []string{"branched answer", "X-Pizza-Task: " + r.Task, "Branched off from task " + task + " (pizza) after its run " + task + ".2."} {
		if !strings.Contains(strings.ReplaceAll(branched.raw, "=\r\n", ""), want) {
			t.Errorf("the result lacks %q:\n%s", want, branched.raw)
		}
	}
	reqs := m.Requests()
	wantSaid(t, reqs[3], "question one", "answer one", "question two", "answer two", "code?")
	if text := said(reqs[3])[4]; strings.Contains(text, "Fork") || !strings.Contains(text, "and what about\n    code?") {
		t.Errorf("the mail reads %q", text)
	}
	if got := said(reqs[4]); !strings.Contains(got[len(got)-1], "the file") {
		t.Errorf("read_file gave %q", got)
	}
	o.send("go on", "In-Reply-To: <"+branched.mid+">", "Message-ID: <f2@test>")
	o.ended(5)
	wantSaid(t, m.Requests()[5], "question one", "answer one", "question two", "answer two", "code?", "branched answer", "go on")

	twig := o.send("fork\nonce more", "In-Reply-To: <f@test>", "Message-ID: <t@test>") // a mail of the person's own
	o.ended(6)
	wantSaid(t, m.Requests()[6], "question one", "answer one", "question two", "answer two", "code?", "branched answer", "once more")
	o.send("as before", "In-Reply-To: <q3@test>")
	o.ended(7)
	wantSaid(t, m.Requests()[7], "question one", "answer one", "question two", "answer two", "question three", "answer three", "as before")
	for id, want := range map[string][]string{task: {r.Task}, r.Task: {twig.Task}, twig.Task: nil} {
		s, err := o.a.Show(t.Context(), o.me.Account, id)
		if err != nil || !slices.Equal(s.Branches, want) {
			t.Errorf("%s: branches %v, %v; want %v", id, s.Branches, err, want)
		}
		if id != task && (s.From == nil || s.From.Run == "") {
			t.Errorf("%s: from %+v", id, s.From)
		}
	}
	o.settledDown()
}

// A branch of a task that works on knows what had happened then, and no more, also when
// the other one has gone on.
func TestForkOfALiveTask(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	m := providertest.Script(providertest.Say("the first answer").After(gate), providertest.Say("branch"), providertest.Say("more"))
	o := newOffice(t, m)
	first := o.send("long work", "Message-ID: <q1@test>", "Subject: long")
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	status := o.ofKind(Running, KindStatus)[0]
	r := o.send("fork\nsomething quicker", "In-Reply-To: <"+status.mid+">", "Message-ID: <f@test>")
	o.until("the branch", func() bool { return len(m.Requests()) == 2 })
	close(gate)
	o.ended(2)
	wantSaid(t, m.Requests()[1], "long work", "still being worked on", "something quicker")
	o.send("go on", "In-Reply-To: <f@test>")
	o.ended(3)
	wantSaid(t, m.Requests()[2], "long work", "still being worked on", "something quicker", "branch", "go on")
	if r.Task == first.Task {
		t.Error("no task of its own")
	}
	o.settledDown()
}

// The word alone makes the branch, and its first run comes with the first mail.
func TestForkAlone(t *testing.T) {
	t.Parallel()
	o, m, task, results := threeRuns(t, providertest.Say("the branch"), providertest.Say("the twig"))
	r := o.send("fork\n\n-- \nMaria\n", "In-Reply-To: <"+results[0].mid+">", "Message-ID: <f@test>")
	if r.Task == task || len(o.runs(o.me.Account)) != 3 {
		t.Fatalf("%+v, %d runs", r, len(o.runs(o.me.Account)))
	}
	if s, err := o.a.Show(t.Context(), o.me.Account, r.Task); err != nil || s.State != Done || s.From == nil {
		t.Errorf("%+v, %v", s, err)
	}
	notices := o.ofKind(mailbox.Inbox, KindNotice)
	if len(notices) != 1 || !strings.Contains(notices[0].raw, "Branched off from task "+task) {
		t.Fatalf("%v", notices)
	}
	twig := o.send("fork\nbeside", "In-Reply-To: <"+notices[0].mid+">") // of a branch without runs
	o.ended(4)
	wantSaid(t, m.Requests()[3], "question one", "answer one", "beside")
	again := o.send("now", "In-Reply-To: <"+notices[0].mid+">")
	o.ended(5)
	wantSaid(t, m.Requests()[4], "question one", "answer one", "now")
	if again.Task != r.Task || twig.Task == r.Task || twig.Task == task {
		t.Errorf("tasks %s, %s, %s", r.Task, again.Task, twig.Task)
	}
}

// A send-only credential joins no thread and branches off none.
func TestForkBySendOnly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustGive(d.me, d.message(d.me, "hello", "Message-ID: <q@test>"), "pizza@localhost")
	r := d.mustGive(sendOnly(d.me), d.message(d.me, "fork\nmore", "In-Reply-To: <q@test>"), "pizza@localhost")
	if th, _, err := d.a.thread(t.Context(), d.me.Account, r.Task); err != nil || th.From != nil {
		t.Errorf("%+v, %v", th, err)
	}
}

package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"pizza/mailbox"
)

const simEdited = `"edited"`

// simAnswer is what the owner answers to the question of a call.
func simAnswer(call string) string { return "The answer to " + call + " is yes." }

// decisions are what the owner can decide, as somebody who knows the ledger.
func (p *process) decisions() (list []func()) {
	recs, _ := p.mem.Lookup(context.Background(), simAccount, indexOpenDecisions)
	slices.SortFunc(recs, func(a, b mailbox.Record) int { return strings.Compare(simCallOf(a), simCallOf(b)) })
	for _, rec := range recs {
		d, err := decodeDecision(rec)
		if err != nil {
			p.fault("%v", err)
			continue
		}
		if verb := p.verdict(d); verb != "expire" {
			list = append(list, func() { p.decide(d, verb) })
		}
	}
	return list
}

func simCallOf(rec mailbox.Record) string {
	d, _ := decodeDecision(rec)
	return d.Run + d.Call
}

// verdict is what the owner says to a decision.
func (p *process) verdict(d Decision) string {
	call := p.calls[d.Call]
	switch {
	case d.Kind == decisionLimit && strings.HasPrefix(d.Sentence, "The conversation"):
		return "continue"
	case d.Kind == decisionLimit:
		return cmp.Or(p.plot.more, "continue")
	case d.Kind == decisionQuestion:
		return cmp.Or(call.owner, "answer")
	case d.Kind == decisionApproval && strings.Contains(string(d.Args), simEdited):
		return "approve"
	case d.Kind == decisionApproval:
		return cmp.Or(call.owner, "approve")
	case call.answer != "":
		return call.answer
	case p.effects(d.Run+"/"+d.Call) > 0:
		return "happened"
	}
	return "repeat"
}

// decide decides as the plot has it. A kill may take it.
func (p *process) decide(d Decision, verb string) {
	if p.plot.byMail {
		p.decideByMail(d, verb)
		return
	}
	by, err := DecidedBy{Login: "me", Via: "cli"}, error(nil)
	switch {
	case strings.HasPrefix(verb, "edit"):
		_, err = p.a.Edit(context.Background(), simAccount, d.ID, editOf(d.Call, verb), by)
	case verb == "answer":
		_, err = p.a.Decide(context.Background(), simAccount, d.ID, verb, simAnswer(d.Call), by)
	default:
		_, err = p.a.Decide(context.Background(), simAccount, d.ID, verb, "", by)
	}
	late := p.cancelling() && isKind(err, mailbox.Conflict) // the task was cancelled first
	if err != nil && !late && !errors.Is(err, mailbox.ErrClosed) {
		p.fault("%s of %s: %v", verb, d.Call, err)
	}
}

// editOf are the arguments that the owner wants. A path is asked about once more.
func editOf(call, verb string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"call":%q,%q:%s}`, call, editedName(verb), simEdited))
}

func editedName(verb string) string {
	if verb == "edit again" {
		return "path"
	}
	return "note"
}

// decideByMail answers the mail of a decision.
func (p *process) decideByMail(d Decision, verb string) {
	asked := p.mem.disk.mails[d.Mail]
	msg, err := netmail.ReadMessage(bytes.NewReader([]byte(p.mem.disk.blobs[asked.blob.ID])))
	if err != nil {
		p.fault("the mail of %s: %v", d.ID, err)
		return
	}
	to, err := netmail.ParseAddress(msg.Header.Get("Reply-To"))
	if err != nil {
		p.fault("the mail of %s: %v", d.ID, err)
		return
	}
	body := verb
	switch {
	case verb == "answer":
		body = simAnswer(d.Call)
	case strings.HasPrefix(verb, "edit"):
		line := "call: " + d.Call
		edited := strings.Replace(d.Text, line, line+"\n"+editedName(verb)+": edited", 1)
		body = "edit\n\n> " + strings.ReplaceAll(edited, "\n", "\n> ")
	}
	raw := fmt.Sprintf("From: me@localhost\nTo: %s\nSubject: Re: %s\nMessage-ID: <re-%s@sim>\nIn-Reply-To: %s\n\n%s\n",
		to.Address, "it", d.ID, msg.Header.Get("Message-ID"), body)
	blob, err := p.store.Stage(context.Background(), simAccount, strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n")), 0)
	if err != nil {
		p.fault("%v", err)
		return
	}
	r, err := p.a.Submit(context.Background(), mailbox.Submission{
		Identity: identity(simAccount, "me"), Envelope: mailbox.Envelope{From: "me@localhost", To: []string{to.Address}},
		Blob: blob, Received: time.Now(),
	})
	switch {
	case errors.Is(err, mailbox.ErrClosed):
	case err != nil:
		p.fault("%s of %s by mail: %v", verb, d.Call, err)
	case strings.Contains(r.Note, "inbox"):
		p.fault("%s of %s by mail: %s", verb, d.Call, r.Note)
	}
}

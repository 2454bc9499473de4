package agent

import (
	"context"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// decisionKept is what the question of an asking is called where decisions are listed. It
// is no decision of a run: delete throws away what was put back, keep leaves it.
const decisionKept = "kept"

// asked reads the record behind a question, and its version.
func (a *Agent) asked(ctx context.Context, account mailbox.AccountID, id string) (asking, uint64, error) {
	rec, err := a.store.Record(ctx, account, askKey(id))
	if err != nil {
		return asking{}, 0, err
	}
	ask, err := decode[asking](rec)
	return ask, rec.Version, err
}

// decision shows the question in the form of one.
func (ask asking) decision(id string) Decision {
	return Decision{ID: id, Kind: decisionKept, State: Open, Mail: ask.Mail, Subject: ask.Subject, Created: ask.At}
}

// answerAsk answers such a question on the command line. It loses to an answer that was
// there first with Conflict.
func (a *Agent) answerAsk(ctx context.Context, account mailbox.AccountID, id string, v verdict) (Decision, error) {
	ask, version, err := a.asked(ctx, account, id)
	if err != nil {
		return Decision{}, err
	}
	d := ask.decision(id)
	to, err := a.decidable(d, v)
	if err != nil {
		return d, err
	}
	ops, err := a.answerAskOps(ctx, account, id, ask, version, v.verb)
	if err != nil {
		return d, err
	}
	if _, err := a.store.Commit(ctx, account, mailbox.Tx{Ops: ops}); err != nil {
		if isKind(err, mailbox.Conflict) {
			err = decideError(mailbox.Conflict, d, "this was answered already")
		}
		return d, err
	}
	d.State, d.Verb, d.By = to, v.verb, &v.by
	a.logDecision(ctx, d)
	return d, nil
}

// answerAskOps ends the question: its record goes, and its mail is marked.
func (a *Agent) answerAskOps(ctx context.Context, account mailbox.AccountID, id string, ask asking, version uint64, verb string) ([]mailbox.Op, error) {
	ops := []mailbox.Op{mailbox.DeleteRecord{Key: askKey(id), Version: version}}
	places, err := a.store.Places(ctx, account, ask.Mail)
	if err != nil && !isKind(err, mailbox.NotFound) {
		return nil, err
	}
	if len(places) > 0 {
		ops = append(ops, mailbox.MarkMessage{Message: ask.Mail, Add: []imap.Flag{imap.FlagSeen, keywords[Answered]}})
	}
	if verb != "delete" {
		return ops, nil
	}
	away, err := a.throwAway(ctx, account, ask)
	return append(away, ops...), err
}

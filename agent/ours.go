package agent

import (
	"context"
	"encoding/json"

	"pizza/mailbox"
)

// Ours says what a message is that we wrote into an account, by our records: whoever
// appends or imports a message writes its header. ok is false for any other message, for
// a copy of one of ours that came back from a file, and when its records are gone.
func (a *Agent) Ours(ctx context.Context, account mailbox.AccountID, m *mailbox.Message) (ref MessageRef, ok bool, err error) {
	rec, err := a.store.Record(ctx, account, midKey(m.Structure.MessageID))
	if isKind(err, mailbox.NotFound) {
		return ref, false, nil
	}
	if err != nil {
		return ref, false, err
	}
	if err := json.Unmarshal(rec.Value, &ref); err != nil || !ref.Ours {
		return MessageRef{}, false, nil
	}
	switch {
	case ref.Message != 0:
		ok = ref.Message == m.ID
	case ref.Kind == KindStatus:
		ok = m.Tag == statusTag(ref.Run)
	case ref.Decision != "":
		d, _, err := a.loadDecision(ctx, account, ref.Decision)
		if err != nil && !isKind(err, mailbox.NotFound) {
			return MessageRef{}, false, err
		}
		ok = err == nil && d.Mail == m.ID
	}
	if !ok {
		return MessageRef{}, false, nil
	}
	return ref, true, nil
}

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pizza/mailbox"
)

// taken is the record of a submission, by which a repeat is known. It goes after
// keepRecords, and the record Sent with it.
type taken struct {
	Receipt mailbox.Receipt `json:"receipt"`
	At      time.Time       `json:"at"`
	Sent    string          `json:"sent,omitempty"` // key of the sentCopy
}

// noIDRepeat is how long a mail without a Message-ID of its own counts as a repeat.
const noIDRepeat = 10 * time.Minute

// repeated returns the receipt of the first time.
func (a *Agent) repeated(ctx context.Context, in *intake) (mailbox.Receipt, bool, error) {
	in.before = 0
	rec, err := a.store.Record(ctx, in.account(), in.repeat)
	if isKind(err, mailbox.NotFound) {
		return mailbox.Receipt{}, false, nil
	}
	if err != nil {
		return mailbox.Receipt{}, false, err
	}
	t, err := decode[taken](rec)
	if err != nil {
		return t.Receipt, false, err
	}
	if in.sub.NoID && a.now().Sub(t.At) >= noIDRepeat {
		in.before = rec.Version
		return mailbox.Receipt{}, false, nil
	}
	a.log.InfoContext(ctx, "submitted again", "login", in.sub.Identity.Login, "task", t.Receipt.Task)
	return t.Receipt, true, nil
}

// repeatKey names the mail with its recipients: login, recipients and bytes, the
// Message-ID among them. What the door adds is left out.
func (in *intake) repeatKey() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%v\x00", in.sub.Identity.Login, in.sub.NoID)
	keys := make([]string, 0, len(in.targets))
	for _, t := range in.targets {
		keys = append(keys, t.key())
	}
	slices.Sort(keys)
	fmt.Fprintf(h, "%s\x00", strings.Join(keys, "\x00"))
	for _, f := range in.fields {
		switch name := strings.ToLower(f.Name); {
		case name == "received", name == "date", name == "message-id" && in.sub.NoID:
		default:
			h.Write(f.Raw)
		}
	}
	start := in.structure.Root.Header.End
	if _, err := io.Copy(h, io.NewSectionReader(in.body, start, in.body.Size()-start)); err != nil {
		return "", err
	}
	return "taken/" + hex.EncodeToString(h.Sum(nil)[:20]), nil
}

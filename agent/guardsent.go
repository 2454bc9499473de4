package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// sentCopy says which message is the copy in Sent of a mail with a Message-ID.
type sentCopy struct {
	Message mailbox.MessageID `json:"message"`
	Ours    bool              `json:"ours,omitempty"`    // filed by Submit, not by a program
	Touched bool              `json:"touched,omitempty"` // the person changed its flags since
}

func sentKey(messageID string) string { return "sent/" + hash16(messageID) }

func (c sentCopy) put(key string, version uint64) mailbox.PutRecord {
	return mailbox.PutRecord{Key: key, Version: version, Value: mustJSON(c)}
}

// sentCopy is a program's own copy of a mail it has sent, or is about to: the one
// that the server filed goes, if nobody touched it. The record goes by itself: what the
// program copies was perhaps sent elsewhere, and no submission comes.
func (r *review) sentCopy(in incoming) {
	if in.header == "" {
		return
	}
	key := sentKey(in.header)
	rec, found := r.view.Record(key)
	var c sentCopy
	known := found && json.Unmarshal(rec.Value, &c) == nil
	switch {
	case known && c.Message == in.id:
		return // it comes back
	case known && c.Ours && r.a.opt.Account(r.actor.Login).SentCopy == SentServer:
		return // ours is the one that counts
	case known && c.Ours && r.untouched(c):
		r.after = append(r.after, mailbox.RemoveEntry{Message: c.Message, Mailbox: Sent, IfPresent: true})
	}
	r.after = append(r.after, r.a.passing(sentCopy{Message: in.id}.put(key, rec.Version))...)
}

// untouched reports whether our copy lies in Sent as we put it there.
func (r *review) untouched(c sentCopy) bool {
	if c.Touched {
		return false
	}
	for _, p := range r.view.Places(c.Message) {
		if p.Mailbox == Sent {
			return !p.Entry.Deleted
		}
	}
	return false
}

// touchSent notes that the person changed flags of a copy that we filed: from now on
// it is theirs.
func (r *review) touchSent(op mailbox.StoreFlags, it mailbox.ActItem) {
	if !changesFlags(op, it.Flags) {
		return
	}
	header := r.view.MessageID(it.Message)
	if header == "" {
		return
	}
	key := sentKey(header)
	rec, found := r.view.Record(key)
	var c sentCopy
	if !found || json.Unmarshal(rec.Value, &c) != nil || c.Message != it.Message || !c.Ours || c.Touched {
		return
	}
	c.Touched = true
	r.after = append(r.after, c.put(key, rec.Version))
}

// changesFlags reports whether op changes flags other than \Deleted, which belongs to
// the entry.
func changesFlags(op mailbox.StoreFlags, have []imap.Flag) bool {
	holds := func(list []imap.Flag, f imap.Flag) bool {
		return slices.ContainsFunc(list, func(o imap.Flag) bool { return strings.EqualFold(string(o), string(f)) })
	}
	for _, f := range op.Flags {
		if !strings.EqualFold(string(f), string(imap.FlagDeleted)) && holds(have, f) == (op.Op == imap.StoreFlagsDel) {
			return true
		}
	}
	return op.Op == imap.StoreFlagsSet && slices.ContainsFunc(have, func(f imap.Flag) bool { return !holds(op.Flags, f) })
}

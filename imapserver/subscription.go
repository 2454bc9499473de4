package imapserver

import (
	"encoding/json"
	"slices"

	"pizza/mailbox"
)

const (
	// absentKey is the record that holds the names which are subscribed although no
	// mailbox has them. The subscription of a mailbox is part of the mailbox, and goes
	// with it when it is renamed.
	absentKey = "imap/subscribed"
	// maxAbsent is how many such names an account may have.
	maxAbsent = 1000
)

// absent are subscribed names without a mailbox, as stored.
type absent struct {
	names   []string
	version uint64
}

func (c *conn) absent() (a absent, err error) {
	rec, err := c.srv.opt.Store.Record(c.ctx, c.ident.Account, absentKey)
	if isKind(err, mailbox.NotFound) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	a.version = rec.Version
	if err := json.Unmarshal(rec.Value, &a.names); err != nil {
		return a, &mailbox.Error{Op: "subscriptions", Kind: mailbox.Internal, Err: err}
	}
	return a, nil
}

// changeAbsent adds a name or takes it away, in one Tx with ops.
func (c *conn) changeAbsent(name string, on bool, ops ...mailbox.Op) error {
	for tries := 0; ; tries++ {
		a, err := c.absent()
		if err != nil {
			return err
		}
		change, err := a.change(name, on)
		if err != nil {
			return err
		}
		if all := append(slices.Clip(ops), change...); len(all) > 0 {
			_, err = c.commit(all...)
		}
		if tries == 5 || !isKind(err, mailbox.Conflict) {
			return err
		}
	}
}

// change returns the op that adds a name or takes it away, none when it is so already.
func (a absent) change(name string, on bool) ([]mailbox.Op, error) {
	at, there := slices.BinarySearch(a.names, name)
	switch {
	case there == on:
		return nil, nil
	case !on:
		a.names = slices.Delete(a.names, at, at+1)
	case len(a.names) >= maxAbsent:
		return nil, &mailbox.Error{Op: "subscribe", Kind: mailbox.TooLarge, Code: "LIMIT", Text: "Too many subscriptions to names that no mailbox has: unsubscribe from some"}
	default:
		if _, err := mailbox.CleanName(name); err != nil {
			return nil, err
		}
		a.names = slices.Insert(a.names, at, name)
	}
	if len(a.names) == 0 {
		return []mailbox.Op{mailbox.DeleteRecord{Key: absentKey, Version: a.version}}, nil
	}
	value, err := json.Marshal(a.names)
	if err != nil {
		return nil, err
	}
	return []mailbox.Op{mailbox.PutRecord{Key: absentKey, Version: a.version, Value: value}}, nil
}

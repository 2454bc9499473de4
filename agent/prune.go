package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"pizza/mailbox"
)

const (
	// keepRecords is how long a record is kept that only tells a repeat from something
	// new. A client that has not tried again for so long does not.
	keepRecords = 30 * 24 * time.Hour
	// pruneBatch is how many records one commit removes.
	pruneBatch = 256
)

// passing puts a record that goes by itself when keepRecords are over, at the end of
// that day in UTC. A day has one due entry however many records it has, and nothing else
// is looked at when it comes. A record that is put again goes on the later day.
func (a *Agent) passing(put mailbox.PutRecord) []mailbox.Op {
	at := a.now().UTC().Add(keepRecords).Truncate(24 * time.Hour).Add(24 * time.Hour)
	day := at.Format(time.DateOnly)
	put.Index = append(slices.DeleteFunc(slices.Clone(put.Index), isPruneIndex), indexPrune+day)
	return []mailbox.Op{put, mailbox.PutDue{Due: mailbox.Due{Kind: DuePrune, Key: day, At: at}}}
}

func isPruneIndex(key string) bool { return strings.HasPrefix(key, indexPrune) }

// prune removes the records of a day, and which message was the copy in Sent with them.
// One that is still needed stays for another keepRecords.
func (a *Agent) prune(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	recs, err := a.store.Lookup(ctx, account, indexPrune+due.Key)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(recs, pruneBatch) {
		var ops []mailbox.Op
		for _, rec := range batch {
			needed, err := a.awaited(ctx, account, rec.Key, rec.Value)
			if err != nil {
				return err
			}
			if needed {
				ops = append(ops, a.passing(mailbox.PutRecord{Key: rec.Key, Version: rec.Version, Value: rec.Value, Index: rec.Index})...)
				continue
			}
			ops = append(ops, mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version})
			var t taken
			if json.Unmarshal(rec.Value, &t) == nil && t.Sent != "" { // a damaged one goes as well
				ops = append(ops, mailbox.DeleteRecord{Key: t.Sent})
			}
		}
		if err := a.commit(ctx, account, ops...); err != nil {
			return err
		}
	}
	return a.dropDue(ctx, account, due)
}

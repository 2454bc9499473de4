package agent

import (
	"encoding/json"
	"fmt"

	"pizza/mailbox"
)

// mustJSON encodes a type of ours.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("agent: %T does not encode: %v", v, err)) // a type of ours, never input
	}
	return b
}

// decode reads a record of ours.
func decode[T any](rec mailbox.Record) (T, error) {
	var v T
	if err := json.Unmarshal(rec.Value, &v); err != nil {
		return v, fmt.Errorf("agent: decode %s: %w", rec.Key, err)
	}
	return v, nil
}

// appendOp puts events at the end of a run's journal, which is at expect.
func appendOp(run string, expect uint64, events ...Event) mailbox.Append {
	add := mailbox.Append{Stream: runKey(run), Expect: expect}
	for _, e := range events {
		add.Events = append(add.Events, encodeEvent(e))
	}
	return add
}

// runPut writes a run's record with the index keys of its state.
func runPut(r Run, version uint64) mailbox.PutRecord {
	index := []string{indexOfTask + r.Task}
	if !r.State.Ended() {
		index = append(index, indexLiveRuns)
		if r.State == Waiting {
			index = append(index, indexWaitingRuns)
		}
		if r.child() {
			index = append(index, indexWorkers+r.Task)
		}
	}
	if r.State == Waiting && r.For == forMonth {
		index = append(index, indexMonth)
	}
	if r.Refused != "" {
		index = append(index, indexRefused+r.Refused)
	}
	if r.Status != 0 {
		index = append(index, fmt.Sprint(indexOfMessage, uint64(r.Status)))
	}
	return mailbox.PutRecord{Key: runKey(r.ID), Version: version, Value: mustJSON(r), Index: index}
}

// refPut writes what a mail of ours belongs to. Its Message-ID is fresh, so any
// record of that key is an earlier try of the same commit.
func refPut(messageID string, ref MessageRef) mailbox.PutRecord {
	put := mailbox.PutRecord{Key: midKey(messageID), Any: true, Value: mustJSON(ref)}
	if ref.Task != "" {
		put.Index = []string{indexMails + ref.Task}
	}
	return put
}

// statusTag is the tag of a run's status message, for the guard.
func statusTag(run string) string { return "status:" + run }

// runHold keeps a message alive as a run's input.
func runHold(run string) string { return "run/" + run }

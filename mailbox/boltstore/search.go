package boltstore

import (
	"context"
	"log/slog"

	"pizza/internal/textindex"
	"pizza/mailbox"
)

// await waits until the index is open, or will not open.
func (x *indexer) await(ctx context.Context) error {
	select {
	case <-x.loaded:
		return nil
	default:
		x.kick()
	}
	select {
	case <-x.loaded:
		return nil
	case <-x.stopped:
		return nil
	case <-ctx.Done():
		return ended("index", ctx.Err())
	}
}

// Lacking asks the index.
func (s *Store) Lacking(ctx context.Context, id mailbox.AccountID, in mailbox.TextIn, text string) (*mailbox.Contents, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	x := a.search
	if err := x.await(ctx); err != nil || x.index == nil {
		return nil, err
	}
	zone := textindex.Message
	if in == mailbox.InEnvelope {
		zone = textindex.Envelope
	}
	out := &mailbox.Contents{}
	known, err := x.index.Lacking(text, zone, out.Add)
	if err != nil {
		a.log.Warn("text index is damaged, a part of it is made again", slog.Any("err", err))
		x.kick()
	}
	if !known {
		return nil, nil
	}
	return out, nil
}

// CatchUp waits until the text index knows all that is committed now, and hurries it.
func (s *Store) CatchUp(ctx context.Context, id mailbox.AccountID) error {
	a, err := s.account(ctx, id)
	if err != nil {
		return err
	}
	x := a.search
	x.hurried.Add(1)
	defer x.hurried.Add(-1)
	if err := x.await(ctx); err != nil {
		return err
	}
	if x.index == nil {
		return fail("index", mailbox.Transient, string(id), "there is no text index")
	}
	x.kick()
	target := x.committed.Load()
	for {
		x.mu.Lock()
		progress, fault := x.progress, x.fault
		x.mu.Unlock()
		if from, _ := x.index.Gap(); from > target {
			return nil
		}
		if fault != nil {
			return wrap("index", fault)
		}
		select {
		case <-progress:
		case <-x.stopped:
			return mailbox.ErrClosed
		case <-ctx.Done():
			return ended("index", ctx.Err())
		}
	}
}

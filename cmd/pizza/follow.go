package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"pizza/agent"
	"pizza/mailbox"
)

// Events tells what happens in what id names, from its beginning; without an id in all
// tasks, from now on. It returns when ctx ends or fn does not return nil.
func (a *app) Events(ctx context.Context, account, id string, fn func(agent.Activity) error) error {
	who, err := a.identity(ctx, account)
	if err != nil {
		return err
	}
	w, err := a.agent.Watch(ctx, who.Account, id)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		list, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for _, act := range list {
			if err := fn(act); err != nil {
				return err
			}
		}
	}
}

// serveEvents streams what happens, one JSON object a line.
func serveEvents(s service) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		if id != "" { // what is wrong with it has to be said before the stream begins
			if _, err := s.Show(r.Context(), r.PathValue("account"), id); err != nil {
				answer(w, r, nil, func(context.Context) (any, error) { return nil, err })
				return
			}
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		control, enc := http.NewResponseController(w), json.NewEncoder(w)
		_ = control.Flush() // the other end is gone: the first line tells
		_ = s.Events(r.Context(), r.PathValue("account"), id, func(act agent.Activity) error {
			return errors.Join(enc.Encode(act), control.Flush())
		})
	}
}

// errGone: the server ended while it told what happens.
var errGone = errors.New("the server has gone")

func (c *controlClient) Events(ctx context.Context, account, id string, fn func(agent.Activity) error) error {
	path := accountPath(account, "events")
	if id != "" {
		path += "?" + url.Values{"id": {id}}.Encode()
	}
	resp, err := c.do(ctx, "GET", path, nil)
	if err != nil {
		return goneUnless(ctx, err)
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var act agent.Activity
		if err := dec.Decode(&act); err != nil {
			return goneUnless(ctx, err)
		}
		if err := fn(act); err != nil {
			return err
		}
	}
}

// goneUnless is err as it is told: a broken connection is a server that has gone.
func goneUnless(ctx context.Context, err error) error {
	var me *mailbox.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &me):
		return err
	}
	return errGone
}

// following is a `show --follow`.
type following struct {
	cmd     *cobra.Command
	g       *globals
	id      string
	through bool // also past decisions

	printed map[string]uint64 // last line by run
	run     string            // whose lines were printed last
}

// errRests ends the stream: the task rests.
var errRests = errors.New("rests")

// follow prints what happens until the task rests, whatever becomes of the server
// meanwhile.
func (f *following) follow(s service) error {
	f.printed = map[string]uint64{}
	if shown, err := s.Show(f.cmd.Context(), f.g.account, f.id); err != nil {
		return err
	} else if shown.Task == "" {
		return printShown(f.cmd.OutOrStdout(), shown)
	}
	for {
		out, err := f.until(s)
		if err == nil {
			return told(f.cmd, f.id, out)
		}
		if !errors.Is(err, errGone) {
			return err
		}
		fmt.Fprintln(f.cmd.ErrOrStderr(), "pizza: the server has gone; waiting for it to come back (Ctrl-C ends this)")
		back, err := f.back()
		if err != nil {
			return err
		}
		defer back.Close()
		fmt.Fprintln(f.cmd.ErrOrStderr(), "pizza: the server is back")
		s = back
	}
}

// until prints until the task rests or the server has gone.
func (f *following) until(s service) (out outcome, err error) {
	ctx := f.cmd.Context()
	if _, alone := s.(*app); alone { // nothing happens: tell what there is
		shown, err := s.Show(ctx, f.g.account, f.id)
		if err != nil {
			return out, err
		}
		if out, rests := f.rests(shown); rests {
			return out, printShown(f.cmd.OutOrStdout(), shown)
		}
		return out, fmt.Errorf("--follow: %w", errNoServer)
	}
	err = s.Events(ctx, f.g.account, f.id, func(act agent.Activity) error {
		if act.Seq > 0 {
			return f.line(act)
		}
		if !act.State.Ended() && act.State != agent.Waiting {
			return nil
		}
		shown, err := s.Show(ctx, f.g.account, f.id)
		if err != nil {
			return goneUnless(ctx, err)
		}
		// Show may know of lines that the stream has yet to tell.
		for _, run := range shown.Runs {
			for _, l := range run.Lines {
				if err := f.line(agent.Activity{Run: run.ID, Worker: run.Names(), Seq: l.Seq, At: l.At, Text: l.Text}); err != nil {
					return err
				}
			}
		}
		var rests bool
		if out, rests = f.rests(shown); rests {
			return errRests
		}
		return nil
	})
	if errors.Is(err, errRests) {
		err = nil
	}
	return out, err
}

func (f *following) rests(shown agent.Shown) (outcome, bool) {
	out, rests := rest(shown)
	return out, rests && !(f.through && out.State == agent.Waiting)
}

// line prints a line once, with the run's name above where it changes and a worker's in front.
func (f *following) line(act agent.Activity) error {
	if act.Seq <= f.printed[act.Run] {
		return nil
	}
	f.printed[act.Run] = act.Seq
	w := f.cmd.OutOrStdout()
	if f.run != act.Run {
		f.run = act.Run
		if _, err := fmt.Fprintf(w, "run %s\n", act.Run); err != nil {
			return err
		}
	}
	text := act.Text
	if act.Worker != "" {
		text = act.Worker + ": " + text
	}
	return printLine(w, agent.Line{Seq: act.Seq, At: act.At, Text: text})
}

func printLine(w io.Writer, l agent.Line) error {
	_, err := fmt.Fprintf(w, "  %s  %s\n", l.At.Local().Format("15:04:05"), visible(l.Text))
	return err
}

// lookEvery is how often a server that has gone is looked for.
const lookEvery = 300 * time.Millisecond

// back waits for a server. It does not open the data root itself: that would stand in the
// server's way.
func (f *following) back() (service, error) {
	root, err := f.g.root()
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if c, err := dialControl(root); err == nil {
			return c, nil
		}
		select {
		case <-tick.C:
		case <-f.cmd.Context().Done():
			return nil, f.cmd.Context().Err()
		}
	}
}

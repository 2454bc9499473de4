package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

const (
	maxEarlierRuns  = 20       // of a thread that the model is told
	maxEarlierBytes = 96 << 10 // of their text, newest first; of a small window a quarter
)

// whyNoModel keeps the words of who looks models up; what it does not know by class is
// a fault of the settings, which trying again does not mend.
func whyNoModel(err error, model string) error {
	var pe *providers.Error
	switch {
	case errors.As(err, &pe), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case err != nil:
		return &providers.Error{Class: providers.Invalid, Message: err.Error(), Err: err}
	}
	return &providers.Error{Class: providers.Invalid, Message: "the model " + model + " is not set up"}
}

// info is what is known of a model by name; false for one that cannot be had now.
func (a *Agent) info(ctx context.Context, name string) (providers.Info, bool) {
	m, err := a.opt.Models.Model(ctx, name)
	if err != nil || m == nil {
		return providers.Info{}, false
	}
	return m.Info(), true
}

// resolve looks the run's model up, once a session that finds it.
func (s *session) resolve(ctx context.Context) {
	if s.model != nil {
		return
	}
	m, err := s.a.opt.Models.Model(ctx, s.run.Model)
	if err != nil || m == nil {
		s.noModel = whyNoModel(err, s.run.Model)
		return
	}
	s.model = m
}

// request is the next model request of the session, and how many bytes of text it has.
func (s *session) request(ctx context.Context) (providers.Request, int, error) {
	if s.resolve(ctx); s.model == nil {
		return providers.Request{}, 0, nil // launchModel tells why there is none
	}
	thread := strings.Join(append([]string{string(s.account), s.run.Task}, s.run.Path...), "/")
	if s.st.Context.Cut != nil {
		req := s.st.digest(thread)
		req.MaxTokens = s.st.room()
		return req, 0, nil
	}
	inputs := map[mailbox.MessageID][]providers.Part{}
	for _, t := range s.st.Turns {
		if t.Inbound == nil {
			continue
		}
		in, err := s.input(ctx, *t.Inbound)
		if err != nil {
			return providers.Request{}, 0, err
		}
		inputs[t.Inbound.Message] = in.parts
		s.foreign = s.foreign || in.foreign
	}
	if s.prior == nil {
		prior, err := s.earlier(ctx)
		if err != nil {
			return providers.Request{}, 0, err
		}
		s.prior = prior
	}
	req, sent := s.talk.next(projection{
		State: s.st, Earlier: s.prior, Inputs: inputs, Info: s.model.Info(), Thread: thread,
	})
	req.MaxTokens = s.st.room()
	return req, sent, checkPairs(req)
}

// input reads a mail of the task once a session.
func (s *session) input(ctx context.Context, in Inbound) (*input, error) {
	if got, ok := s.inputs[in.Message]; ok {
		return got, nil
	}
	got, err := s.a.readInput(ctx, s.account, in)
	if err != nil {
		return nil, err
	}
	s.inputs[in.Message] = got
	return got, nil
}

// earlier is the thread before this run: for each run the mails as text, and the
// answer. Calls of earlier runs are not told again. Each run has its answer, so that
// the newest user message is this run's alone.
func (s *session) earlier(ctx context.Context) ([]providers.Message, error) {
	prior := []providers.Message{} // not nil: read
	if s.run.child() {
		return prior, nil // it has its prompt, and nothing else
	}
	size, most := 0, maxEarlierBytes
	if w := s.st.Context.Window; w > 0 {
		most = min(most, w)
	}
	runs, err := s.lineage(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range runs {
		turns, err := s.earlierRun(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, m := range turns {
			for _, p := range m.Parts {
				size += len(p.Text)
			}
		}
		if size > most {
			break
		}
		prior = append(turns, prior...)
	}
	return prior, nil
}

// errEnough ends the reading of a journal.
var errEnough = errors.New("enough")

// earlierRun is one earlier run as a pair of messages. A journal that cannot be read
// is told, and stops nobody.
func (s *session) earlierRun(ctx context.Context, p past) ([]providers.Message, error) {
	user := providers.Message{Role: providers.User}
	answer := "(This ended without an answer.)"
	if p.seq > 0 {
		answer = "(This was still being worked on when the thread branched off here.)"
	}
	err := s.a.store.Events(ctx, s.account, runKey(p.run), 1, func(seq uint64, b []byte) error {
		if p.seq > 0 && seq > p.seq {
			return errEnough
		}
		e, err := decodeEvent(b)
		switch {
		case err != nil:
			return nil
		case e.Inbound != nil:
			in, err := s.a.readInput(ctx, s.account, *e.Inbound)
			if err != nil {
				return err
			}
			user.Parts = append(user.Parts, in.parts...)
			s.foreign = s.foreign || in.foreign
		case e.Reply != nil && e.Reply.Foreign, e.ToolStart != nil:
			s.foreign = true // its answer may be made of that
		case e.Finished != nil && e.Finished.Text != "":
			answer = e.Finished.Text
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if len(user.Parts) == 0 {
		user.Parts = []providers.Part{{Kind: providers.Text, Text: "(An earlier mail.)"}}
	}
	return []providers.Message{user, {Role: providers.Assistant, Parts: []providers.Part{{Kind: providers.Text, Text: answer}}}}, err
}

// workspace is the run's files for a tool. Files that a mail cannot give (it is gone)
// are missing, which the tool then says.
func (s *session) workspace(ctx context.Context) (workspace, error) {
	var w workspace
	used := map[string]bool{}
	mails, err := s.mails(ctx)
	if err != nil {
		return w, err
	}
	for _, in := range mails {
		got, err := s.input(ctx, in)
		if err != nil {
			return w, err
		}
		for _, f := range got.files {
			f.Name = uniqueName(f.Name, used)
			w.in = append(w.in, f)
		}
	}
	ctx = context.WithoutCancel(ctx)
	for _, f := range s.st.Files() {
		w.out = append(w.out, tools.File{Name: f.Name, Size: f.Blob.Size, Open: func() (io.ReadCloser, error) {
			return s.a.openBlob(ctx, s.account, f.Blob)
		}})
	}
	return w, nil
}

// mails are all mails of the task: those of this run, then those of earlier runs,
// newest first.
func (s *session) mails(ctx context.Context) ([]Inbound, error) {
	if s.before == nil {
		s.before = []Inbound{} // not nil: read
		runs, err := s.lineage(ctx)
		if err != nil {
			s.before = nil
			return nil, err
		}
		for _, p := range runs {
			rec, err := s.a.store.Record(ctx, s.account, runKey(p.run))
			if isKind(err, mailbox.NotFound) {
				continue
			}
			if err != nil {
				s.before = nil
				return nil, err
			}
			var run Run
			if json.Unmarshal(rec.Value, &run) == nil {
				s.before = append(s.before, slices.DeleteFunc(run.Inputs, func(m Inbound) bool {
					return !p.at.IsZero() && m.Date.After(p.at)
				})...)
			}
		}
	}
	return append(slices.Clip(s.run.Inputs), s.before...), nil
}

// stageResult stages what a tool's outcome holds beside its text: a result that is
// too long for the journal, and what it put to /out.
func (s *session) stageResult(ctx context.Context, end *EvToolEnd, out tools.Outcome) ([]mailbox.Blob, error) {
	ctx = context.WithoutCancel(ctx)
	var blobs []mailbox.Blob
	stage := func(b []byte) (mailbox.Blob, error) {
		blob, err := s.a.store.Stage(ctx, s.account, bytes.NewReader(b), 0)
		if err == nil {
			blobs = append(blobs, blob)
		}
		return blob, err
	}
	var errs []error
	if limit := share(s.st.Context.Window); len(end.Content) > limit {
		blob, err := stage([]byte(end.Content))
		errs = append(errs, err)
		handle := hasTool(s.st.Started.Tools, readResultName)
		end.Blob, end.Content = blob.ID, excerpt(end.Call, end.Content, limit, handle)
	}
	for _, f := range out.Out {
		change := OutChange{Name: f.Name, Deleted: f.Deleted}
		if !f.Deleted {
			var err error
			change.Blob, err = stage(f.Content)
			errs = append(errs, err)
		}
		end.Out = append(end.Out, change)
	}
	return slices.Clip(blobs), errors.Join(errs...)
}

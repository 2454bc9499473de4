package agent

import (
	"strconv"

	"pizza/internal/otel"
	"pizza/mailbox"
)

// Spans follow the GenAI conventions of OpenTelemetry: invoke_agent for a run, chat for a
// model call, execute_tool for a tool call. They hold names, ids, counts and times, and
// nothing of a mail. Their ids are functions of the run's, so that a run that pauses for
// days, in several processes, is one trace; a worker's run lies in that of the run that
// mail began.

// span sends a span of a run, when somebody takes them.
func (a *Agent) span(account mailbox.AccountID, run Run, key string, s otel.Span) {
	if a.opt.Span == nil {
		return
	}
	s.Trace = otel.TraceID(string(account), topOf(run.ID))
	s.ID = otel.SpanID(string(account), run.ID, key)
	switch {
	case key != "":
		s.Parent = otel.SpanID(string(account), run.ID, "")
	case run.child():
		s.Parent = otel.SpanID(string(account), parentOf(run.ID), "")
	}
	s.Attrs = append(s.Attrs, otel.String("gen_ai.conversation.id", run.Task), otel.String("pizza.run", run.ID))
	a.opt.Span(s)
}

// runSpan tells a run that ended.
func (a *Agent) runSpan(account mailbox.AccountID, run Run, st *State) {
	if a.opt.Span == nil {
		return
	}
	s := otel.Span{Name: "invoke_agent pizza", Kind: otel.Internal, Start: run.Created, End: a.now(), Attrs: []otel.Attr{
		otel.String("gen_ai.operation.name", "invoke_agent"), otel.String("gen_ai.agent.name", "pizza"),
		otel.String("gen_ai.request.model", run.Model), otel.String("pizza.state", string(run.State)),
	}}
	if run.State == Failed {
		s.Error = "failed"
		s.Attrs = append(s.Attrs, otel.String("error.type", run.Error))
	}
	if st != nil {
		s.Attrs = append(s.Attrs, otel.Int("gen_ai.usage.input_tokens", st.Usage.Input), otel.Int("gen_ai.usage.output_tokens", st.Usage.Output))
	}
	a.span(account, run, "", s)
}

func (s *session) modelSpan(out outcome, provider, model, class string) {
	if s.a.opt.Span == nil {
		return
	}
	u, end := out.reply.Usage, s.a.now()
	sp := otel.Span{Name: "chat " + model, Kind: otel.Client, Start: end.Add(-out.took), End: end, Attrs: []otel.Attr{
		otel.String("gen_ai.operation.name", "chat"), otel.String("gen_ai.provider.name", provider),
		otel.String("gen_ai.request.model", model),
	}}
	if class != "ok" {
		sp.Error = class
		sp.Attrs = append(sp.Attrs, otel.String("error.type", class))
	} else {
		sp.Attrs = append(sp.Attrs, otel.Int("gen_ai.usage.input_tokens", u.Input), otel.Int("gen_ai.usage.output_tokens", u.Output),
			otel.Strings("gen_ai.response.finish_reasons", string(out.reply.Stop)))
		if u.CacheRead > 0 {
			sp.Attrs = append(sp.Attrs, otel.Int("gen_ai.usage.cache_read.input_tokens", u.CacheRead))
		}
		if u.CacheWrite > 0 {
			sp.Attrs = append(sp.Attrs, otel.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite))
		}
	}
	s.a.span(s.account, s.run, "model/"+strconv.Itoa(out.n), sp)
}

func (s *session) toolSpan(c Call, out outcome, name, status string) {
	if s.a.opt.Span == nil {
		return
	}
	end := s.a.now()
	sp := otel.Span{Name: "execute_tool " + name, Kind: otel.Internal, Start: end.Add(-out.took), End: end, Attrs: []otel.Attr{
		otel.String("gen_ai.operation.name", "execute_tool"), otel.String("gen_ai.tool.name", name),
		otel.String("gen_ai.tool.call.id", c.ID), otel.String("gen_ai.tool.type", "function"),
	}}
	if status != endOK {
		sp.Error = status
		sp.Attrs = append(sp.Attrs, otel.String("error.type", status))
	}
	s.a.span(s.account, s.run, "tool/"+c.ID+"/"+strconv.Itoa(out.attempt), sp)
}

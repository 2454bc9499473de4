package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"pizza/internal/tools"
	"pizza/mailbox"
)

// A long result goes to the model as its two ends and a handle, the id of its call; the
// whole lies in a blob. read_result reads it in pieces. The handle is a name in the
// journal: it survives restarts and compactions.

const (
	// maxShown is how many bytes of a result the model is shown at the most.
	maxShown       = 16 << 10
	minShown       = 1 << 10
	readResultName = "read_result"
)

// share is how long one thing may be, in bytes, that a model with a window of so many
// tokens is told: about an eighth of it. 0: it has no limit.
func share(window int) int {
	if window <= 0 {
		return maxShown
	}
	return min(max(window/2, minShown), maxShown)
}

// batchLimit is how long each result of a batch may be, in bytes: all of them together
// take about a third of the window at the most.
func batchLimit(calls []Call, window int) int {
	room, total := window/5*7, 0
	for i := range calls {
		if end := calls[i].End; end != nil {
			total += len(end.Content)
		}
	}
	if window <= 0 || total <= room {
		return maxResult + 1<<10 // what journals hold
	}
	return max(room/len(calls), 256)
}

// ends shortens text to about limit bytes: five eighths from its head, a quarter from its
// tail, on rune boundaries, with note between.
func ends(s string, limit int, note string) string {
	if len(s) <= limit {
		return s
	}
	head, tail := cutEnds(s, limit)
	return head + note + tail
}

func cutEnds(s string, limit int) (head, tail string) {
	head, tail = s[:limit*5/8], s[len(s)-limit/4:]
	for len(head) > 0 && !utf8.RuneStart(s[len(head)]) {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head, tail
}

// excerpt is a long result as the journal and the model hold it. handle: the run has
// read_result.
func excerpt(call, s string, limit int, handle bool) string {
	head, tail := cutEnds(s, limit)
	note := fmt.Sprintf("\n\n[Bytes %d to %d of %d are left out here; the result was too long.", len(head)+1, len(s)-len(tail), len(s))
	if handle {
		note += fmt.Sprintf(" %s {\"result\":%q,\"from\":%d} reads on.", readResultName, call, len(head)+1)
	} else {
		note += " Ask for a smaller part."
	}
	return head + note + "]\n\n" + tail
}

// shown is a result of a batch as the model is told it.
func (c *Call) shown(limit int, handle bool) string {
	note := "\n\n[A part is left out here; the results were too long together.]\n\n"
	if handle && len(c.End.Content) > limit {
		note = fmt.Sprintf("\n\n[A part is left out here; the results were too long together. %s {\"result\":%q} reads this one.]\n\n", readResultName, c.ID)
	}
	return ends(c.End.Content, limit, note)
}

// readResult reads results of the task's own runs.
var readResult = own{
	spec: tools.Spec{
		Name: readResultName,
		Description: "Read a piece of the result of an earlier call of this task, by the id of the call: results that were too long, or that are no longer told. " +
			"Bytes are counted from 1. A piece has at most 16 KB; the answer says how to go on. With find, it lists where a text occurs instead.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"result":{"type":"string","description":"Id of the call"},` +
			`"from":{"type":"integer","description":"First byte, counted from 1","minimum":1},` +
			`"to":{"type":"integer","description":"Last byte, included","minimum":1},` +
			`"find":{"type":"string","description":"Text to look for, exactly as it is; from and to bound the search"}},` +
			`"required":["result"],"additionalProperties":false}`),
	},
	plan: func(_ *Agent, c tools.Call) tools.Plan {
		p := tools.Plan{Class: tools.ReadOnly, Rule: tools.Allow, Effect: tools.Reads}
		piece, err := parsePiece(c.Args)
		if err != nil {
			p.Rule, p.Reason = tools.Invalid, "The arguments of read_result cannot be used: "+err.Error()
			return p
		}
		p.Sentence = "Read the result of call " + tools.Show(piece.Result) + "."
		return p
	},
	run: func(ctx context.Context, a *Agent, account mailbox.AccountID, run Run, c tools.Call) tools.Outcome {
		out, err := a.readPiece(ctx, account, run, c.Args)
		if err != nil {
			return tools.Outcome{Error: true, Content: err.Error()}
		}
		return tools.Outcome{Content: out}
	},
}

// piece is what of a result is to be read.
type piece struct {
	Result string `json:"result"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Find   string `json:"find"`
}

func parsePiece(args json.RawMessage) (piece, error) {
	var p piece
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, err
	}
	switch {
	case p.Result == "":
		return p, errors.New("result is missing")
	case p.From < 0 || p.To < 0 || p.To > 0 && p.To < max(p.From, 1):
		return p, errors.New("from and to are no range")
	case len(p.Find) > 1000:
		return p, errors.New("find is longer than 1,000 bytes")
	}
	p.From = max(p.From, 1)
	return p, nil
}

// readPiece answers read_result. Its errors are for the model.
func (a *Agent) readPiece(ctx context.Context, account mailbox.AccountID, run Run, args json.RawMessage) (string, error) {
	p, err := parsePiece(args)
	if err != nil {
		return "", err
	}
	f, err := a.findResult(ctx, account, run, p.Result)
	if err != nil {
		return "", err
	}
	if f.end == nil {
		return "", fmt.Errorf("no call of this task has the id %s and a result", tools.Show(p.Result))
	}
	body, size, err := a.openResult(ctx, account, f.end)
	if err != nil {
		return "", err
	}
	defer body.Close()
	if p.From > max(size, 1) {
		return "", fmt.Errorf("the result has %d bytes", size)
	}
	if p.To == 0 || p.To > size {
		p.To = size
	}
	limit := int64(share(f.window)) - 512 // the note, too, is of the result
	if p.Find != "" {
		return p.search(body, size, limit)
	}
	return p.read(body, size, limit)
}

// found is a result, and the window of the run that asks.
type found struct {
	end    *EvToolEnd
	window int
}

// findResult looks for the result of a call: in the run itself, then in the runs of its
// task before it, newest first. A worker has its own run only.
func (a *Agent) findResult(ctx context.Context, account mailbox.AccountID, run Run, call string) (f found, err error) {
	runs := []string{run.ID}
	for n := runNumber(run.ID) - 1; n >= 1 && len(runs) < maxEarlierRuns; n-- {
		runs = append(runs, runID(run.Task, n))
	}
	mark := mustJSON(call)
	for _, id := range runs {
		err = a.store.Events(ctx, account, runKey(id), 1, func(seq uint64, b []byte) error {
			if seq > 1 && !(bytes.Contains(b, []byte(`"tool_result"`)) && bytes.Contains(b, mark)) {
				return ctx.Err()
			}
			e, err := decodeEvent(b)
			switch {
			case err != nil:
			case e.Started != nil && id == run.ID:
				f.window = e.Started.Window
			case e.ToolEnd != nil && e.ToolEnd.Call == call:
				f.end = e.ToolEnd
			}
			return nil
		})
		if err != nil && !isKind(err, mailbox.NotFound) {
			return f, err
		}
		if f.end != nil {
			break
		}
	}
	return f, nil
}

// openResult opens a whole result and says how long it is.
func (a *Agent) openResult(ctx context.Context, account mailbox.AccountID, end *EvToolEnd) (mailbox.Body, int64, error) {
	if end.Blob == "" {
		body := memory{strings.NewReader(end.Content)}
		return body, body.Size(), nil
	}
	body, err := a.store.OpenBlob(ctx, account, end.Blob)
	if isKind(err, mailbox.NotFound) {
		return nil, 0, errors.New("the result is no longer kept")
	}
	if err != nil {
		return nil, 0, err
	}
	return body, body.Size(), nil
}

// memory is a result that the journal holds.
type memory struct{ *strings.Reader }

func (memory) Close() error { return nil }

// read gives the bytes from..to, as many as limit.
func (p piece) read(r io.ReaderAt, size, limit int64) (string, error) {
	b, err := section(r, p.From-1, min(p.To-p.From+1, limit))
	if err != nil {
		return "", err
	}
	cut := len(b)
	for cut > 0 && cut > len(b)-utf8.UTFMax && p.From-1+int64(cut) < size && !utf8.Valid(b[:cut]) {
		cut--
	}
	if cut > 0 && utf8.Valid(b[:cut]) {
		b = b[:cut]
	}
	last := p.From - 1 + int64(len(b))
	if last >= size {
		return fmt.Sprintf("%s\n[bytes %d to %d of %d: the end]", b, p.From, last, size), nil
	}
	return fmt.Sprintf("%s\n[bytes %d to %d of %d; go on with \"from\":%d]", b, p.From, last, size, last+1), nil
}

const (
	searchStep = 256 << 10
	aroundHit  = 120 // bytes shown before and after a place
)

// search lists the places of a text within from..to, as many as limit bytes hold.
func (p piece) search(r io.ReaderAt, size, limit int64) (string, error) {
	var out strings.Builder
	find, hits := []byte(p.Find), 0
	for at := p.From - 1; at < p.To; {
		b, err := section(r, at, min(searchStep+int64(len(find))-1, p.To-at))
		if err != nil {
			return "", err
		}
		i := bytes.Index(b[:], find)
		if i < 0 {
			at += searchStep
			continue
		}
		hit := at + int64(i)
		from := max(0, hit-aroundHit)
		around, err := section(r, from, min(hit+int64(len(find))+aroundHit, size)-from)
		if err != nil {
			return "", err
		}
		line := fmt.Sprintf("byte %d: %s\n", hit+1, oneLine(strings.ToValidUTF8(string(around), "")))
		if int64(out.Len()+len(line)) > limit {
			return fmt.Sprintf("%s[%d places; go on with \"from\":%d]", out.String(), hits, hit+1), nil
		}
		out.WriteString(line)
		hits++
		at = hit + int64(len(find))
	}
	return fmt.Sprintf("%s[%d places in %d bytes]", out.String(), hits, size), nil
}

func section(r io.ReaderAt, from, n int64) ([]byte, error) {
	b := make([]byte, max(n, 0))
	got, err := r.ReadAt(b, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:got], err
}

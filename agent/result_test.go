package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pizza/internal/tools"
	"pizza/providers"
	"pizza/providers/providertest"
)

// lines is a text of n bytes in numbered lines.
func lines(n int) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %06d äöü\n", i)
	}
	return b.String()
}

// bigTool is a set with one tool, whose result is a text.
type bigTool struct{ text string }

func (b bigTool) Specs() []tools.Spec {
	return []tools.Spec{{Name: "big", Description: "Gives a long text.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}
}
func (b bigTool) Plan(c tools.Call) tools.Plan {
	if c.Name != "big" {
		return tools.Plan{Rule: tools.Invalid, Reason: "there is no tool " + c.Name}
	}
	return tools.Plan{Class: tools.ReadOnly, Rule: tools.Allow, Effect: tools.Reads, Sentence: "Make a long text."}
}
func (b bigTool) Run(ctx context.Context, _ tools.Workspace, _ tools.Call) tools.Outcome {
	return tools.Outcome{Content: b.text}
}

func resultOf(req providers.Request) string {
	m := req.Messages[len(req.Messages)-1]
	return m.Parts[len(m.Parts)-1].Result.Content
}

var goOnFrom = regexp.MustCompile(`"from":(\d+)\]?`)

// TestMegabyteResult: one result of a megabyte is shown with its ends, and can be read
// whole by its handle, in pieces that join without a gap.
func TestMegabyteResult(t *testing.T) {
	t.Parallel()
	whole := lines(1 << 20)
	var read strings.Builder
	from := 1
	m := providertest.Script(providertest.Calls(providertest.Call("b1", "big", `{}`)))
	n := 0
	piece := func(from int) providertest.Turn {
		n++
		return providertest.Calls(providertest.Call(fmt.Sprint("r", n), readResultName, fmt.Sprintf(`{"result":"b1","from":%d}`, from)))
	}
	step := func(req providers.Request) (providers.Reply, error) {
		got := resultOf(req)
		if len(got) > maxShown {
			return providers.Reply{}, fmt.Errorf("a result of %d bytes", len(got))
		}
		if n > 0 {
			text := got[:strings.LastIndex(got, "\n[bytes ")]
			if text != whole[from-1:from-1+len(text)] {
				return providers.Reply{}, fmt.Errorf("the piece from %d is not of the text", from)
			}
			read.WriteString(text)
		} else if !strings.HasPrefix(got, whole[:8<<10]) || !strings.HasSuffix(got, whole[len(whole)-2<<10:]) ||
			!strings.Contains(got, fmt.Sprintf("of %d are left out", len(whole))) || !strings.Contains(got, `read_result {"result":"b1"`) {
			return providers.Reply{}, fmt.Errorf("the excerpt: %.300s", got)
		}
		switch at := goOnFrom.FindAllStringSubmatch(got, -1); {
		case n == 0:
			from = 1
		case n == 4 || len(at) == 0: // enough
			return providertest.Say("read").Reply, nil
		default:
			from, _ = strconv.Atoi(at[len(at)-1][1])
		}
		return piece(from).Reply, nil
	}
	for range 5 {
		m.Append(providertest.Turn{Do: func(_ context.Context, req providers.Request) (providers.Reply, error) { return step(req) }})
	}
	o := newOffice(t, m, func(opt *Options) { opt.Tools = tools.Join(bigTool{whole}, opt.Tools) })
	r := o.send("read the long text")
	mails := o.ended(1)
	if err := m.Err(); err != nil || len(mails) != 1 || !strings.Contains(mails[0].raw, "read") || read.Len() < 40<<10 {
		t.Fatalf("%v; %d bytes read; %v", err, read.Len(), mails)
	}
	for _, e := range o.journal(r.Task + ".1") {
		if b := encodeEvent(e); len(b) > maxShown+4<<10 {
			t.Errorf("an event of %d bytes: %.200s", len(b), b)
		}
	}
	o.settledDown()
}

// TestReadResult asks for pieces as a model may, over a restart, in the next run of the
// thread, and of a thread that is not its own.
func TestReadResult(t *testing.T) {
	t.Parallel()
	whole := lines(100_000)
	ask := func(id, args string) providertest.Turn {
		return providertest.Calls(providertest.Call(id, readResultName, args))
	}
	m := providertest.Script(providertest.Calls(providertest.Call("b1", "big", `{}`)), providertest.Say("one"))
	o := newOffice(t, m, func(opt *Options) { opt.Tools = tools.Join(bigTool{whole}, opt.Tools) })
	r := o.send("make it", "Message-ID: <one@test>")
	o.ended(1)
	o.reopen(t)
	for i, tt := range []struct {
		args, want string
		bad        bool
	}{
		{`{"result":"b1","from":21,"to":39}`, whole[20:39] + "\n[bytes 21 to 39 of " + fmt.Sprint(len(whole)), false},
		{`{"result":"b1","find":"line 000100 "}`, fmt.Sprintf("byte %d: ", strings.Index(whole, "line 000100 ")+1), false},
		{`{"result":"b1","find":"nowhere"}`, "[0 places in ", false},
		{`{"result":"b1","from":99999999}`, "has " + fmt.Sprint(len(whole)) + " bytes", true},
		{`{"result":"b1","from":9,"to":3}`, "no range", true},
		{`{"result":"zz"}`, "no call of this task", true},
		{`{"result":"b1","lines":3}`, "lines", true},
		{`{}`, "result is missing", true},
	} {
		m.Append(ask(fmt.Sprint("q", i), tt.args), providertest.Say("ok").If(func(req providers.Request) error {
			res := req.Messages[len(req.Messages)-1].Parts[0].Result
			if !strings.Contains(res.Content, tt.want) || res.Error != tt.bad {
				return fmt.Errorf("%s: %v %.300s", tt.args, res.Error, res.Content)
			}
			return nil
		}))
		o.send("go on", fmt.Sprintf("Message-ID: <m%d@next>", i), "In-Reply-To: <one@test>")
		o.ended(i + 2)
	}
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	// Another task has no such result.
	m.Append(ask("x", `{"result":"b1"}`), providertest.Say("ok").If(func(req providers.Request) error {
		if res := req.Messages[len(req.Messages)-1].Parts[0].Result; !res.Error || strings.Contains(res.Content, "line 0") {
			return fmt.Errorf("%+v", res)
		}
		return nil
	}))
	if other := o.send("another task"); other.Task == r.Task {
		t.Fatal("the same task")
	}
	o.ended(10)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
}

// TestSearchFindsAcrossSteps: places lie where reads end, and all are found.
func TestSearchFindsAcrossSteps(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat(".", 3*searchStep))
	for _, at := range []int{0, searchStep - 3, 2*searchStep - 1, 3*searchStep - 6} {
		copy(text[at:], "needle")
	}
	p := piece{From: 1, To: int64(len(text)), Find: "needle"}
	got, err := p.search(strings.NewReader(string(text)), int64(len(text)), maxShown)
	if err != nil || strings.Count(got, "byte ") != 4 || !strings.Contains(got, fmt.Sprintf("byte %d:", searchStep-2)) || !strings.Contains(got, "[4 places") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestExcerptsAreWithinTheirLimit(t *testing.T) {
	t.Parallel()
	text := lines(64 << 10)
	for _, window := range []int{0, 8000, 20_000, 1 << 20} {
		got := excerpt("call_1", text, share(window), true)
		if len(got) > share(window) || plain(got) != got {
			t.Errorf("window %d: %d bytes of %d", window, len(got), share(window))
		}
	}
}

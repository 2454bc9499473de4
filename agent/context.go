package agent

import (
	"slices"

	"pizza/providers"
)

// Context is what the fold knows of the length of the conversation and of its compaction.
//
// The length is estimated: what the provider counted last, and since then bytes times the
// rate of that count. A compaction tells the turns up to a goal in fewer words, in one or
// more model calls (chunks) of which each is a step of the journal. The journal and
// State.Turns stay whole: only what the model is told changes.
type Context struct {
	Window  int    // tokens the model takes: as frozen, or less when it refused less; 0: it has no limit
	Upto    int    // turns before this one are told by Summary, their mails aside
	Summary string // of them
	Size    int    // bytes told of the turns

	Counted int     // tokens of a request that the provider counted last
	Told    int     // Size then
	Rate    float64 // tokens a byte then; 0: not counted yet

	Cut    *Cut // of the newest intent: it asks for a summary
	Goal   int  // of the compaction under way: it is done when Upto is there
	Before int  // estimate when that began
	Shrunk int  // how often its chunks were halved because the provider refused one
	Blank  int  // summaries in a row without text

	Fruitless int  // compactions in a row that freed under a fifth
	Judge     int  // estimate before the last compaction, until the provider has counted
	Spared    int  // Size when the owner said continue; 0: never
	Squeezed  bool // made shorter since the last reply, because the provider refused a request
	Resized   bool // the refusal made long results shorter: the same request is worth a call
	Asked     bool // the owner was asked since the last reply
	Stops     int  // replies in a row that the window cut off
}

// Cut is a part of the conversation that a compaction takes out: the turns up to Upto, as
// a piece of the way to Goal.
type Cut struct {
	Upto int `json:"upto"`
	Goal int `json:"goal"`
}

const (
	// defaultWindow is taken for a model whose window nobody knows, in tokens.
	defaultWindow = 128_000
	maxFruitless  = 2 // compactions in a row that free under a fifth until the owner is asked
	maxShrunk     = 3 // times that chunks are halved
	maxBlank      = 2 // blank summaries in a row that are asked again
)

// defaultRate is four bytes a token; what a provider counts is believed between an eighth
// of a token and a whole one a byte.
const defaultRate = 0.25

// rate is the tokens a byte.
func (c *Context) rate() float64 {
	if c.Rate == 0 {
		return defaultRate
	}
	return c.Rate
}

// bytes is how long a text of so many tokens is.
func (c *Context) bytes(tokens int) int { return int(float64(tokens) / c.rate()) }

// estimate is how many tokens the next request has.
func (c *Context) estimate() int {
	return max(0, c.Counted+int(float64(c.Size-c.Told)*c.rate()))
}

// open begins to count: what is frozen is in every request.
func (c *Context) open(e *EvStarted) {
	c.Window = max(0, e.Window)
	c.Counted = int(float64(sizeOfFrozen(e.System, e.Tools)) * defaultRate)
}

// count takes what a provider counted for a request of so many bytes. A count that cannot
// be, as of a proxy that says nothing, is replaced by the nearest that can.
func (c *Context) count(sent, tokens int) {
	switch {
	case sent > 0 && tokens > 0:
		tokens = min(max(tokens, sent/8), sent)
	case sent > 0:
		tokens = int(float64(sent) * c.rate())
	case tokens <= 0:
		return
	}
	if sent > 0 {
		c.Rate = float64(tokens) / float64(sent)
	}
	c.Counted, c.Told = tokens, c.Size
}

// replied is a reply to a request of so many bytes.
func (c *Context) replied(sent int, r *providers.Reply) {
	c.count(sent, r.Usage.Input)
	if c.Judge > 0 {
		c.Fruitless++
		if c.Counted*5 <= c.Judge*4 {
			c.Fruitless = 0
		}
		c.Judge = 0
	}
	c.Squeezed, c.Resized, c.Asked = false, false, false
	if r.Stop == providers.StopContext {
		c.Stops++
	} else {
		c.Stops = 0
	}
}

// refused is a call that the provider found too long: it takes less than was thought, and
// results are shown accordingly.
func (s *State) refused() {
	c := &s.Context
	if c.Cut != nil {
		c.Shrunk++
		return
	}
	est := c.estimate()
	if c.Window == 0 || est >= c.Window {
		return
	}
	c.Window = max(est, c.Window/8)
	s.Turns = slices.Clone(s.Turns)
	for i := c.Upto; i < len(s.Turns); i++ {
		s.resize(i)
	}
	c.Resized = c.estimate() < est/10*9
}

// resize is a turn that is told with another length.
func (s *State) resize(i int) {
	t := &s.Turns[i]
	was := t.Size
	t.Size = sizeOfTurn(t, s.Context.Window)
	s.Context.Size += t.Size - was
}

// makeRoom is call, or the compaction that comes before it.
func (s *State) makeRoom(call Todo) Todo {
	c := &s.Context
	switch {
	case c.Window == 0:
		return call
	case c.Goal > c.Upto && c.Blank > maxBlank && c.Asked:
		return Todo{Do: DoFail, Fail: FailWindow}
	case c.Goal > c.Upto && c.Blank > maxBlank:
		return Todo{Do: DoAsk, Limit: LimitContext}
	case c.Goal > c.Upto:
		return s.compact(call, c.Goal)
	case c.estimate() < c.Window/10*7:
		return call
	case c.Fruitless >= maxFruitless:
		return Todo{Do: DoAsk, Limit: LimitContext}
	case c.Spared > 0 && c.Size-c.Spared < c.bytes(c.Window/5):
		return call
	}
	goal := s.goal(c.bytes(c.Window / 5))
	if s.sizeBetween(c.Upto, goal) < c.bytes(c.Window/20) {
		return call // not worth a call yet
	}
	return s.compact(call, goal)
}

// tooLong says what follows a failure that is of the conversation's length, or of its
// compaction; ok is false for any other. A refused request is compacted once, then the
// owner is asked once, then it is a failure.
func (s *State) tooLong(call Todo) (act Todo, ok bool) {
	c, f := &s.Context, s.Failed
	refused := f.Class == providers.ContextLength
	switch {
	case c.Window == 0, c.Cut != nil && (!f.Retry.IsZero() || f.Class == providers.Auth), c.Cut == nil && !refused:
		return call, false
	case c.Cut != nil && refused && c.Shrunk <= maxShrunk:
		return s.compact(call, c.Goal), true
	case c.Cut == nil && !c.Squeezed:
		if goal := s.goal(0); goal > c.Upto {
			return s.compact(call, goal), true
		}
		if c.Resized {
			return call, true
		}
	}
	if c.Asked || s.lastReply() < 0 { // a first request that is too long: the mail itself is
		return call, false
	}
	return Todo{Do: DoAsk, Limit: LimitContext}, true
}

// cutOff says what follows a reply that the window cut off: it is asked again, once, with
// less before it.
func (s *State) cutOff() Todo {
	c := &s.Context
	switch {
	case c.Upto == len(s.Turns):
		return Todo{Do: DoCall}
	case c.Window == 0 || c.Stops > 1:
		return Todo{Do: DoFail, Fail: FailWindow}
	}
	return s.compact(Todo{N: s.Intents + 1}, len(s.Turns))
}

// compact is the next chunk on the way to goal.
func (s *State) compact(call Todo, goal int) Todo {
	call.Do, call.Cut = DoCompact, &Cut{Upto: s.chunk(goal), Goal: goal}
	return call
}

// chunk is how far the next chunk goes: as many turns as fit about half of the window, one
// at the least.
func (s *State) chunk(goal int) int {
	room := s.Context.chunkBytes()
	i := s.Context.Upto
	for size := 0; i < goal; i++ {
		size += s.Turns[i].Size
		if size > room && i > s.Context.Upto {
			break
		}
	}
	return i
}

// chunkBytes is how long the turns of a chunk may be.
func (c *Context) chunkBytes() int {
	return max(c.bytes(c.Window/10*6)>>c.Shrunk-len(c.Summary), 512)
}

// goal is how far a compaction goes that leaves about keep bytes: the newest reply stays,
// with the results the model has not seen, and a paused reply stays with what follows it.
func (s *State) goal(keep int) int {
	i := s.lastReply()
	if i <= s.Context.Upto {
		return s.Context.Upto
	}
	size := s.Turns[i].Size
	for i > s.Context.Upto && (size+s.Turns[i-1].Size <= keep || s.Turns[i-1].paused()) {
		i--
		size += s.Turns[i].Size
	}
	if s.sizeBetween(s.Context.Upto, i) == 0 {
		return s.Context.Upto // mails alone
	}
	return i
}

func (t *Turn) paused() bool {
	return t.Reply != nil && t.Reply.Reply.Stop == providers.StopPause
}

func (s *State) sizeBetween(from, to int) (size int) {
	for _, t := range s.Turns[from:to] {
		size += t.Size
	}
	return size
}

// cutIntent is an intent, of a compaction when it has a cut; "" when it may follow.
func (s *State) cutIntent(cut *Cut) string {
	c := &s.Context
	refused := c.Cut == nil && s.Failed != nil && s.Failed.Class == providers.ContextLength
	if cut == nil {
		c.Squeezed, c.Resized = c.Squeezed || refused && c.Resized, false
		c.Cut = nil
		return ""
	}
	if cut.Upto <= c.Upto || cut.Upto > cut.Goal || cut.Goal > len(s.Turns) {
		return "a cut that does not go on"
	}
	if c.Goal <= c.Upto {
		c.Before, c.Shrunk, c.Blank = c.estimate(), 0, 0
	}
	c.Squeezed = c.Squeezed || refused
	c.Cut, c.Goal = cut, cut.Goal
	return ""
}

// compacted is a chunk that was told in fewer words; without words nothing changes.
func (s *State) compacted(e *EvCompacted) string {
	if reason := s.answers(e.N); reason != "" {
		return reason
	}
	c := &s.Context
	switch {
	case c.Cut == nil:
		return "compacted without an intent"
	case e.Summary == "":
		c.Blank++
	case e.Upto != c.Cut.Upto:
		return "compacted another part"
	default:
		s.take(e)
	}
	s.Pending, s.Stale, s.Failures, s.Lost = false, false, 0, 0
	s.Reserved = Reserve{}
	s.ModelCalls++
	s.Usage = s.Usage.Add(e.Usage)
	return ""
}

// take puts a summary in the place of the turns before e.Upto.
func (s *State) take(e *EvCompacted) {
	c := &s.Context
	was := 0
	if c.Upto > 0 {
		was = len(s.recap())
	}
	gone := s.sizeBetween(c.Upto, e.Upto)
	c.Upto, c.Summary, c.Blank = e.Upto, e.Summary, 0
	c.Size += len(s.recap()) - was - gone
	if c.Upto == c.Goal {
		c.Judge, c.Shrunk = c.Before, 0
	}
}

// goOn is the owner's word that the conversation goes on as it is.
func (s *State) goOn() {
	c := &s.Context
	c.Goal, c.Shrunk, c.Blank, c.Fruitless = c.Upto, 0, 0, 0
	c.Spared, c.Asked = max(c.Size, 1), true
	if s.Failed != nil && (s.Failed.Class == providers.ContextLength || c.Cut != nil) {
		s.Failed = nil
	}
}

// Sizes are bytes of text; a picture or a file counts as the text that takes about as
// many tokens.
const (
	sizeOfCall  = 40 // what stands around a call and its result
	sizeOfImage = 6 << 10
)

func sizeOfFrozen(system string, specs []providers.ToolSpec) int {
	size := len(system)
	for _, t := range specs {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + sizeOfCall
	}
	return size
}

func sizeOfParts(parts []providers.Part) (size int) {
	for _, p := range parts {
		size += len(p.Text)
		switch p.Kind {
		case providers.Image:
			size += sizeOfImage
		case providers.File:
			size += max(sizeOfImage, len(p.Data)/8)
		}
		if p.Call != nil {
			size += len(p.Call.Name) + len(p.Call.Args) + sizeOfCall
		}
		if p.Result != nil {
			size += len(p.Result.Content) + sizeOfCall + sizeOfParts(p.Result.Media)
		}
	}
	return size
}

// sizeOfTurn is how long a reply is with its results; mails are not known to the fold.
func sizeOfTurn(t *Turn, window int) int {
	if t.Reply == nil {
		return 0
	}
	size, limit := sizeOfParts(t.Reply.Reply.Message.Parts), batchLimit(t.Calls, window)
	for i := range t.Calls {
		n := len(noResult)
		if end := t.Calls[i].End; end != nil {
			n = min(len(end.Content), limit)
		}
		size += n + sizeOfCall
	}
	return size
}

// windowOf is the window that a run of a model is planned with, in tokens; 0: none.
func windowOf(i providers.Info) int {
	switch {
	case i.Window < 0:
		return 0
	case i.Window == 0:
		return defaultWindow
	}
	return i.Window
}

package imapserver

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestBaseSubject(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		subject, base string
		reply         bool
	}{
		{"", "", false},
		{"Plan", "Plan", false},
		{"Re: Plan", "Plan", true},
		{"  re :\tPlan \t for  two ", "Plan for two", true},
		{"Fwd: FW: fw : Plan", "Plan", true},
		{"Fwdx: Plan", "Fwdx: Plan", false},
		{"Regarding: Plan", "Regarding: Plan", false},
		{"Re Plan", "Re Plan", false},
		{"Re[2]: Plan", "Plan", true},
		{"Re [2] : Plan", "Plan", true},
		{"Re[2 Plan", "Re[2 Plan", false},
		{"[list] Plan", "Plan", false},
		{"[list] [other] Re: [third] Plan", "Plan", true},
		{"[list]", "[list]", false},
		{"[a][b]", "[b]", false},
		{"Re: [a] ", "[a]", true},
		{"[unclosed Plan", "[unclosed Plan", false},
		{"[a[b] Plan", "[a[b] Plan", false},
		{"Plan (fwd)", "Plan", true},
		{"Plan (FWD) (fwd) ", "Plan", true},
		{"(fwd)", "", true},
		{"Re:", "", true},
		{"[Fwd: Plan]", "Plan", true},
		{"[fwd: [fwd: re: [fwd: Plan (fwd)]]]", "Plan", true},
		{"[list] [Fwd: [x] Plan]", "Plan", true},
		{"[list] [x [Fwd: Plan]", "[x [Fwd: Plan]", false},
		{"[fwd: Plan", "[fwd: Plan", false},
		{"[fwd: Plan] B", "B", false},
		{"AW: Plan", "AW: Plan", false},
		{"RE: Größe (fwd)", "Größe", true},
	} {
		if base, reply := baseSubject(tt.subject); base != tt.base || reply != tt.reply {
			t.Errorf("baseSubject(%q) = %q, %v; want %q, %v", tt.subject, base, reply, tt.base, tt.reply)
		}
	}
}

// TestBaseSubjectIsLinear: a header may hold 256 KiB of marks. Four times as many take so
// long that the test is given up, if each is looked at again for every other.
func TestBaseSubjectIsLinear(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"[a]", "re:", "[fwd:", "(fwd)", "[", "re[", "re [a", " \t"} {
		long := strings.Repeat(mark, (1<<20)/len(mark))
		baseSubject(long + "x")
		baseSubject("x" + long)
		baseSubject(long + strings.Repeat("]", 50000))
	}
}

func FuzzBaseSubject(f *testing.F) {
	f.Add("Re: [list] [Fwd: Plan (fwd)]")
	f.Fuzz(func(t *testing.T, s string) {
		base, _ := baseSubject(s)
		if again, reply := baseSubject(base); again != base || reply {
			t.Errorf("%q becomes %q, that %q", s, base, again)
		}
	})
}

func TestCollate(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"plan", "PLAN"}, {"Größe", "GRÖßE"}, {"äpfel", "ÄPFEL"}, {"a\u0308pfel", "Äpfel"}, {"Ｐlan", "plan"}} {
		if a, b := collate(pair[0]), collate(pair[1]); a != b {
			t.Errorf("%q is %q, %q is %q", pair[0], a, pair[1], b)
		}
	}
	if a, b := collate("zebra"), collate("Äpfel"); a < b {
		t.Errorf("%q sorts before %q", a, b)
	}
}

func TestPlainID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{`a@b`: `a@b`, `"a"@b`: `a@b`, `"a\"b\\c"@d`: `a"b\c@d`, `""@b`: `@b`} {
		if got := plainID(id); got != want {
			t.Errorf("plainID(%s) = %s, want %s", id, got, want)
		}
	}
}

// show writes threads as the server does.
func show(roots []*threadNode) string {
	var b strings.Builder
	w := &writer{w: &b}
	for _, n := range roots {
		w.thread(n)
	}
	w.flush()
	return b.String()
}

// TestThreadRules takes the rules of RFC 5256 one by one.
func TestThreadRules(t *testing.T) {
	t.Parallel()
	// A message is ID<REFERENCES SUBJECT; its number is its place, and so is its date.
	for _, tt := range []struct{ name, mails, want string }{
		{"none", "", ""},
		{"chain", "a< s; b<a s; c<a,b s", "(1 2 3)"},
		{"children before parents", "c<a,b s; b<a s; a< s", "(3 2 1)"},
		{"siblings", "a< s; b<a s; c<a s", "(1 (2)(3))"},
		{"branch below a chain", "a< s; b<a s; c<b s; d<b s", "(1 2 (3)(4))"},
		{"dummy in the middle", "a< s; c<a,b s", "(1 2)"},
		{"dummy with one child on top", "b<a s", "(1)"},
		{"dummy with two children on top", "b<a s; c<a t", "((1)(2))"},
		{"dummies above dummies", "c<x,y,z s; d<x,w t", "((1)(2))"},
		{"chain under a dummy on top", "b<a s; c<a t; d<a,c t", "((1)(2 3))"},
		{"an older list is believed", "a< s; b< t; c<a,b u", "(1 2 3)"},
		{"the first link stays", "a< s; b< t; c<a,b u; d<x,b v", "(1 2 (3)(4))"},
		{"the last reference is right", "a< s; x< t; c<a,b u; b<x v", "(1)(2 4 3)"},
		{"no references: no parent", "b<a,c s; c< t; a< u", "(2 1)(3)"},
		{"same Message-ID", "a< s; a< t; b<a u", "(1 3)(2)"},
		{"refers to itself", "a<a s", "(1)"},
		{"loop of three", "a<c s; b<a t; c<b u", "(3 1 2)"},
		{"joined by subject", "a< s; b< R:s", "(1 2)"},
		{"the reply comes first", "a< R:s; b< s", "(2 1)"},
		{"two replies", "a< R:s; b< R:s", "((1)(2))"},
		{"two originals", "a< s; b< s", "((1)(2))"},
		{"three originals", "a< s; b< s; c< s", "((1)(2)(3))"},
		{"original and replies", "a< R:s; b< s; c< R:s", "(2 (1)(3))"},
		{"dummy and a message", "b<a s; c<a t; d< s", "((1)(2)(3))"},
		{"two dummies", "b<a s; c<a t; e<d s; f<d u", "((1)(2)(3)(4))"},
		{"no subject, no join", "a< -; b< -", "(1)(2)"},
		{"only threads are joined", "a< s; b<a t; c< t", "(1 2)(3)"},
	} {
		if got := show(threadByReferences(mails(tt.mails))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func mails(s string) (msgs []threadMsg) {
	for part := range strings.SplitSeq(s, "; ") {
		head, subject, _ := strings.Cut(part, " ")
		if head == "" {
			continue
		}
		m := threadMsg{num: uint32(len(msgs) + 1)}
		m.date = int64(m.num)
		m.subject, m.reply = strings.CutPrefix(subject, "R:")
		m.subject = strings.TrimPrefix(m.subject, "-")
		id, refs, _ := strings.Cut(head, "<")
		m.id = id
		if refs != "" {
			m.refs = strings.Split(refs, ",")
		}
		msgs = append(msgs, m)
	}
	return msgs
}

func TestOrderedSubject(t *testing.T) {
	t.Parallel()
	msgs := mails("a< s; b<a t; c< s; d< s; e< -; f< -; g< t")
	msgs[0].date = 100
	if got, want := show(threadBySubject(msgs)), "(2 7)(3 (4)(1))(5 6)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestThreadProperty compares random mailboxes with the rules carried out literally.
func TestThreadProperty(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 256))
	ids := []string{"", "a", "b", "c", "d", "e", "f", "g"}
	pick := func() string { return ids[rnd.IntN(len(ids))] }
	for range 20000 {
		msgs := make([]threadMsg, 1+rnd.IntN(7))
		for i := range msgs {
			msgs[i] = threadMsg{num: uint32(i + 1), date: int64(rnd.IntN(4)), id: pick(), reply: rnd.IntN(2) == 0, subject: []string{"", "s", "t"}[rnd.IntN(3)]}
			for range rnd.IntN(4) {
				if id := pick(); id != "" {
					msgs[i].refs = append(msgs[i].refs, id)
				}
			}
		}
		if got, want := show(threadByReferences(msgs)), literalThreads(msgs); got != want {
			t.Fatalf("%+v\ngot  %s\nwant %s", msgs, got, want)
		}
	}
}

// plainNode is the tree of literalThreads: parents know their children, and that is all.
type plainNode struct {
	msg  *threadMsg
	kids []*plainNode
}

func (n *plainNode) has(other *plainNode) bool {
	return n == other || slices.ContainsFunc(n.kids, func(k *plainNode) bool { return k.has(other) })
}

func literalThreads(msgs []threadMsg) string {
	root := &plainNode{}
	byID := map[string]*plainNode{}
	var all []*plainNode
	at := func(id string) *plainNode {
		if byID[id] == nil || id == "" {
			n := &plainNode{}
			all = append(all, n)
			if id == "" {
				return n
			}
			byID[id] = n
		}
		return byID[id]
	}
	parent := func(n *plainNode) *plainNode {
		for _, p := range all {
			if slices.Contains(p.kids, n) {
				return p
			}
		}
		return nil
	}
	for i := range msgs {
		id := msgs[i].id
		if n := byID[id]; n != nil && n.msg != nil {
			id = ""
		}
		own := at(id)
		own.msg = &msgs[i]
		var prev *plainNode
		for _, ref := range msgs[i].refs {
			n := at(ref)
			if prev != nil && parent(n) == nil && !n.has(prev) {
				prev.kids = append(prev.kids, n)
			}
			prev = n
		}
		if p := parent(own); p != nil {
			p.kids = slices.DeleteFunc(p.kids, func(k *plainNode) bool { return k == own })
		}
		if prev != nil && !own.has(prev) {
			prev.kids = append(prev.kids, own)
		}
	}
	for _, n := range all {
		if parent(n) == nil {
			root.kids = append(root.kids, n)
		}
	}
	root.prune(true)
	root.kids = literalJoin(root)
	root.sort()
	var b strings.Builder
	for _, k := range root.kids {
		k.print(&b)
	}
	return b.String()
}

func (n *plainNode) prune(top bool) {
	var out []*plainNode
	for _, k := range n.kids {
		k.prune(false)
		switch {
		case k.msg != nil, top && len(k.kids) > 1:
			out = append(out, k)
		default:
			out = append(out, k.kids...)
		}
	}
	n.kids = out
}

func (n *plainNode) first() *threadMsg {
	if n.msg != nil {
		return n.msg
	}
	return n.kids[0].first()
}

func (n *plainNode) sort() {
	for _, k := range n.kids {
		k.sort()
	}
	slices.SortStableFunc(n.kids, func(a, b *plainNode) int {
		return cmp.Or(cmp.Compare(a.first().date, b.first().date), cmp.Compare(a.first().num, b.first().num))
	})
}

func literalJoin(root *plainNode) []*plainNode {
	for _, k := range root.kids {
		if k.msg == nil {
			one := &plainNode{kids: k.kids}
			one.sort()
		}
	}
	byDate := &plainNode{kids: root.kids}
	slices.SortStableFunc(byDate.kids, func(a, b *plainNode) int {
		return cmp.Or(cmp.Compare(a.first().date, b.first().date), cmp.Compare(a.first().num, b.first().num))
	})
	table := map[string]*plainNode{}
	for _, k := range byDate.kids {
		s := k.first().subject
		if s == "" {
			continue
		}
		if table[s] == nil {
			table[s] = k
		} else if table[s].msg != nil && (k.msg == nil || table[s].msg.reply && !k.msg.reply) {
			table[s] = k
		}
	}
	kids := slices.Clone(byDate.kids)
	remove := func(n *plainNode) { kids = slices.DeleteFunc(kids, func(k *plainNode) bool { return k == n }) }
	for _, k := range byDate.kids {
		s := k.first().subject
		if s == "" || table[s] == k || !slices.Contains(kids, k) {
			continue
		}
		with := table[s]
		remove(k)
		switch {
		case with.msg == nil && k.msg == nil:
			with.kids = append(with.kids, k.kids...)
		case with.msg == nil, k.msg.reply && !with.msg.reply:
			with.kids = append(with.kids, k)
		default:
			remove(with)
			table[s] = &plainNode{kids: []*plainNode{with, k}}
			kids = append(kids, table[s])
		}
	}
	return kids
}

func (n *plainNode) print(b io.StringWriter) {
	b.WriteString("(")
	if n.msg != nil {
		b.WriteString(fmt.Sprint(n.msg.num))
	}
	for len(n.kids) == 1 {
		n = n.kids[0]
		b.WriteString(fmt.Sprint(" ", n.msg.num))
	}
	if n.msg != nil && len(n.kids) > 1 {
		b.WriteString(" ")
	}
	for _, k := range n.kids {
		k.print(b)
	}
	b.WriteString(")")
}

// TestThreadCost: long chains in any order, made up references and one subject for all
// cost about their size.
func TestThreadCost(t *testing.T) {
	t.Parallel()
	const n = 10000
	box := func(edit func(i int, m *threadMsg)) []threadMsg {
		msgs := make([]threadMsg, n)
		for i := range msgs {
			msgs[i] = threadMsg{num: uint32(i + 1), date: int64(i), id: fmt.Sprint("i", i)}
			edit(i, &msgs[i])
		}
		return msgs
	}
	chain := box(func(i int, m *threadMsg) { m.refs = []string{fmt.Sprint("i", i-1)} })
	shuffled := slices.Clone(chain)
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	for name, msgs := range map[string][]threadMsg{
		"one chain":           chain,
		"one chain, shuffled": shuffled,
		"one chain backwards": box(func(i int, m *threadMsg) { m.refs = []string{fmt.Sprint("i", i+1)} }),
		"a loop of all":       box(func(i int, m *threadMsg) { m.refs = []string{fmt.Sprint("i", (i+1)%n)} }),
		"one parent":          box(func(i int, m *threadMsg) { m.refs = []string{"x"} }),
		"one subject":         box(func(i int, m *threadMsg) { m.subject = "s" }),
		"dummies": box(func(i int, m *threadMsg) {
			for k := range 21 {
				m.refs = append(m.refs, fmt.Sprint("d", i*20+k))
			}
		}),
	} {
		if steps := linkReferences(msgs).steps; steps > 20*n {
			t.Errorf("%s: %d steps for %d messages", name, steps, n)
		}
		if got := strings.Count(show(threadByReferences(msgs)), " ") + 1; got > n {
			t.Errorf("%s: %d numbers", name, got)
		}
	}
}

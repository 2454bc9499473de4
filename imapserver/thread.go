package imapserver

import (
	"cmp"
	"slices"
)

// threadMsg is what THREAD knows of one message.
type threadMsg struct {
	num     uint32 // number in the answer
	date    int64  // sent date
	subject string // base subject, as it is compared
	reply   bool   // the subject says that it is a reply or a forward
	id      string // Message-ID; "" when it has none
	refs    []string
}

// threadNode is a message in the tree, or a dummy: a message that is only known from
// references, or the top of threads that were joined by their subject.
type threadNode struct {
	msg    *threadMsg // nil: a dummy
	parent *threadNode
	kids   []*threadNode
	under  int  // how many nodes have it for a parent; kids is filled later
	gone   bool // it is no longer at the top
}

// first is the message that a node at the top is sorted and named by.
func (n *threadNode) first() *threadMsg {
	if n.msg == nil {
		return n.kids[0].msg
	}
	return n.msg
}

// threadByReferences builds the threads of messages, which are in mailbox order (RFC
// 5256 section 3, THREAD=REFERENCES). Nothing recurses: chains may be as long as all
// mails together say.
func threadByReferences(msgs []threadMsg) []*threadNode {
	roots := gatherRoots(linkReferences(msgs).all)
	for _, n := range roots {
		if n.msg == nil {
			sortSiblings(n.kids)
		}
	}
	sortSiblings(roots)
	roots = joinSubjects(roots)
	return sortThreads(roots)
}

// linker links messages to those that they refer to (step 1).
type linker struct {
	byID  map[string]*threadNode
	all   []*threadNode
	steps int // nodes looked at in search of loops: what could cost more than the references
}

func linkReferences(msgs []threadMsg) *linker {
	l := &linker{byID: make(map[string]*threadNode, 2*len(msgs)), all: make([]*threadNode, 0, 2*len(msgs))}
	for i := range msgs {
		m := &msgs[i]
		own := l.message(m)
		var before *threadNode
		for _, id := range m.refs {
			n := l.named(id)
			if before != nil && n.parent == nil {
				l.link(n, before)
			}
			before = n
		}
		// A parent that it has by now is from somebody's shortened list.
		l.link(own, before)
	}
	return l
}

func (l *linker) add(n *threadNode) *threadNode {
	l.all = append(l.all, n)
	return n
}

func (l *linker) named(id string) *threadNode {
	n := l.byID[id]
	if n == nil {
		n = l.add(&threadNode{})
		l.byID[id] = n
	}
	return n
}

// message returns the node of a message. The first of several with one Message-ID has it.
func (l *linker) message(m *threadMsg) *threadNode {
	if m.id == "" {
		return l.add(&threadNode{msg: m})
	}
	n := l.named(m.id)
	if n.msg != nil {
		return l.add(&threadNode{msg: m})
	}
	n.msg = m
	return n
}

// link gives n a parent in place of the one it has. It gets none where that would make a
// loop.
func (l *linker) link(n, parent *threadNode) {
	if n.parent != nil {
		n.parent.under--
		n.parent = nil
	}
	if parent == nil || parent == n {
		return
	}
	if n.under > 0 {
		for p := parent; p != nil; p = p.parent {
			if l.steps++; p == n {
				return
			}
		}
	}
	n.parent = parent
	parent.under++
}

// gatherRoots returns the nodes without parents, with all below them, but without the
// dummies that hold nothing together (steps 2 and 3).
func gatherRoots(all []*threadNode) []*threadNode {
	var order []*threadNode // parents before their children
	for _, n := range all {
		if n.parent == nil {
			order = append(order, n)
		} else {
			n.parent.kids = append(n.parent.kids, n)
		}
	}
	top := len(order)
	for i := 0; i < len(order); i++ {
		order = append(order, order[i].kids...)
	}
	for _, n := range slices.Backward(order) {
		n.kids = promote(n.kids)
	}
	var roots []*threadNode
	for _, n := range order[:top] {
		switch {
		case n.msg != nil || len(n.kids) > 1:
			roots = append(roots, n)
		case len(n.kids) == 1:
			roots = append(roots, n.kids[0])
		}
	}
	return roots
}

// promote returns kids with those of dummies in the dummies' place.
func promote(kids []*threadNode) (out []*threadNode) {
	for _, k := range kids {
		more := []*threadNode{k}
		if k.msg == nil {
			more = k.kids
		}
		if len(more) > len(out) { // the longer list is not copied
			out, more = more, out
		}
		out = append(out, more...)
	}
	return out
}

// joinSubjects joins threads that have the same base subject (step 5).
func joinSubjects(roots []*threadNode) []*threadNode {
	table := subjectTable(roots)
	joined := roots[:len(roots):len(roots)]
	for _, n := range roots {
		subject := n.first().subject
		with := table[subject]
		if subject == "" || with == n || n.gone {
			continue
		}
		n.gone = true
		switch {
		case with.msg == nil && n.msg == nil:
			with.kids = append(with.kids, n.kids...)
		case with.msg == nil, n.msg.reply && !with.msg.reply:
			with.kids = append(with.kids, n)
		default:
			with.gone = true
			top := &threadNode{kids: []*threadNode{with, n}}
			table[subject] = top
			joined = append(joined, top)
		}
	}
	return slices.DeleteFunc(joined, func(n *threadNode) bool { return n.gone })
}

// subjectTable finds for each base subject the thread that others join: best a dummy,
// then one that is no reply.
func subjectTable(roots []*threadNode) map[string]*threadNode {
	table := make(map[string]*threadNode, len(roots))
	for _, n := range roots {
		subject := n.first().subject
		if subject == "" {
			continue
		}
		have := table[subject]
		if have == nil || have.msg != nil && (n.msg == nil || have.msg.reply && !n.msg.reply) {
			table[subject] = n
		}
	}
	return table
}

// sortThreads sorts all siblings by date (step 6).
func sortThreads(roots []*threadNode) []*threadNode {
	order := slices.Clone(roots)
	for i := 0; i < len(order); i++ {
		sortSiblings(order[i].kids)
		order = append(order, order[i].kids...)
	}
	sortSiblings(roots)
	return roots
}

// sortSiblings sorts by sent date, then by number. The children of dummies among them
// are sorted already.
func sortSiblings(list []*threadNode) {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b *threadNode) int { return a.first().compare(b.first()) })
	}
}

func (m *threadMsg) compare(other *threadMsg) int {
	return cmp.Or(cmp.Compare(m.date, other.date), cmp.Compare(m.num, other.num))
}

// threadBySubject makes a thread of the messages with one base subject: the first by
// date, and all others under it (RFC 5256 section 3, THREAD=ORDEREDSUBJECT).
func threadBySubject(msgs []threadMsg) []*threadNode {
	sorted := make([]*threadMsg, len(msgs))
	for i := range msgs {
		sorted[i] = &msgs[i]
	}
	slices.SortFunc(sorted, func(a, b *threadMsg) int { return cmp.Or(cmp.Compare(a.subject, b.subject), a.compare(b)) })
	var roots []*threadNode
	for i, m := range sorted {
		n := &threadNode{msg: m}
		if i > 0 && m.subject == sorted[i-1].subject {
			top := roots[len(roots)-1]
			top.kids = append(top.kids, n)
			continue
		}
		roots = append(roots, n)
	}
	sortSiblings(roots)
	return roots
}

// writeThread writes a thread-list. It recurses where a thread branches, which it does
// fewer times than it has messages.
func (w *writer) thread(n *threadNode) {
	w.str("(")
	if n.msg != nil {
		w.num(uint64(n.msg.num))
	}
	for len(n.kids) == 1 {
		n = n.kids[0]
		w.str(" ").num(uint64(n.msg.num))
	}
	if len(n.kids) > 0 && n.msg != nil {
		w.str(" ")
	}
	for _, k := range n.kids {
		w.thread(k)
	}
	w.str(")")
}

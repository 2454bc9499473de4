package imapserver

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pickBox returns some mailbox of the model.
func (w *world) pickBox() *refBox {
	names := slices.Sorted(maps.Keys(w.boxes))
	return w.boxes[names[w.rnd.IntN(len(names))]]
}

func (w *world) someFlags() map[string]bool {
	flags := map[string]bool{}
	for _, f := range modelFlags {
		if w.rnd.IntN(4) == 0 {
			flags[f] = true
		}
	}
	return flags
}

func names(flags map[string]bool) string { return (&refMsg{flags: flags}).text() }

var (
	appendedTo = regexp.MustCompile(`\[APPENDUID (\d+) (\d+)\]`)
	copiedTo   = regexp.MustCompile(`\[COPYUID (\d+) (\S+) (\S+)\]`)
)

func (w *world) appendSome(s *tab) {
	b := w.pickBox()
	flags := w.someFlags()
	w.mails++
	body := fmt.Sprintf("Subject: mail %d\r\n\r\n%s", w.mails, strings.Repeat("x", w.rnd.IntN(30)))
	got := w.do(s, "OK", "APPEND %s (%s) {%d+}\r\n%s", b.name, names(flags), len(body), body)
	m := appendedTo.FindStringSubmatch(last(got))
	if m == nil || m[1] != b.validity {
		w.failf("APPEND: %q, want UIDVALIDITY %s", last(got), b.validity)
	}
	w.add(b, number(m[2]), body, flags)
	if s.box == b && len(s.uids) < len(b.msgs) {
		w.failf("APPEND to the selected mailbox: EXISTS was not told")
	}
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

// choice is a set of messages of a session, by number or by UID.
type choice struct {
	set   string
	uids  []int // that are there
	ghost bool  // one that is gone is among them
	byUID bool
}

// prefix is UID for a command by UID.
func (c choice) prefix() string {
	if c.byUID {
		return "UID "
	}
	return ""
}

// choose picks messages that the client of s has; ok is false when it has none.
func (w *world) choose(s *tab) (c choice, ok bool) {
	if s.box == nil || len(s.uids) == 0 {
		return c, false
	}
	known := w.known(s)
	c.byUID = w.rnd.IntN(2) == 0
	from := w.rnd.IntN(len(known))
	to := min(len(known)-1, from+w.rnd.IntN(4))
	if c.byUID {
		low, high := known[from], known[to]
		if low == 0 || high == 0 {
			return c, false
		}
		c.set = fmt.Sprintf("%d:%d", high, low)
	} else {
		c.set = fmt.Sprintf("%d:%d", from+1, to+1)
	}
	for _, uid := range known[from : to+1] {
		if s.box.find(uid) != nil {
			c.uids = append(c.uids, uid)
		} else {
			c.ghost = true
		}
	}
	return c, true
}

// ends is how a command about c ends.
func (c choice) ends() string {
	if c.ghost && !c.byUID {
		return "NO [EXPUNGEISSUED]"
	}
	return "OK"
}

func (w *world) store(s *tab) {
	c, ok := w.choose(s)
	if !ok {
		return
	}
	flags, op := w.someFlags(), w.rnd.IntN(3)
	silent := []string{"", ".SILENT"}[w.rnd.IntN(2)]
	want := c.ends()
	if s.readOnly {
		want = "NO [READ-ONLY]"
	}
	got := w.do(s, want, "%sSTORE %s %sFLAGS%s (%s)", c.prefix(), c.set, []string{"", "+", "-"}[op], silent, names(flags))
	if s.readOnly {
		return
	}
	for _, uid := range c.uids {
		m := s.box.find(uid)
		if op == 0 {
			m.flags = map[string]bool{}
		}
		for f := range flags {
			m.flags[f] = op != 2
		}
		if silent != "" {
			if at := slices.Index(s.uids, strconv.Itoa(uid)); at >= 0 && s.flags[at] != unknownFlags { // the client does it itself
				s.flags[at] = m.text()
			}
		} else if !slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, fmt.Sprintf("UID %d ", uid)) }) {
			w.failf("STORE: no FETCH of UID %d in %q", uid, got)
		}
	}
	w.freshFlags(s)
}

// freshFlags checks the flags of all messages that the client has and that are there.
func (w *world) freshFlags(s *tab) {
	for i, u := range s.uids {
		m := s.box.find(number(u))
		if u != "" && m != nil && s.flags[i] != unknownFlags && sorted(s.flags[i]) != m.text() {
			w.failf("%s: UID %s has flags %q, want %q", s.name, u, s.flags[i], m.text())
		}
	}
}

func (w *world) copyOrMove(s *tab) {
	c, ok := w.choose(s)
	if !ok {
		return
	}
	verb, to, want := "COPY", w.pickBox(), c.ends()
	if w.rnd.IntN(2) == 0 {
		verb = "MOVE"
	}
	if s.readOnly && verb == "MOVE" {
		want = "NO" // [READ-ONLY], or first [EXPUNGEISSUED]
	}
	got := w.do(s, want, "%s%s %s %s", c.prefix(), verb, c.set, to.name)
	if want != "OK" {
		return
	}
	if w.transfer(s, to, c, got, verb == "MOVE"); verb == "MOVE" {
		w.fresh(s, verb)
	}
}

// transfer follows COPYUID.
func (w *world) transfer(s *tab, to *refBox, c choice, got []string, move bool) {
	var from, into []int
	for _, r := range got {
		if m := copiedTo.FindStringSubmatch(r); m != nil {
			if m[1] != to.validity {
				w.failf("COPYUID %q, want UIDVALIDITY %s", r, to.validity)
			}
			from, into = numbers(m[2]), numbers(m[3])
		}
	}
	if !slices.Equal(from, c.uids) || len(into) != len(from) {
		w.failf("COPYUID %v to %v, want it from %v", from, into, c.uids)
	}
	source := s.box
	for i, uid := range from {
		m := source.find(uid)
		flags := maps.Clone(m.flags)
		delete(flags, `\Deleted`)
		if move {
			source.drop(func(x *refMsg) bool { return x == m })
		}
		w.add(to, into[i], m.body, flags)
	}
}

func numbers(set string) (out []int) {
	for part := range strings.SplitSeq(set, ",") {
		from, to, isRange := strings.Cut(part, ":")
		if !isRange {
			to = from
		}
		for n := number(from); n <= number(to); n++ {
			out = append(out, n)
		}
	}
	return out
}

func (w *world) expunge(s *tab) {
	if s.box == nil {
		return
	}
	only, command := func(*refMsg) bool { return true }, "EXPUNGE"
	if c, ok := w.choose(s); ok && c.byUID {
		command = "UID EXPUNGE " + c.set
		only = func(m *refMsg) bool { return slices.Contains(c.uids, m.uid) }
	}
	if s.readOnly {
		w.do(s, "NO [READ-ONLY]", "%s", command)
		return
	}
	s.box.drop(func(m *refMsg) bool { return m.flags[`\Deleted`] && only(m) })
	w.do(s, "OK", "%s", command)
	w.fresh(s, command)
}

func (w *world) fetch(s *tab) {
	c, ok := w.choose(s)
	if !ok {
		return
	}
	got := w.do(s, c.ends(), "%sFETCH %s (UID FLAGS BODY.PEEK[])", c.prefix(), c.set)
	for _, uid := range c.uids {
		m := s.box.find(uid)
		has := slices.ContainsFunc(got, func(r string) bool {
			return strings.Contains(r, fmt.Sprintf("UID %d ", uid)) && strings.Contains(r, fmt.Sprintf("BODY[] {%d}\r\n%s", len(m.body), m.body))
		})
		if !has {
			w.failf("FETCH: UID %d with %q is not in %q", uid, m.body, got)
		}
	}
	if c.byUID {
		w.fresh(s, "UID FETCH")
	}
	w.freshFlags(s)
}

// search asks for messages with and without flags, and compares what the server finds.
func (w *world) search(s *tab) {
	if s.box == nil {
		return
	}
	with, without := modelFlags[w.rnd.IntN(len(modelFlags))], modelFlags[w.rnd.IntN(len(modelFlags))]
	key := func(f, un string) string {
		if f[0] == '\\' {
			return un + strings.ToUpper(f[1:])
		}
		return un + "KEYWORD " + f
	}
	got := w.do(s, "OK", "UID SEARCH OR %s %s", key(with, ""), key(without, "UN"))
	var want []string
	for _, m := range s.box.msgs {
		if m.flags[with] || !m.flags[without] {
			want = append(want, strconv.Itoa(m.uid))
		}
	}
	found := slices.IndexFunc(got, func(r string) bool { return strings.HasPrefix(r, "* SEARCH") })
	if found < 0 || strings.TrimSpace(got[found][8:]) != strings.Join(want, " ") {
		w.failf("SEARCH OR %s %s: %q, want %v", key(with, ""), key(without, "UN"), got, want)
	}
	w.fresh(s, "UID SEARCH")
}

func (w *world) noop(s *tab) {
	w.do(s, "OK", "NOOP")
	w.fresh(s, "NOOP")
}

// idle lets another session do something while s waits. What was before is told at
// once, what happens meanwhile when it happens.
func (w *world) idle(s *tab) {
	other := w.tabs[w.rnd.IntN(len(w.tabs))]
	if other == s {
		return
	}
	w.log = append(w.log, s.name+": IDLE")
	s.quiet = false
	s.send("x IDLE")
	w.until(s, "+ ", nil)
	w.until(s, "", func() bool { return s.stale() == "" })
	[]func(*tab){w.appendSome, w.store, w.copyOrMove, w.expunge}[w.rnd.IntN(4)](other)
	w.until(s, "", func() bool { return s.stale() == "" })
	s.send("DONE")
	w.until(s, "x OK", nil)
	w.fresh(s, "DONE")
}

// until follows responses until one begins with prefix, or enough says so.
func (w *world) until(s *tab, prefix string, enough func() bool) {
	w.t.Helper()
	for enough == nil || !enough() {
		r, err := s.response()
		if err != nil {
			w.failf("%s in IDLE: %v; %s", s.name, err, s.stale())
		}
		if enough == nil && strings.HasPrefix(r, prefix) {
			return
		}
		w.log = append(w.log, "    "+r)
		s.follow("IDLE", r)
	}
}

func (w *world) open(s *tab) {
	b := w.pickBox()
	s.readOnly = w.rnd.IntN(5) == 0
	s.uids, s.flags, s.known = nil, nil, map[string]bool{}
	if s.readOnly {
		w.do(s, "OK [READ-ONLY]", "EXAMINE %s", b.name)
	} else {
		w.do(s, "OK [READ-WRITE]", "SELECT %s", b.name)
	}
	s.box = b
	w.fresh(s, "SELECT")
	w.known(s)
	w.fresh(s, "FETCH")
}

func (w *world) leave(s *tab) {
	if s.box == nil {
		return
	}
	if w.rnd.IntN(2) == 0 {
		w.do(s, "OK", "UNSELECT")
	} else {
		w.do(s, "OK", "CLOSE")
		if !s.readOnly {
			s.box.drop(func(m *refMsg) bool { return m.flags[`\Deleted`] })
		}
	}
	s.box, s.uids, s.flags = nil, nil, nil
}

func (w *world) create(s *tab) {
	name := fmt.Sprintf("box%d", w.rnd.IntN(5))
	if w.boxes[name] != nil {
		w.do(s, "NO [ALREADYEXISTS]", "CREATE %s", name)
		return
	}
	w.do(s, "OK", "CREATE %s", name)
	w.adopt(name)
}

// remove deletes a mailbox; who has it open is shown an empty one.
func (w *world) remove(s *tab) {
	b := w.pickBox()
	if b.name == "INBOX" || b.name == "Drafts" || b.name == "Trash" {
		w.do(s, "NO", "DELETE %s", b.name)
		return
	}
	b.msgs = nil
	delete(w.boxes, b.name)
	w.do(s, "OK", "DELETE %s", b.name)
	for _, other := range w.tabs {
		if other.box == b {
			w.noop(other)
			other.readOnly = true
			w.do(other, "OK", "UNSELECT")
			other.box, other.uids, other.flags = nil, nil, nil
		}
	}
}

// rename keeps UIDs and UIDVALIDITY.
func (w *world) rename(s *tab) {
	b, name := w.pickBox(), fmt.Sprintf("box%d", w.rnd.IntN(5))
	if !strings.HasPrefix(b.name, "box") || w.boxes[name] != nil {
		return
	}
	w.do(s, "OK", "RENAME %s %s", b.name, name)
	delete(w.boxes, b.name)
	b.name = name
	w.boxes[name] = b
	w.compare(name)
}

func (w *world) counters(*tab) { w.compare(w.pickBox().name) }

// status asks for the counters of a mailbox.
func (w *world) status(s *tab, name string) map[string]string {
	w.t.Helper()
	for _, r := range w.do(s, "OK", "STATUS %s (MESSAGES UNSEEN UIDNEXT UIDVALIDITY SIZE)", name) {
		if _, items, found := strings.Cut(r, "("); found && strings.HasPrefix(r, "* STATUS") {
			f := strings.Fields(strings.TrimSuffix(items, ")"))
			out := map[string]string{}
			for i := 0; i+1 < len(f); i += 2 {
				out[f[i]] = f[i+1]
			}
			return out
		}
	}
	w.failf("no STATUS of %s", name)
	return nil
}

func (w *world) compare(name string) {
	b := w.boxes[name]
	unseen, size := 0, 0
	for _, m := range b.msgs {
		size += len(m.body)
		if !m.flags[`\Seen`] {
			unseen++
		}
	}
	got := w.status(w.tabs[0], name)
	want := map[string]string{"MESSAGES": strconv.Itoa(len(b.msgs)), "UNSEEN": strconv.Itoa(unseen), "UIDNEXT": strconv.Itoa(b.next),
		"UIDVALIDITY": b.validity, "SIZE": strconv.Itoa(size)}
	if !maps.Equal(got, want) {
		w.failf("STATUS %s: %v, want %v", name, got, want)
	}
}

// restart stops the server and starts it again on the same files.
func (w *world) restart(*tab) {
	w.log = append(w.log, "restart")
	w.stop()
	w.start()
	for i := range w.tabs {
		w.tabs[i] = w.login()
	}
	for name := range w.boxes {
		w.compare(name)
	}
}

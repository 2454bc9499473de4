package boltstore

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

const (
	maxKeywords = 10_000
	maxFlagSets = 60_000
)

// flagTable interns the flag sets of an account. It grows only. The writer alone
// changes it; others see what is published, which is what is on disk.
type flagTable struct {
	sets     []flagSet
	ids      map[string]mailbox.FlagSet // by text
	spelling map[string]imap.Flag       // of keywords, by lower case: the first one seen
	keywords []string                   // keys of spelling, in order of coming
	shown    atomic.Pointer[[]flagSet]
}

type flagSet struct {
	text  string // members joined by blanks: the stored form
	flags []imap.Flag
	seen  bool
}

func newFlagTable() *flagTable {
	t := &flagTable{ids: map[string]mailbox.FlagSet{}, spelling: map[string]imap.Flag{}}
	t.add("")
	t.publish()
	return t
}

// add appends the set with this stored form.
func (t *flagTable) add(text string) mailbox.FlagSet {
	set := flagSet{text: text}
	for f := range strings.FieldsSeq(text) {
		set.flags = append(set.flags, imap.Flag(f))
		set.seen = set.seen || f == string(imap.FlagSeen)
		t.learn(imap.Flag(f))
	}
	id := mailbox.FlagSet(len(t.sets))
	t.sets = append(t.sets, set)
	t.ids[text] = id
	return id
}

func (t *flagTable) learn(f imap.Flag) {
	low := strings.ToLower(string(f))
	if _, known := t.spelling[low]; f[0] == '\\' || known {
		return
	}
	t.spelling[low] = f
	t.keywords = append(t.keywords, low)
}

// mark is a state to which cut returns.
type mark struct{ sets, keywords int }

func (t *flagTable) mark() mark { return mark{len(t.sets), len(t.keywords)} }

func (t *flagTable) cut(m mark) {
	for _, s := range t.sets[m.sets:] {
		delete(t.ids, s.text)
	}
	for _, k := range t.keywords[m.keywords:] {
		delete(t.spelling, k)
	}
	// Published readers share the memory below; what is cut was never published.
	t.sets, t.keywords = t.sets[:m.sets:m.sets], t.keywords[:m.keywords]
}

// publish shows the present sets to readers.
func (t *flagTable) publish() {
	if old := t.shown.Load(); old != nil && len(*old) == len(t.sets) {
		return
	}
	sets := t.sets
	t.shown.Store(&sets)
}

func (t *flagTable) members(id mailbox.FlagSet) []imap.Flag {
	if sets := *t.shown.Load(); int(id) < len(sets) {
		return sets[id].flags
	}
	return nil
}

// canonical returns flags without duplicates, system flags first, then keywords
// in the account's own spelling, sorted; and \Deleted apart. \Recent is passed
// over: it is not a flag that can be set (RFC 9051 section 2.3.2).
func (t *flagTable) canonical(flags []imap.Flag) (set []imap.Flag, deleted bool, err error) {
	for _, f := range flags {
		if strings.EqualFold(string(f), `\Recent`) {
			continue
		}
		f, err := mailbox.CleanFlag(f)
		if err != nil {
			return nil, false, err
		}
		if f == imap.FlagDeleted {
			deleted = true
			continue
		}
		if known, ok := t.spelling[strings.ToLower(string(f))]; ok {
			f = known
		}
		if !slices.ContainsFunc(set, func(o imap.Flag) bool { return strings.EqualFold(string(o), string(f)) }) {
			set = append(set, f)
		}
	}
	slices.SortFunc(set, compareFlags)
	return set, deleted, nil
}

var flagOrder = map[imap.Flag]int{imap.FlagSeen: -4, imap.FlagAnswered: -3, imap.FlagFlagged: -2, imap.FlagDraft: -1}

func compareFlags(a, b imap.Flag) int {
	if d := flagOrder[a] - flagOrder[b]; d != 0 {
		return d
	}
	return strings.Compare(string(a), string(b))
}

// textOf is the stored form of canonical flags.
func textOf(set []imap.Flag) string {
	parts := make([]string, len(set))
	for i, f := range set {
		parts[i] = string(f)
	}
	return strings.Join(parts, " ")
}

// room reports an error when the set with this text may not be added.
func (t *flagTable) room(set []imap.Flag) error {
	unknown := 0
	for _, f := range set {
		if _, ok := t.spelling[strings.ToLower(string(f))]; f[0] != '\\' && !ok {
			unknown++
		}
	}
	if len(t.keywords)+unknown > maxKeywords || len(t.sets) >= maxFlagSets {
		return &mailbox.Error{Op: "flags", Kind: mailbox.TooLarge, Code: "LIMIT", Text: "this account has too many different keywords"}
	}
	return nil
}

// change returns the flags that op makes of old.
func change(old []imap.Flag, op imap.StoreFlagsOp, arg []imap.Flag) []imap.Flag {
	has := func(list []imap.Flag, f imap.Flag) bool {
		return slices.ContainsFunc(list, func(o imap.Flag) bool { return strings.EqualFold(string(o), string(f)) })
	}
	switch op {
	case imap.StoreFlagsAdd:
		return append(slices.Clone(old), arg...)
	case imap.StoreFlagsDel:
		return slices.DeleteFunc(slices.Clone(old), func(f imap.Flag) bool { return has(arg, f) })
	default:
		return arg
	}
}

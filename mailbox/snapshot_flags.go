package mailbox

import "slices"

// FlagUse is a set of flags in use, and the index of the first entry that has it.
type FlagUse struct {
	Flags FlagSet
	First int
}

// FlagSets returns the sets of flags that entries have, each once, in the order of
// their first entries. What is known of chunks that did not change is kept: it costs
// what changed since somebody asked, and a look at each chunk.
func (s *Snapshot) FlagSets() []FlagUse {
	var out []FlagUse
	met := map[FlagSet]struct{}{}
	for _, c := range s.chunks {
		for _, u := range c.flagSets() {
			if _, before := met[u.Flags]; !before {
				met[u.Flags] = struct{}{}
				out = append(out, FlagUse{u.Flags, c.start + u.First})
			}
		}
	}
	return out
}

// flagIndex is FlagSets of the first n entries of a block.
type flagIndex struct {
	n    int
	sets []FlagUse
}

func (c chunk) flagSets() []FlagUse {
	known := c.flags.Load()
	if known != nil && known.n == c.n {
		return known.sets
	}
	x := &flagIndex{n: c.n}
	for i, e := range c.list() {
		if !has(x.sets, e.Flags) {
			x.sets = append(x.sets, FlagUse{e.Flags, i})
		}
	}
	if known == nil || known.n < c.n { // else an older snapshot asks
		c.flags.Store(x)
	}
	return x.sets
}

// has looks at the last one first: neighbours mostly agree.
func has(list []FlagUse, f FlagSet) bool {
	n := len(list)
	return n > 0 && list[n-1].Flags == f || slices.ContainsFunc(list, func(u FlagUse) bool { return u.Flags == f })
}

package imapserver

import "strings"

// baseSubject returns what is left of a decoded subject without the marks that replies,
// forwards and lists put around it (RFC 5256 section 2.1), and whether a mark of a reply
// or of a forward was among them. It is linear in the subject.
func baseSubject(s string) (base string, reply bool) {
	s = singleSpaces(s)
	for {
		var trailer, leader bool
		s, trailer = trimTrailers(s)
		s, leader = trimLeaders(s)
		reply = reply || trailer || leader
		inner, forwarded := cutFold(s, "[fwd:")
		if !forwarded || !strings.HasSuffix(inner, "]") {
			return s, reply
		}
		s, reply = strings.TrimSuffix(inner, "]"), true
	}
}

func isWSP(c rune) bool { return c == ' ' || c == '\t' }

// singleSpaces makes every run of white space one space (step 1).
func singleSpaces(s string) string {
	if !strings.Contains(s, "  ") && !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	space := false
	for _, c := range s {
		if isWSP(c) && space {
			continue
		}
		if space = isWSP(c); space {
			c = ' '
		}
		b.WriteRune(c)
	}
	return b.String()
}

// cutFold cuts a prefix off, whose letters may be of either case.
func cutFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// trimTrailers removes "(fwd)" and spaces from the end (step 2).
func trimTrailers(s string) (rest string, reply bool) {
	const mark = "(fwd)"
	for {
		s = strings.TrimRightFunc(s, isWSP)
		n := len(s) - len(mark)
		if n < 0 || !strings.EqualFold(s[n:], mark) {
			return s, reply
		}
		s, reply = s[:n], true
	}
}

// trimLeaders removes the marks at the beginning (steps 3 to 5): "Re:" and its kin with
// the blobs before and in them, and blobs such as "[list]" unless nothing else is left.
func trimLeaders(s string) (rest string, reply bool) {
	for {
		s = strings.TrimLeftFunc(s, isWSP)
		after, last := trimBlobs(s)
		if next, found := cutReply(after); found {
			s, reply = next, true
			continue
		}
		if after == "" {
			return last, reply
		}
		return after, reply
	}
}

// trimBlobs removes all blobs at the beginning; last is s from the last of them on.
func trimBlobs(s string) (after, last string) {
	last = s
	for {
		next, found := cutBlob(s)
		if !found {
			return s, last
		}
		s, last = next, s
	}
}

// cutBlob cuts a blob off: brackets with anything but brackets in them, and the space
// behind.
func cutBlob(s string) (rest string, found bool) {
	if s == "" || s[0] != '[' {
		return s, false
	}
	i := strings.IndexAny(s[1:], "[]") + 1
	if i < 1 || s[i] != ']' {
		return s, false
	}
	return strings.TrimLeftFunc(s[i+1:], isWSP), true
}

// cutReply cuts "re:", "fw:" or "fwd:" off, which may have a blob before the colon.
func cutReply(s string) (rest string, found bool) {
	for _, mark := range []string{"re", "fwd", "fw"} {
		after, marked := cutFold(s, mark)
		if !marked {
			continue
		}
		after, _ = cutBlob(strings.TrimLeftFunc(after, isWSP))
		return strings.CutPrefix(after, ":")
	}
	return s, false
}

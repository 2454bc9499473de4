package mime

// Walk calls fn for p and what is in it, depth first; fn returns false to stop. path is
// the IMAP part number (RFC 9051 section 6.4.5.1), valid during the call only: called on
// the root of a message, the root of a multipart has the empty path and its parts [1],
// [2]; a message that is no multipart is [1]. The message inside a message/rfc822 part
// has that part's path if it is a multipart, and .1 behind it otherwise, so Find on the
// path of a multipart message inside gives the part around it.
func (p *Part) Walk(fn func(path []int, p *Part) bool) {
	p.walkMessage(nil, fn)
}

// walkMessage visits the top part of a message whose part number is path.
func (p *Part) walkMessage(path []int, fn func([]int, *Part) bool) bool {
	if p.Type != "multipart" {
		path = append(path, 1)
	}
	return p.walk(path, fn)
}

func (p *Part) walk(path []int, fn func([]int, *Part) bool) bool {
	if !fn(path, p) {
		return false
	}
	for i, c := range p.Children {
		var on bool
		if p.Type == "multipart" {
			on = c.walk(append(path, i+1), fn)
		} else {
			on = c.walkMessage(path, fn)
		}
		if !on {
			return false
		}
	}
	return true
}

// Find returns the part an IMAP section part number names, nil if there is none. The
// empty path is the message itself. For a message/rfc822 part the message inside is its
// only child.
func (s *Structure) Find(path []int) *Part {
	p := s.Root
	for i, n := range path {
		if i > 0 && p.Type != "multipart" {
			if len(p.Children) == 0 {
				return nil
			}
			p = p.Children[0] // the message inside
		}
		switch {
		case p.Type == "multipart" && n >= 1 && n <= len(p.Children):
			p = p.Children[n-1]
		case p.Type != "multipart" && n == 1:
		default:
			return nil
		}
	}
	return p
}

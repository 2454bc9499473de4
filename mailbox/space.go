package mailbox

// Space is how much of the disk an account's mail takes, and how much mail the disk
// still takes.
type Space struct {
	Used     int64 // octets of all entries of all mailboxes but views: what STORAGE of RFC 9208 counts, in octets
	Messages int64 // these entries
	Left     int64 // octets of new mail until the disk counts as full; 0: it is full
}

// Full reports whether new mail is refused now. What is about mail that is there
// already (flags, moves, deletions, decisions, outcomes) is still recorded.
func (s Space) Full() bool { return s.Left <= 0 }

// Takes reports whether there is room for new mail of so many octets; 0: of a size that
// is not known yet.
func (s Space) Takes(octets int64) bool { return !s.Full() && s.Left >= octets }

package mailbox

// TextIn says which texts of a message a search is about.
type TextIn int

const (
	// InMessage is every text that searches look at: all header fields and all text,
	// of the message and of what is in it (mime.Structure.EachSearched).
	InMessage TextIn = iota
	// InEnvelope is Subject, From, To and Cc (mime.Structure.EachEnvelopeText).
	InEnvelope
)

// Contents is a set of content numbers (Entry.Content). The nil set is empty.
type Contents struct{ words []uint64 }

// Add adds a number.
func (c *Contents) Add(n uint64) {
	for uint64(len(c.words)) <= n/64 {
		c.words = append(c.words, 0)
	}
	c.words[n/64] |= 1 << (n % 64)
}

// Has reports whether a number is in the set.
func (c *Contents) Has(n uint64) bool {
	return c != nil && n/64 < uint64(len(c.words)) && c.words[n/64]&(1<<(n%64)) != 0
}

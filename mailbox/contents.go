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

// Contents is a set of content numbers (Entry.Content). The nil set is empty. Any number
// may read it while nobody adds. Its size goes by the numbers in it, not by how large
// they are: a restored account goes on far above those that it had.
type Contents struct {
	pages map[uint64]*contentPage // by number / pageBits
	at    uint64                  // of last
	last  *contentPage            // added to; numbers mostly come in order
}

const pageBits = 1 << 12

type contentPage [pageBits / 64]uint64

// Add adds a number.
func (c *Contents) Add(n uint64) {
	if c.last == nil || c.at != n/pageBits {
		c.turnTo(n / pageBits)
	}
	c.last[n%pageBits/64] |= 1 << (n % 64)
}

func (c *Contents) turnTo(at uint64) {
	if c.pages == nil {
		c.pages = map[uint64]*contentPage{}
	}
	if c.pages[at] == nil {
		c.pages[at] = &contentPage{}
	}
	c.at, c.last = at, c.pages[at]
}

// Has reports whether a number is in the set.
func (c *Contents) Has(n uint64) bool {
	if c == nil {
		return false
	}
	p := c.pages[n/pageBits]
	return p != nil && p[n%pageBits/64]&(1<<(n%64)) != 0
}

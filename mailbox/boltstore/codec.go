package boltstore

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// Keys are big-endian so that cursors run in order of number. Values begin with a
// format byte where their layout may grow; fields may be added at the end.

const format1 = 1

var errCodec = errors.New("damaged value")

func key32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
func key64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func entryKey(id mailbox.MailboxID, uid imap.UID) []byte {
	return appendEntryKey(make([]byte, 0, 8), id, uid)
}

func appendEntryKey(b []byte, id mailbox.MailboxID, uid imap.UID) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(id)), uint32(uid))
}

func goneKey(id mailbox.MailboxID, m mailbox.ModSeq) []byte {
	return binary.BigEndian.AppendUint64(key32(uint32(id)), uint64(m))
}

// pairKey is first, NUL, rest: neither holds a NUL in its first part.
func pairKey(first string, rest ...byte) []byte {
	return append(append(append(make([]byte, 0, len(first)+1+len(rest)), first...), 0), rest...)
}

// timeKey orders times; what lies outside the years 1678 to 2261 becomes their
// border, so the zero time comes first.
func timeKey(t time.Time) []byte {
	if t.Year() < 1678 {
		return key64(0)
	}
	if t.Year() > 2261 {
		return key64(1<<64 - 1)
	}
	return key64(uint64(t.UnixNano()) ^ 1<<63)
}

func keyTime(b []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(b)^1<<63)).UTC()
}

// row is an entry as stored: what callers see, and what spares a look at the row of
// its message. Flags are the truth of the message's flags; all its entries agree.
type row struct {
	mailbox.Entry
	shared bool   // the message has other entries
	tagged bool   // the message has a tag
	stored []byte // the value it was read from, valid during the transaction; nil: it is new
}

const (
	bitDeleted = 1 << iota
	bitShared
	bitTagged
)

// entrySize is the fixed size of an entry's row; the UID is in the key.
const entrySize = 52

func appendEntry(b []byte, e *row) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Message))
	b = binary.BigEndian.AppendUint64(b, uint64(e.ModSeq))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Date))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Saved))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Flags))
	b = binary.BigEndian.AppendUint32(b, e.Size)
	b = binary.BigEndian.AppendUint16(b, uint16(e.Zone))
	b = append(b, bit(e.Deleted, bitDeleted)|bit(e.shared, bitShared)|bit(e.tagged, bitTagged), 0)
	return binary.BigEndian.AppendUint64(b, e.Content)
}

func bit(on bool, b byte) byte {
	if on {
		return b
	}
	return 0
}

func decodeEntry(key, b []byte) (row, error) {
	if len(b) < entrySize {
		return row{}, errCodec
	}
	e, err := decodeEntry2(key, b)
	e.Content = binary.BigEndian.Uint64(b[44:])
	e.shared, e.tagged, e.stored = b[42]&bitShared != 0, b[42]&bitTagged != 0, b
	return e, err
}

// isDeleted reports whether the entry of a value has \Deleted.
func isDeleted(b []byte) bool { return len(b) < entrySize || b[42]&bitDeleted != 0 }

// entrySize2 is the size of an entry's row up to schema 2, whose fields it still
// begins with.
const entrySize2 = 44

func decodeEntry2(key, b []byte) (row, error) {
	if len(b) < entrySize2 || len(key) != 8 {
		return row{}, errCodec
	}
	be := binary.BigEndian
	return row{Entry: mailbox.Entry{
		UID:     imap.UID(be.Uint32(key[4:])),
		Message: mailbox.MessageID(be.Uint64(b)),
		ModSeq:  mailbox.ModSeq(be.Uint64(b[8:])),
		Date:    int64(be.Uint64(b[16:])),
		Saved:   int64(be.Uint64(b[24:])),
		Flags:   mailbox.FlagSet(be.Uint32(b[32:])),
		Size:    be.Uint32(b[36:]),
		Zone:    int16(be.Uint16(b[40:])),
		Deleted: b[42]&bitDeleted != 0,
	}}, nil
}

// writer and reader are the variable part: unsigned and signed varints, and
// strings with their length before them.
type writer []byte

func (w *writer) uint(n uint64)   { *w = binary.AppendUvarint(*w, n) }
func (w *writer) int(n int64)     { *w = binary.AppendVarint(*w, n) }
func (w *writer) string(s string) { w.uint(uint64(len(s))); *w = append(*w, s...) }
func (w *writer) bool(b bool) {
	if b {
		*w = append(*w, 1)
	} else {
		*w = append(*w, 0)
	}
}

// reader remembers the first fault; what is read after it is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fault() { r.b, r.err = nil, errCodec }

func (r *reader) format() byte {
	b := r.take(1)
	if len(b) == 0 || b[0] == 0 {
		r.fault()
		return 0
	}
	return b[0]
}

func (r *reader) uint() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.fault()
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *reader) int() int64 {
	n, k := binary.Varint(r.b)
	if k <= 0 {
		r.fault()
		return 0
	}
	r.b = r.b[k:]
	return n
}

// take returns the next n bytes, shared with the input.
func (r *reader) take(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.fault()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) string() string { return string(r.take(r.uint())) }
func (r *reader) bool() bool     { b := r.take(1); return len(b) == 1 && b[0] != 0 }

// box is a mailbox's row as stored: what callers see, and the book-keeping of its
// expunge history.
type box struct {
	mailbox.Mailbox
	goneFloor mailbox.ModSeq // history up to and including this one is forgotten
	goneRows  uint64
}

func encodeBox(m *box) []byte {
	w := writer{format1}
	w.string(m.Name)
	w.uint(uint64(m.UIDValidity))
	w.uint(uint64(m.UIDNext))
	w.uint(uint64(m.HighestModSeq))
	w.string(string(m.SpecialUse))
	w.bool(m.Subscribed)
	w.bool(m.System)
	w.bool(m.Hidden)
	w.uint(uint64(m.Exists))
	w.uint(uint64(m.Unseen))
	w.uint(uint64(m.Deleted))
	w.int(m.Size)
	w.uint(uint64(m.goneFloor))
	w.uint(m.goneRows)
	w.bool(m.View)
	return w
}

func decodeBox(key, b []byte) (*box, error) {
	if len(key) != 4 {
		return nil, errCodec
	}
	r := reader{b: b}
	r.format()
	m := &box{Mailbox: mailbox.Mailbox{
		ID:            mailbox.MailboxID(binary.BigEndian.Uint32(key)),
		Name:          r.string(),
		UIDValidity:   uint32(r.uint()),
		UIDNext:       imap.UID(r.uint()),
		HighestModSeq: mailbox.ModSeq(r.uint()),
		SpecialUse:    imap.MailboxAttr(r.string()),
		Subscribed:    r.bool(),
		System:        r.bool(),
		Hidden:        r.bool(),
		Exists:        uint32(r.uint()),
		Unseen:        uint32(r.uint()),
		Deleted:       uint32(r.uint()),
		Size:          r.int(),
	}}
	m.goneFloor = mailbox.ModSeq(r.uint())
	m.goneRows = r.uint()
	m.View = len(r.b) > 0 && r.bool() // rows written before there were views end here
	return m, r.err
}

// sum is a content address.
type sum [32]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

func parseSum(id string) (s sum, ok bool) {
	if len(id) != 2*len(s) {
		return s, false
	}
	n, err := hex.Decode(s[:], []byte(id))
	return s, err == nil && n == len(s) && s.String() == id
}

// spot is one entry of a message.
type spot struct {
	mailbox mailbox.MailboxID
	uid     imap.UID
}

// stored says where the contents of a message lie. body is the number of its bytes
// and structure (shared by copies), blob their content address, head the octets of
// the header, with which the bytes begin.
type stored struct {
	body uint64
	blob sum
	size int64
	head int64
}

// message is a message's row. What stored says comes first in it, so that reading
// contents decodes nothing else. The stored flags count only while the message has no
// entry; else those of its entries do, and whoever reads the row takes them over.
type message struct {
	stored
	id     mailbox.MessageID
	date   int64
	zone   int16
	flags  mailbox.FlagSet
	header string // Message-ID, for the guard
	tag    string
	spots  []spot
	holds  []string
}

func (m *message) in(id mailbox.MailboxID) (spot, bool) {
	i := slices.IndexFunc(m.spots, func(s spot) bool { return s.mailbox == id })
	if i < 0 {
		return spot{}, false
	}
	return m.spots[i], true
}

func (m *message) dropSpot(s spot) {
	m.spots = slices.DeleteFunc(m.spots, func(o spot) bool { return o == s })
}

func encodeMessage(m *message) []byte {
	w := writer{format1}
	w.uint(m.body)
	w = append(w, m.blob[:]...)
	w.int(m.size)
	w.int(m.head)
	w.int(m.date)
	w.int(int64(m.zone))
	w.uint(uint64(m.flags))
	w.string(m.header)
	w.string(m.tag)
	w.uint(uint64(len(m.spots)))
	for _, s := range m.spots {
		w.uint(uint64(s.mailbox))
		w.uint(uint64(s.uid))
	}
	w.uint(uint64(len(m.holds)))
	for _, h := range m.holds {
		w.string(h)
	}
	return w
}

func decodeMessage(id mailbox.MessageID, b []byte) (*message, error) {
	r := reader{b: b}
	r.format()
	m := &message{id: id, stored: r.stored()}
	m.date = r.int()
	m.zone = int16(r.int())
	m.flags = mailbox.FlagSet(r.uint())
	m.header = r.string()
	m.tag = r.string()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		m.spots = append(m.spots, spot{mailbox.MailboxID(r.uint()), imap.UID(r.uint())})
	}
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		m.holds = append(m.holds, r.string())
	}
	return m, r.err
}

func decodeStored(b []byte) (stored, error) {
	r := reader{b: b}
	r.format()
	return r.stored(), r.err
}

func (r *reader) stored() (s stored) {
	s.body = r.uint()
	copy(s.blob[:], r.take(uint64(len(s.blob))))
	s.size = r.int()
	s.head = r.int()
	return s
}

// blobRow counts who needs a blob. inline: its bytes are in the body bucket under
// number; else in a file.
type blobRow struct {
	number uint64
	refs   uint64
	size   int64
	inline bool
}

func encodeBlob(r blobRow) []byte {
	w := writer{format1}
	w.uint(r.number)
	w.uint(r.refs)
	w.int(r.size)
	w.bool(r.inline)
	return w
}

func decodeBlob(b []byte) (blobRow, error) {
	r := reader{b: b}
	r.format()
	row := blobRow{number: r.uint(), refs: r.uint(), size: r.int(), inline: r.bool()}
	return row, r.err
}

func encodeRecord(rec mailbox.Record) []byte {
	w := writer{format1}
	w.uint(rec.Version)
	w.uint(uint64(len(rec.Index)))
	for _, i := range rec.Index {
		w.string(i)
	}
	return append(w, rec.Value...)
}

// decodeRecord copies: the record outlives the transaction.
func decodeRecord(key string, b []byte) (mailbox.Record, error) {
	r := reader{b: b}
	r.format()
	rec := mailbox.Record{Key: key, Version: r.uint()}
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		rec.Index = append(rec.Index, r.string())
	}
	rec.Value = slices.Clone(r.b)
	return rec, r.err
}

// counters are the account's numbers that only grow.
type counters struct {
	modseq      uint64
	uidvalidity uint64
	mailbox     uint64 // last id given to a mailbox made by a person
	message     uint64 // greatest id that was ever stored
	body        uint64
}

func encodeCounters(c counters) []byte {
	w := writer{format1}
	for _, n := range []uint64{c.modseq, c.uidvalidity, c.mailbox, c.message, c.body} {
		w.uint(n)
	}
	return w
}

func decodeCounters(b []byte) (counters, error) {
	r := reader{b: b}
	r.format()
	c := counters{r.uint(), r.uint(), r.uint(), r.uint(), r.uint()}
	return c, r.err
}

func encodeUIDs(set imap.UIDSet) []byte {
	w := writer{format1}
	for _, r := range set {
		w.uint(uint64(r.Start))
		w.uint(uint64(r.Stop))
	}
	return w
}

func decodeUIDs(b []byte) (imap.UIDSet, error) {
	r := reader{b: b}
	r.format()
	var set imap.UIDSet
	for len(r.b) > 0 {
		set.AddRange(imap.UID(r.uint()), imap.UID(r.uint()))
	}
	if len(set) == 0 { // none is written
		r.fault()
	}
	return set, r.err
}

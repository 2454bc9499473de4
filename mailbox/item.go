package mailbox

import (
	"fmt"
	"time"

	"pizza/internal/mime"
)

// Want says what Store.Read copies of each message.
type Want uint8

const (
	// WantStructure is for Item.Rendered and Item.Structure.
	WantStructure Want = 1 << iota
	// WantHeader is for Item.Header.
	WantHeader
	// WantBody is for Item.Body.
	WantBody
)

// MaxHeader is how many octets of a header Read hands over at most.
const MaxHeader = 1 << 20

// Item is one message as Read hands it over. The item and the bytes that it gives
// are valid during the call only; what is kept is copied.
type Item struct {
	Message MessageID

	// Header is the header at the top of the message as stored, with its empty line:
	// the first HeaderSize octets of the message, but MaxHeader at most.
	Header     []byte
	HeaderSize int64
	// Body is the whole message. Read closes it.
	Body Body
	// Encoded is the stored form of the structure (mime.Encode); nil when the message
	// was added without one.
	Encoded []byte
}

// Rendered returns ENVELOPE, BODY and BODYSTRUCTURE in wire form, without decoding
// anything; NIL for a message without a structure.
func (it *Item) Rendered() (envelope, body, bodyStructure []byte, err error) {
	if it.Encoded == nil {
		none := []byte("NIL")
		return none, none, none, nil
	}
	envelope, body, bodyStructure, err = mime.Rendered(it.Encoded)
	return envelope, body, bodyStructure, it.judge(err)
}

// Structure decodes the structure; one that shares nothing with the item. It is an
// empty one for a message without.
func (it *Item) Structure() (*mime.Structure, error) {
	if it.Encoded == nil {
		return &mime.Structure{}, nil
	}
	s, err := mime.Decode(it.Encoded)
	return s, it.judge(err)
}

// Fields is Structure with nothing but the decoded header fields in it, at a fraction
// of the cost.
func (it *Item) Fields() (*mime.Structure, error) {
	if it.Encoded == nil {
		return &mime.Structure{}, nil
	}
	s, err := mime.DecodeFields(it.Encoded)
	return s, it.judge(err)
}

// Sent is Structure's Date alone, at a fraction of the cost again.
func (it *Item) Sent() (time.Time, error) {
	if it.Encoded == nil {
		return time.Time{}, nil
	}
	t, err := mime.DecodeDate(it.Encoded)
	return t, it.judge(err)
}

func (it *Item) judge(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: "read", Kind: Internal, Err: fmt.Errorf("structure of message %d: %w", it.Message, err)}
}

package mail

import (
	"encoding/json"
)

type mark int

const (
	noMark mark = iota
	markBegin
	markEnd
)

func markKind(line string) mark { return noMark }

// RenderBlock shows the arguments of a call between two marks that carry the nonce.
// The block is readable and reversible; characters that cannot be seen are escaped.
// Arguments whose block is over 4 KB are cut to head, tail, size and sha256; attach
// then says that the whole must be attached.
func RenderBlock(args json.RawMessage, nonce string) (block string, attach bool) { return "", false }

// FindBlock finds the block with the nonce in a reply's whole text (Reading.Text).
func FindBlock(text, nonce string) (block string, found bool) { return "", false }

// DiffBlock says whether got differs from sent in more than wrapping and quoting.
func DiffBlock(sent, got string) (diff string, changed bool) { return "", false }

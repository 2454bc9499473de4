package mailfile

import (
	"bytes"
	"slices"
)

// mbsync marks each message that it files in a Maildir with a header line of its own, by
// which it finds the message again when it was stopped: the field's name and twelve
// characters of base64.
const (
	tuidField  = "X-TUID: "
	tuidLength = 12
)

// withoutTUID is the message without that line: as it was where mbsync had it from. A
// field of the name that is not in mbsync's form stays, and so do several.
func withoutTUID(body []byte) []byte {
	begin, end := -1, -1
	for at := 0; at < len(body); {
		line, _, _ := bytes.Cut(body[at:], []byte("\n"))
		next := min(at+len(line)+1, len(body))
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
			break
		}
		if isTUID(line) {
			if begin >= 0 {
				return body
			}
			begin, end = at, next
		}
		at = next
	}
	if begin < 0 {
		return body
	}
	return slices.Delete(bytes.Clone(body), begin, end)
}

func isTUID(line []byte) bool {
	mark, ok := bytes.CutPrefix(line, []byte(tuidField))
	return ok && len(mark) == tuidLength && !slices.ContainsFunc(mark, func(c byte) bool {
		return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '+' || c == '/')
	})
}

package mailbox

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 1000 // bytes of a mailbox name
	maxLevel = 255  // bytes of one level of it
)

// CleanName checks a mailbox name and returns its stored form: INBOX in any case,
// alone or as the first level, becomes "INBOX"; everything else keeps its bytes.
// Names are UTF-8 without control characters, with "/" between levels, none of
// them empty, at most 255 bytes a level and 1,000 in all. The error is *Error
// Invalid.
func CleanName(name string) (string, error) {
	if why := badName(name); why != "" {
		return "", &Error{Op: "name", Kind: Invalid, Name: name, Text: "a mailbox name " + why, Code: "CANNOT"}
	}
	first, rest, below := strings.Cut(name, "/")
	if !strings.EqualFold(first, "INBOX") {
		return name, nil
	}
	if !below {
		return "INBOX", nil
	}
	return "INBOX/" + rest, nil
}

func badName(name string) string {
	switch {
	case name == "":
		return "cannot be empty"
	case len(name) > maxName:
		return "can have at most 1000 bytes"
	case !utf8.ValidString(name):
		return "must be UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return "cannot hold control characters"
	}
	for level := range strings.SplitSeq(name, "/") {
		if level == "" {
			return "cannot have an empty level"
		}
		if len(level) > maxLevel {
			return "can have at most 255 bytes a level"
		}
	}
	return ""
}

// ParentName returns the name of the level above; "" at the top.
func ParentName(name string) string {
	return name[:max(0, strings.LastIndexByte(name, '/'))]
}

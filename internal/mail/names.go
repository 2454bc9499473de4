package mail

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// maxName is the length of a file name in octets; file systems allow 255.
const maxName = 120

// SafeName makes name fit for a file: the last element of a path in any system's
// writing, without control, invisible and reserved characters, not hidden, at most
// 120 octets with its extension kept. "" becomes "file".
func SafeName(name string) string {
	name = strings.ReplaceAll(name, "\\", "/")
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, oneLine(strings.ToValidUTF8(name, "_")))
	name = strings.TrimRight(strings.TrimLeft(name, ". "), ". ")
	if name == "" {
		return "file"
	}
	stem, ext := splitExt(name)
	if reserved[strings.ToLower(stem)] {
		stem += "_"
	}
	return clipOctets(stem, maxName-len(ext)) + ext
}

// reserved are names of devices on Windows.
var reserved = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true,
	"com1": true, "com2": true, "com3": true, "com4": true, "lpt1": true, "lpt2": true, "lpt3": true}

func splitExt(name string) (stem, ext string) {
	ext = path.Ext(name)
	if len(ext) > 16 || ext == name {
		ext = ""
	}
	return name[:len(name)-len(ext)], ext
}

// clipOctets cuts s to n octets at the end of a character.
func clipOctets(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// names are those in use, in lower case.
type names map[string]bool

// unique makes name safe and different from all before, whatever the letter case.
func (n names) unique(name string) string {
	name = SafeName(name)
	stem, ext := splitExt(name)
	for i := 2; n[strings.ToLower(name)]; i++ {
		suffix := fmt.Sprintf(" (%d)", i)
		name = clipOctets(stem, maxName-len(ext)-len(suffix)) + suffix + ext
	}
	n[strings.ToLower(name)] = true
	return name
}

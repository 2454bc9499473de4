package mime

import (
	"net/mail"
	"strings"
	"time"
)

// dateLayouts are forms seen in mail besides those of RFC 5322, which net/mail reads.
var dateLayouts = []string{
	time.ANSIC,
	time.UnixDate,
	"Mon Jan _2 15:04:05 -0700 2006",
	"Mon Jan _2 15:04:05 2006 -0700",
	time.RFC3339,
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05",
	"2 Jan 2006 15:04:05",
	"2 Jan 2006 15:04",
	"2 Jan 06 15:04:05 -0700",
	"2 January 2006 15:04:05 -0700",
	"2-Jan-2006 15:04:05 -0700",
	"Jan 2, 2006 15:04:05 -0700",
}

// parseDate reads a Date field; the zero time if it cannot. A date without a zone is
// UTC.
func parseDate(v string) time.Time {
	if len(v) > 256 {
		return time.Time{}
	}
	v = strings.Join(strings.Fields(stripComments(v)), " ")
	if t, err := mail.ParseDate(v); err == nil {
		return sane(t)
	}
	tries := []string{v}
	if _, rest, ok := strings.Cut(v, ","); ok {
		tries = append(tries, strings.TrimSpace(rest))
	}
	if i := strings.LastIndexByte(v, ' '); i > 0 {
		// "GMT+0200", "+02:00": a zone that is not quite one.
		zone := strings.Replace(strings.TrimPrefix(strings.TrimPrefix(v[i+1:], "GMT"), "UTC"), ":", "", 1)
		if t, err := mail.ParseDate(v[:i+1] + zone); err == nil {
			return sane(t)
		}
	}
	for _, try := range tries {
		for _, layout := range dateLayouts {
			if t, err := time.Parse(layout, try); err == nil {
				return sane(t)
			}
		}
	}
	return time.Time{}
}

// sane refuses years that are a slip, and zones that cannot be stored.
func sane(t time.Time) time.Time {
	if t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}
	}
	if _, off := t.Zone(); off < -24*3600 || off > 24*3600 {
		return t.UTC()
	}
	return t
}

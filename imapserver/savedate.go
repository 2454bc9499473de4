package imapserver

import (
	"time"

	"pizza/mailbox"
)

// dateTimeLayout is a date-time as the server writes it.
const dateTimeLayout = `"_2-Jan-2006 15:04:05 -0700"`

// savedTime is when the message came into this mailbox (RFC 8514), in the server's zone.
func savedTime(e mailbox.Entry) time.Time { return time.Unix(e.Saved, 0) }

func savedDate(e mailbox.Entry) string {
	if e.Saved == 0 {
		return "NIL"
	}
	return savedTime(e).Format(dateTimeLayout)
}

func savedDay(e mailbox.Entry) int64 { return dayOf(savedTime(e)) }

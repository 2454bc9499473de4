package imapserver

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// Object identifiers (RFC 8474). They are made from what is stored anyway:
//
//   - MAILBOXID of the mailbox's number and its UIDVALIDITY: both survive a rename, and
//     neither is used twice. A restored mailbox has a new UIDVALIDITY, so it is another.
//   - EMAILID of the number of the message's octets and its INTERNALDATE, which copies and
//     moves keep: what never changes of a message must be the same where its EMAILID is
//     (section 5.1), and the date belongs to that.
//   - THREADID of the Message-ID at the root of the message's references, so it never
//     changes and does not depend on what else is in the mailbox or on the order in which
//     mail came. The price: a reply that names only its parent, in In-Reply-To, and whose
//     parent is a reply itself, counts as the beginning of another thread.

func mailboxID(m mailbox.Mailbox) string {
	return "F" + strconv.FormatUint(uint64(m.ID), 10) + "-" + strconv.FormatUint(uint64(m.UIDValidity), 10)
}

// mailboxIDCode is the response code of CREATE; none when the mailbox went meanwhile.
func (c *conn) mailboxIDCode(id mailbox.MailboxID) string {
	all, err := c.mailboxes()
	if err != nil || !c.knows(inCode, "MAILBOXID") {
		return ""
	}
	for _, m := range all {
		if m.ID == id {
			return "MAILBOXID (" + mailboxID(m) + ")"
		}
	}
	return ""
}

func emailID(e mailbox.Entry) string {
	return "M" + strconv.FormatUint(e.Content, 10) + "-" + strconv.FormatInt(e.Date, 36) + "-" + strconv.FormatInt(int64(e.Zone), 36)
}

// threadID reads header fields only. A message that neither refers to another nor can be
// referred to is a thread by itself.
func threadID(s *mime.Structure, e mailbox.Entry) string {
	var root string
	switch refs := references(s.References, s.InReplyTo); {
	case len(refs) > 0:
		root = plainID(refs[0])
	case s.MessageID != "":
		root = plainID(s.MessageID)
	default:
		root = fmt.Sprintf("content %d", e.Content) // a Message-ID has no space
	}
	sum := sha256.Sum256([]byte(root))
	return "T" + base32.StdEncoding.EncodeToString(sum[:15])
}

// objectID reads an identifier; one that is not ours is no error.
func (p *parser) objectID() string {
	s := p.take(func(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '-' })
	if s == "" || len(s) > 255 {
		p.fail("Bad object identifier")
	}
	return s
}

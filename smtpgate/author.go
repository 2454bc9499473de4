package smtpgate

import (
	"strings"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// maxFromField is the longest From or Sender value, in octets.
const maxFromField = 16 << 10

var (
	errNoFrom   = refuse(550, 6, 0, "the message has no From address: say who you are")
	errManyFrom = refuse(550, 6, 0, "the message has more than one From or Sender field")
	errBadFrom  = refuse(550, 6, 0, "the From or Sender field of the message cannot be read")
)

// checkAuthors refuses a message whose From or Sender names an address that the login
// does not own. There must be exactly one From (RFC 5322 section 3.6): a second one
// would let two readers see two authors.
func checkAuthors(h *header, id mailbox.Identity) error {
	from, sender := h.all("from"), h.all("sender")
	switch {
	case len(from) == 0:
		return errNoFrom
	case len(from) > 1 || len(sender) > 1:
		return errManyFrom
	}
	for _, value := range append(from, sender...) {
		list, err := addresses(value)
		if err != nil {
			return err
		}
		for _, a := range list {
			if !id.Owns(a) {
				return notYours(id, a)
			}
		}
	}
	return nil
}

// addresses returns the mailboxes of a From or Sender field, as those who read the
// stored message will see them: the same parser, lenient with names, renders the
// ENVELOPE. A mailbox that is no whole address is nobody's.
func addresses(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, errNoFrom
	}
	if len(value) > maxFromField {
		return nil, errBadFrom
	}
	list := mime.ParseAddresses(value)
	if len(list) == 0 {
		return nil, errBadFrom
	}
	out := make([]string, len(list))
	for i, a := range list {
		if a.Local == "" || a.Host == "" {
			return nil, errBadFrom
		}
		out[i] = a.String()
	}
	return out, nil
}

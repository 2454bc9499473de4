package smtpgate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pizza/mailbox"
)

func TestReplyFor(t *testing.T) {
	t.Parallel()
	const cause = "/var/lib/pizza.db: input/output error"
	fail := func(k mailbox.Kind, text string) error {
		return fmt.Errorf("submit: %w", &mailbox.Error{Op: "op", Kind: k, Name: "name", Text: text, Err: errors.New(cause)})
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"accepted", nil, "250 2.0.0 ok"},
		{"our fault is temporary", fail(mailbox.Internal, ""), "451 4.3.0 internal error, try again later"},
		{"our fault has no text", fail(mailbox.Internal, cause), "451 4.3.0 internal error, try again later"},
		{"unclassified", errors.New(cause), "451 4.3.0 internal error, try again later"},
		{"kind of the future", fail(99, cause), "451 4.3.0 internal error, try again later"},
		{"exists", fail(mailbox.Exists, cause), "451 4.3.0 internal error, try again later"},
		{"unknown recipient", fail(mailbox.NotFound, ""), "550 5.1.1 no such recipient"},
		{"unknown recipient with names", fail(mailbox.NotFound, "did you mean x?"), "550 5.1.1 did you mean x?"},
		{"content", fail(mailbox.Invalid, ""), "554 5.6.0 message not acceptable"},
		{"size", fail(mailbox.TooLarge, ""), "552 5.3.4 message too large"},
		{"overload", fail(mailbox.Transient, ""), "451 4.3.2 busy, try again later"},
		{"conflict", fail(mailbox.Conflict, ""), "451 4.3.2 busy, try again later"},
		{"guard", fail(mailbox.Refused, "a loop"), "550 5.7.1 a loop"},
		{"scope", fail(mailbox.Denied, ""), "550 5.7.1 this login may not do that"},
		{"disk full", fail(mailbox.Full, ""), "452 4.3.1 out of space, try again later"},
		{"shutting down", fmt.Errorf("commit: %w", context.Canceled), "451 4.3.2 try again later"},
		{"late", context.DeadlineExceeded, "451 4.3.2 try again later"},
		{"closed store", mailbox.ErrClosed, "451 4.3.2 busy, try again later"},
		{"our own", fmt.Errorf("data: %w", errNUL), "554 5.6.0 the message has a NUL octet"},
		{"line ends in a text", fail(mailbox.Refused, "a\r\n250 ok\x1b"), "550 5.7.1 a  250 ok?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := replyFor(tt.err).wire()
			got := fmt.Sprintf("%d %d.%d.%d %s", w.Code, w.EnhancedCode[0], w.EnhancedCode[1], w.EnhancedCode[2], w.Message)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(got, "/var/lib") {
				t.Errorf("the cause leaked: %q", got)
			}
			if w.Code/100 != w.EnhancedCode[0] {
				t.Errorf("%q: code and enhanced code disagree", got)
			}
		})
	}
	if got := plain(strings.Repeat("x", 1000)); len(got) > 500 {
		t.Errorf("a text of %d octets is too long for a reply line", len(got))
	}
}

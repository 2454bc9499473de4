//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestThunderbirdDecides is what a person answers with more than one word: an approval
// whose arguments they change in the quoted mail, and a limit that they lift by a number.
func TestThunderbirdDecides(t *testing.T) {
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	tb := startThunderbird(t, s, "none")

	s.must("send", "--subject", "An order", `call write_file {"path":"/local/orders/order.txt","content":"Dear Ann,\n\nplease send 3 pizzas `+
		strings.Repeat("with everything on them ", 8)+`tomorrow.\n  Bob\n"}`)
	tb.do("wait-message", "INBOX", "order.txt", "--timeout", "60")
	tb.editQuoted("INBOX", "3 pizzas", "40 pizzas")
	tb.do("wait-message", "INBOX", "Re: An order", "--timeout", "60")
	wrote(t, dir, "order.txt", "Dear Ann,\n\nplease send 40 pizzas "+strings.Repeat("with everything on them ", 8)+"tomorrow.\n  Bob\n")
	mustContain(t, "what it was told", tb.text("INBOX", "-2"), "Approved with your changes", "send 40 pizzas")

	task := strings.TrimSpace(s.must("send", "--subject", "A walk", "--budget", "calls=2",
		strings.Repeat("call list_folder {\"path\":\"/local\"}\n", 5)+"say I went all the way"))
	tb.do("wait-message", "INBOX", "Go on?", "--timeout", "60")
	mustContain(t, "the question", tb.text("INBOX", "-1"), "Task: A walk", "2 model calls", "continue 5")
	tb.do("reply", "INBOX", "-1", "--body", "continue 4")
	tb.do("wait-message", "INBOX", "Re: A walk", "--timeout", "60")
	mustContain(t, "the result", tb.text("INBOX", "-1"), "I went all the way")
	mustContain(t, "what is told of it", s.must("show", task), "continue 4 by me (by reply)")
	if open := s.list("action"); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
}

// editQuoted replies to the newest message with the word edit, and changes was into now
// in what Thunderbird quotes, as somebody who marks it there and types.
func (t *thunderbird) editQuoted(folder, was, now string) {
	t.tb.Helper()
	began := time.Now()
	var to string
	t.eval(fmt.Sprintf(`await showMessage(findFolder(%q), -1);
		const win = await composeWindow(() => pane().commandController.doCommand("cmd_reply"));
		const page = win.getBrowser().contentDocument;
		const all = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
		let node, at = -1;
		while (at < 0 && (node = all.nextNode())) {
			at = node.data.indexOf(%q);
		}
		typeText(win, "edit");
		page.getSelection().setBaseAndExtent(node, at, node, at + %d);
		page.execCommand("insertText", false, %q);
		return (await complete(win, { body: "", attach: [] })).to`, folder, was, len(was), now), &to)
	t.tb.Logf("an edited reply to %s within %s", to, time.Since(began).Round(time.Millisecond))
}

package agent

import (
	"strings"
	"testing"

	"pizza/mailbox"
)

func TestRecipient(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	dec := d.ask(decisionApproval)
	th, _, err := d.a.thread(t.Context(), d.me.Account, dec.Task)
	if err != nil {
		t.Fatal(err)
	}
	ok := mailbox.Kind(-1)
	for _, tt := range []struct {
		name string
		id   mailbox.Identity
		addr string
		want mailbox.Kind
		text string // part of what the person is told
	}{
		{"pizza", d.me, "pizza@localhost", ok, ""},
		{"any case, alias", d.me, "Pizza@Pizza.LocalHost", ok, ""},
		{"angle brackets", d.me, "<pizza@localhost>", ok, ""},
		{"a person", d.me, "bob@localhost", ok, ""},
		{"help", d.me, "pizza+help@localhost", ok, ""},
		{"status", d.me, "pizza+status@localhost", ok, ""},
		{"decision", d.me, "pizza+a." + dec.ID + "@localhost", ok, ""},
		{"decision, upper case", d.me, "PIZZA+A." + strings.ToUpper(dec.ID) + "@LOCALHOST", ok, ""},
		{"thread", d.me, "pizza+t." + th.Token + "@localhost", ok, ""},
		{"decision of somebody else", d.bob, "pizza+a." + dec.ID + "@localhost", mailbox.NotFound, "no such address"},
		{"thread of somebody else", d.bob, "pizza+t." + th.Token + "@localhost", mailbox.NotFound, "no such address"},
		{"unknown token", d.me, "pizza+t.000000000000000@localhost", mailbox.NotFound, "no such address"},
		{"near name", d.me, "pizzza@localhost", mailbox.NotFound, "did you mean pizza@localhost"},
		{"near person", d.me, "bop@localhost", mailbox.NotFound, "bob@localhost"},
		{"near tag", d.me, "pizza+hlep@localhost", mailbox.NotFound, "pizza+help@localhost"},
		{"not yet", d.me, "pizza+in2h@localhost", mailbox.NotFound, "no such address"},
		{"hostile", d.me, "x\r\n250 ok@localhost", mailbox.NotFound, "no such address x??250"},
		{"no relay", d.me, "bob@example.com", mailbox.Refused, "no relay"},
		{"send to pizza", sendOnly(d.me), "pizza@localhost", ok, ""},
		{"send to a person", sendOnly(d.me), "bob@localhost", ok, ""},
		{"send decides never", sendOnly(d.me), "pizza+a." + dec.ID + "@localhost", mailbox.Denied, "may only send"},
		{"send joins never", sendOnly(d.me), "pizza+t." + th.Token + "@localhost", mailbox.Denied, "may only send"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := d.a.Recipient(t.Context(), tt.id, tt.addr)
			if tt.want == ok {
				if err != nil {
					t.Fatalf("Recipient(%q) = %v, want nil", tt.addr, err)
				}
				return
			}
			if !isKind(err, tt.want) || !strings.Contains(textOfError(err), tt.text) {
				t.Errorf("Recipient(%q) = %v, want %v with %q", tt.addr, err, tt.want, tt.text)
			}
		})
	}
}

// Whatever stands in RCPT TO, the answer is one short line of ASCII.
func FuzzNoSuchAddress(f *testing.F) {
	for _, s := range []string{"", "@", "<>", "x@", "@localhost", "pizza+a.@localhost", "\"a b\"@localhost", "\xff\x00@localhost", strings.Repeat("a", 5000)} {
		f.Add(s)
	}
	a := &Agent{opt: Options{Accounts: people{{ID: "a1", Login: "me"}}, Domain: "localhost"}}
	f.Fuzz(func(t *testing.T, addr string) {
		user, domain := splitAddress(addr)
		if a.ourDomain(domain) && user == pizzaUser {
			return
		}
		text := textOfError(a.noSuchAddress(t.Context(), user))
		if len(text) > 400 || strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			t.Errorf("%q: %q", addr, text)
		}
	})
}

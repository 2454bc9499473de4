package mail

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden mails anew")

// The mails of testdata are what a person gets, byte for byte.
func TestGoldenMails(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Outgoing{"approval": goldenApproval(), "unknown": goldenUnknown(), "result": goldenResult(), "failure": goldenFailure()} {
		var buf bytes.Buffer
		if err := Compose(&buf, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".eml")
		if *update {
			if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), want) {
			t.Errorf("%s differs (-update writes it anew):\n%s", name, diffLines(strings.Split(string(want), "\r\n"), strings.Split(buf.String(), "\r\n")))
		}
	}
}

func goldenApproval() Outgoing {
	o := outgoing()
	o.Subject = ApprovalSubject("Write 13 bytes to /local/notes/a.txt")
	o.Plain, o.HTML, _ = ApprovalText(Approval{Task: "The orders",
		Sentence: "Write 13 bytes to /local/notes/a.txt, a new file", Tool: "write_file", Nonce: "k3v9x2", Expires: noon,
		Args:         json.RawMessage(`{"content":"Grüße\nhello\u202e","path":"/local/notes/a.txt"}`),
		ReplyAddress: "pizza+a.k3v9x2@localhost", Subject: o.Subject, Reason: "You asked for a note.",
	})
	return o
}

func goldenUnknown() Outgoing {
	o := outgoing()
	o.Subject = UnknownSubject("Delete /local/notes/a.txt")
	o.Plain, o.HTML, _ = UnknownText(Unknown{
		Sentence: "Delete /local/notes/a.txt", Tool: "delete_file", Nonce: "k3v9x2", Started: noon, Expires: noon.AddDate(0, 0, 7),
		Args: json.RawMessage(`{"path":"/local/notes/a.txt"}`), ReplyAddress: "pizza+a.k3v9x2@localhost", Subject: o.Subject,
	})
	return o
}

func goldenResult() Outgoing {
	o := outgoing()
	o.Markdown = "# Done\n\nI read **two** files, see [the notes](https://example.com/notes).\n\n- a.txt\n- b.txt\n"
	o.Footer = FooterText(Usage{Model: "runbook:mail", Steps: 2})
	o.Attachments = []OutAttachment{file("Übersicht.txt", "text/plain", "hello\n")}
	return o
}

func goldenFailure() Outgoing {
	o := outgoing()
	o.Markdown = FailureText(Failure{Class: "auth", Model: "openai:gpt", Detail: "Incorrect API key", Tries: 1, Task: "abcdefghjk"})
	return o
}

func TestEditedOutsideMarks(t *testing.T) { // A15, with the marks cut away
	t.Parallel()
	block, _ := RenderBlock(json.RawMessage(`{"amount":40,"note":"a long value that is wrapped by some program","to":"bob"}`), "k3v9x2")
	for _, tt := range []struct {
		name, text string
		want       string
	}{
		{"whole quote", "approve\n" + quoteOf(block), ""},
		{"edited", "approve\n> amount: 30\n> to: bob", "- amount: 40\n+ amount: 30"},
		{"edited, capital key", "approve\n> Amount: 30", "- Amount: 40\n+ Amount: 30"},
		{"wrapped", "approve\n> note: a long value that\n> is wrapped by some program", ""},
		{"cut within a word", "approve\n> to: bo", "- to: bob\n+ to: bo"},
		{"not quoted", "approve\namount: 30", ""},
		{"other fields", "> On Friday: x\n> Subject: y", ""},
		{"nothing", "", ""},
	} {
		diff, changed := EditedOutsideMarks(block, tt.text)
		if diff != tt.want || changed != (tt.want != "") {
			t.Errorf("%s: %v %q, want %q", tt.name, changed, diff, tt.want)
		}
	}
}

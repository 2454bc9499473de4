//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pt "pizza/providers/providertest"
)

const testKey = "a-key-that-must-not-show-0123456789"

// withModel starts a server whose model is a scripted Chat Completions server.
func withModel(t *testing.T, grant string, turns ...pt.ChatTurn) (*server, *pt.ChatServer) {
	t.Helper()
	chat := pt.NewChat(turns...)
	chat.Key = testKey
	t.Cleanup(chat.Close)
	s := newServer(t, "--grant", grant)
	s.env = []string{"PIZZA_MODEL=openai:test-1", "OPENAI_API_KEY=" + testKey, "PIZZA_OPENAI_BASE_URL=" + chat.URL}
	s.start()
	return s, chat
}

func says(text string) pt.ChatTurn {
	return pt.ChatTurn{Answer: pt.SSE(pt.Text(text), pt.Finish("stop"), pt.Tokens(11, 7))}
}

func calls(deltas ...string) pt.Answer {
	return pt.SSE(append(deltas, pt.Finish("tool_calls"), pt.Tokens(20, 5))...)
}

// TestModelRoundTrip: a model over the wire calls tools, two at once, wants to write,
// is approved, loses a stream in the middle, gets an error in another, and answers.
func TestModelRoundTrip(t *testing.T) {
	t.Parallel()
	dir, grant := grantFolder(t)
	write := `{"path":"/local/orders/new.txt","content":"one Funghi"}`
	s, chat := withModel(t, grant,
		pt.ChatTurn{Answer: calls(
			pt.ToolDelta(0, "call_a", "list_folder", `{"path":"/local/orders"}`),
			pt.ToolDelta(1, "call_b", "read_file", `{"path":"/local/orders/today.txt"}`))},
		pt.ChatTurn{Answer: calls(pt.ToolDelta(0, "call_c", "write_file", write)).Cut(150)},
		pt.ChatTurn{Answer: pt.SSE(pt.Text("I was about to"), `{"error":{"message":"overloaded","type":"overloaded_error"}}`)},
		pt.ChatTurn{Answer: calls(pt.ToolDelta(0, "call_c", "write_file", write))},
		says("I wrote the new order down."),
	)
	task := strings.TrimSpace(s.must("send", "--subject", "New order", "please write down one Funghi"))
	open := s.await("action", "approval", 1)[0]
	s.must("approve", open.Decision)
	s.await("inbox", "result", 1)
	wrote(t, dir, "new.txt", "one Funghi")
	shown := s.must("show", task)
	mustContain(t, "show", shown, "I wrote the new order down.", "openai:test-1")
	if err := chat.Err(); err != nil {
		t.Errorf("a request was wrong: %v", err)
	}
	last := chat.Requests()[len(chat.Requests())-1]
	mustContain(t, "the last request", string(last.Body), "2 Margherita", "please write down one Funghi")
	noSecret(t, s)
}

// TestWrongKey: a wrong key becomes one mail that says what to do, without the key; the
// tasks wait, and go on when the provider accepts it.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	_, grant := grantFolder(t)
	wrong := pt.ChatTurn{Answer: pt.Status(401, "", `{"error":{"message":"Incorrect API key provided: `+testKey+`"}}`)}
	s, chat := withModel(t, grant, wrong, says("first"), says("second"))
	for range 2 {
		_, stderr, code := s.run("", "send", "--wait", "hello")
		if code != 3 {
			t.Errorf("send --wait: exit %d, want 3", code)
		}
		mustContain(t, "standard error", stderr, "waits for the key of openai", "Incorrect API key provided")
	}
	notice := s.await("inbox", "notice", 1)
	mustContain(t, "show", s.must("show", notice[0].Task), "waiting for the key of openai")
	if n := len(chat.Requests()); len(notice) != 1 || n != 1 {
		t.Errorf("%d notices, %d calls", len(notice), n)
	}
	s.stop()
	s.start() // as with another key in the environment
	s.await("inbox", "result", 2)
	noSecret(t, s)
}

// TestKeyFile: a task waits for a key that settings.json refers to, and goes on without a
// new start when the file is there.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	chat := pt.NewChat(says("with the key"))
	chat.Key = testKey
	t.Cleanup(chat.Close)
	s := newServer(t)
	s.env = nil
	key := filepath.Join(t.TempDir(), "key")
	s.settings(`{"model": "house:test-1", "providers": {"house": {"base_url": "` + chat.URL + `", "key": "file:` + key + `"}}}`)
	s.start()
	_, stderr, code := s.run("", "send", "--wait", "hello")
	if code != 3 {
		t.Errorf("send --wait: exit %d, want 3", code)
	}
	mustContain(t, "standard error", stderr, "waits for the key of house")
	if err := os.WriteFile(key, []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.await("inbox", "result", 1)
}

// noSecret looks for the key in everything the server wrote.
func noSecret(t *testing.T, s *server) {
	t.Helper()
	err := filepath.WalkDir(s.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), testKey) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(s.log.String(), testKey) {
		t.Error("the output holds the key")
	}
}

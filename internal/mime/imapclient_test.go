package mime

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// TestClientReadsRenderedItems shows the rendered items of the corpus to another
// implementation's parser.
func TestClientReadsRenderedItems(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(corpus)
	for _, file := range files {
		msg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, string(msg))
		got := fetchByClient(t, s)
		if got.Envelope == nil || got.BodyStructure == nil {
			t.Fatalf("%s: nothing was read", file)
		}
		if n, want := len(leaves(got.BodyStructure)), countLeaves(s.Root); n != want {
			t.Errorf("%s: %d leaves were read of %d", file, n, want)
		}
	}
}

// fetchByClient answers one FETCH of a client with the rendered items.
func fetchByClient(t *testing.T, s *Structure) *imapclient.FetchMessageBuffer {
	t.Helper()
	server, conn := net.Pipe()
	defer server.Close()
	go func() {
		fmt.Fprint(server, "* PREAUTH [CAPABILITY IMAP4rev1] ready\r\n")
		buf := make([]byte, 4096)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			var tag, cmd string
			if _, err := fmt.Sscan(string(buf[:n]), &tag, &cmd); err != nil {
				return
			}
			if cmd == "FETCH" {
				fmt.Fprintf(server, "* 1 FETCH (ENVELOPE %s BODYSTRUCTURE %s)\r\n", s.Envelope, s.BodyStructure)
			}
			fmt.Fprintf(server, "%s OK done\r\n", tag)
		}
	}()
	c := imapclient.New(conn, nil)
	defer c.Close()
	if _, err := c.Select("INBOX", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	list, err := c.Fetch(imap.SeqSetNum(1), &imap.FetchOptions{Envelope: true, BodyStructure: &imap.FetchItemBodyStructure{Extended: true}}).Collect()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v\n%s\n%s", err, s.Envelope, s.BodyStructure)
	}
	return list[0]
}

func leaves(b imap.BodyStructure) []string {
	var out []string
	b.Walk(func(_ []int, part imap.BodyStructure) bool {
		if p, ok := part.(*imap.BodyStructureSinglePart); ok {
			out = append(out, p.MediaType())
			if p.MessageRFC822 != nil {
				out = append(out, leaves(p.MessageRFC822.BodyStructure)...)
			}
		}
		return true
	})
	return out
}

// countLeaves counts the parts that are no multipart.
func countLeaves(p *Part) int {
	n := 0
	p.Walk(func(_ []int, p *Part) bool {
		if p.Type != "multipart" {
			n++
		}
		return true
	})
	return n
}

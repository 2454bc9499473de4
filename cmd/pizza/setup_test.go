package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command on the web page works from any directory: it names the program and, where
// it is not the usual one, the data root, both as a shell reads them.
func TestPasswordCommand(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := passwordCommand("/srv/my mail/it's", "ann")
	if want := ` password ann --data-root '/srv/my mail/it'\''s'`; !strings.HasSuffix(got, want) || !strings.Contains(got, self) {
		t.Errorf("%s does not end in %s", got, want)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	if got := passwordCommand(filepath.Join(home, ".pizza-bot-oss"), "me"); strings.Contains(got, "--data-root") {
		t.Errorf("%s names the usual data root", got)
	}
}

// A new authority in the place of an older one is told in the log and in the set-up;
// the first one of a data root is nothing to import again.
func TestRenewedAuthorityIsTold(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	set, err := loadSettings(root, serveFlags{})
	if err != nil {
		t.Fatal(err)
	}
	var log, out bytes.Buffer
	a, err := openApp(t.Context(), root, set, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, tt := range []struct {
		hosts []string
		told  bool
	}{{nil, false}, {nil, false}, {[]string{"mail.example"}, true}, {[]string{"mail.example"}, false}} {
		log.Reset()
		out.Reset()
		a.settings.Hostnames = tt.hosts
		if err := a.openCA(); err != nil {
			t.Fatal(err)
		}
		if err := a.printSetup(&out, endpoints{IMAPS: "127.0.0.1:993", User: "me", Domain: "localhost"}); err != nil {
			t.Fatal(err)
		}
		logged := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), a.ca.CertPath())
		if printed := strings.Contains(out.String(), "import it again"); logged != tt.told || printed != tt.told {
			t.Errorf("hosts %v: logged %v, printed %v; want %v\n%s%s", tt.hosts, logged, printed, tt.told, &log, &out)
		}
	}
}

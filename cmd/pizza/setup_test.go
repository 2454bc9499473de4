package main

import (
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

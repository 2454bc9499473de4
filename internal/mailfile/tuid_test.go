package mailfile

import (
	"os"
	"path/filepath"
	"testing"
)

// A Maildir's message loses the line by which mbsync knows it, and nothing else.
func TestMaildirWithoutTUID(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"Subject: a\nX-TUID: abcDEF012+/9\nTo: b\n\nx\n":                      "Subject: a\r\nTo: b\r\n\r\nx\r\n",
		"X-TUID: abcDEF012+/9\n\nX-TUID: abcDEF012+/9\n":                      "\r\nX-TUID: abcDEF012+/9\r\n",
		"Subject: only header\nX-TUID: abcDEF012+/9":                          "Subject: only header\r\n",
		"Subject: a\n\nX-TUID: abcDEF012+/9\n":                                "Subject: a\r\n\r\nX-TUID: abcDEF012+/9\r\n",
		"X-TUID: another's, not mbsync's\n\nx\n":                              "X-TUID: another's, not mbsync's\r\n\r\nx\r\n",
		"X-TUID: abcDEF012+/9\nX-TUID: abcDEF012+/8\n\n":                      "X-TUID: abcDEF012+/9\r\nX-TUID: abcDEF012+/8\r\n\r\n",
		"Subject: a\nX-TUID:\n abcDEF012+/9\nx-tuid: abcDEF012+/9\n\nstays\n": "Subject: a\r\nX-TUID:\r\n abcDEF012+/9\r\nx-tuid: abcDEF012+/9\r\n\r\nstays\r\n",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "cur"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cur", "1.2_3.host,U=4"+infoSep+"2,S"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := Walk(dir, "", func(m Message, err error) error {
			if m.Body != nil {
				got = append(got, string(m.Body))
			}
			return err
		})
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q, %v", file, got, want, err)
		}
	}
}

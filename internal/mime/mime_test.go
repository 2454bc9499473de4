package mime

import (
	"strings"
	"testing"
)

func parse(t testing.TB, msg string) *Structure {
	t.Helper()
	s, err := Parse(strings.NewReader(msg), int64(len(msg)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuick(t *testing.T) {
	msg := "From: Ann <a@b>, \"Smith, J\" <c@d>\r\nTo: x:y@z;\r\nSubject: =?utf-8?Q?h=C3=A9?= x\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\npre\r\n--a\r\n\r\nhello\r\n--a\r\nContent-Type: text/html; charset=\"x\"\r\n\r\nhello\r\nyou\r\n\r\n--a--\r\nepi\r\n"
	s := parse(t, msg)
	t.Logf("%s\n%s\n%s\n%+v", s.Envelope, s.Body, s.BodyStructure, s)
	s.Root.Walk(func(path []int, p *Part) bool {
		t.Logf("%v %q %d", path, msg[p.Body.Start:p.Body.End], p.Lines)
		return true
	})
	d, err := Decode(Encode(s))
	t.Log(d, err)
}

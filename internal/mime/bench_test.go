package mime

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	msg, err := os.ReadFile("../testkit/eml/forward-as-attachment.eml")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct{ name, msg string }{
		{"small", string(msg)},
		{"nested", nested(3000)},
		{"parts", flat(50_000)},
		{"attachment", "Content-Transfer-Encoding: base64\r\n\r\n" + strings.Repeat(base64Line, 100_000)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.msg)))
			b.ReportAllocs()
			for b.Loop() {
				parse(b, bb.msg)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	msg, err := os.ReadFile("../testkit/eml/forward-as-attachment.eml")
	if err != nil {
		b.Fatal(err)
	}
	enc := Encode(parse(b, string(msg)))
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(enc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("rendered", func(b *testing.B) {
		for b.Loop() {
			if _, _, _, err := Rendered(enc); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkHTMLText(b *testing.B) {
	v := strings.Repeat("<table><tr><td style='font-size:14px;color:#333'>some <b>text</b> <a href=https://x.example>x</a></td></tr></table>", 1000)
	b.SetBytes(int64(len(v)))
	for b.Loop() {
		HTMLText(v)
	}
}

const base64Line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0\r\n"

func nested(n int) string {
	var b strings.Builder
	b.WriteString("Subject: deep\r\n")
	for i := range n {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	return b.String()
}

func flat(n int) string {
	return "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", n) + "--b--\r\n"
}

//go:build unix

package mime

import (
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// big makes inputs that are costly for parsers that are not linear.
var big = map[string]func() string{
	"3000 nested multiparts": func() string { return nested(3000) },
	"50,000 parts":           func() string { return flat(50_000) },
	"200,000 delimiters of the innermost": func() string {
		return nested(90) + strings.Repeat("--b89\r\n", 200_000)
	},
	"one boundary at each level": func() string {
		return strings.Repeat("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n", 10_000)
	},
	"lines that begin like delimiters": func() string {
		return "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--c\r\n--\r\n", 200_000)
	},
	"2 MB header line":    func() string { return "Subject: " + strings.Repeat("x", 2<<20) + "\r\n\r\nbody" },
	"2 MB folded header":  func() string { return "Subject: x" + strings.Repeat("\r\n x", 700_000) + "\r\n\r\nbody" },
	"100,000 fields":      func() string { return strings.Repeat("To: a@b\r\n", 100_000) + "\r\n" },
	"2 MB of addresses":   func() string { return "To: " + strings.Repeat("a@b,\r\n ", 300_000) + "\r\n\r\n" },
	"open quotes":         func() string { return "To: " + strings.Repeat(`"a,`, 80_000) + "\r\n\r\n" },
	"open comments":       func() string { return "To: " + strings.Repeat("(", 250_000) + "\r\n\r\n" },
	"open brackets":       func() string { return "To: " + strings.Repeat("a<b,", 60_000) + "\r\n\r\n" },
	"open domains":        func() string { return "To: " + strings.Repeat("a@[", 80_000) + "\r\n\r\n" },
	"route without end":   func() string { return "To: <" + strings.Repeat("@a,", 80_000) + "\r\n\r\n" },
	"open words":          func() string { return "Subject: " + strings.Repeat("=?a?q?x", 37_000) + "\r\n\r\n" },
	"open words, one end": func() string { return "Subject: " + strings.Repeat("=?a?q?x", 37_000) + "?=\r\n\r\n" },
	"parameters":          func() string { return "Content-Type: a/b" + strings.Repeat(";a=b", 60_000) + "\r\n\r\n" },
	"open parameters":     func() string { return "Content-Type: a/b; " + strings.Repeat("a (", 80_000) + "\r\n\r\n" },
	"2231 sections":       func() string { return "Content-Type: a/b" + strings.Repeat(";a*1*=%41", 25_000) + "\r\n\r\n" },
	"junk headers": func() string {
		return "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nx\r\ny\r\n", 100_000)
	},
	"junk messages": func() string {
		return "Content-Type: multipart/digest; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\ny\r\n", 100_000)
	},
	"nested messages":      func() string { return strings.Repeat("Content-Type: message/rfc822\r\n\r\n", 50_000) },
	"one long junk line":   func() string { return "x\r\n" + strings.Repeat(" y\r\n", 300_000) + "z\r\n" },
	"5 MB without newline": func() string { return "A: b\r\n\r\n" + strings.Repeat("x", 5<<20) },
}

// budget is processor time far above what the inputs need (milliseconds), and far below
// what anything quadratic in them would take.
const budget = 2 * time.Second * slowdown

// cpuTime is the processor time this process has used: the machine may be busy.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestTimeIsLinear(t *testing.T) {
	for name, make := range big {
		t.Run(name, func(t *testing.T) {
			msg := make()
			start := cpuTime(t)
			s := parse(t, msg)
			took := cpuTime(t) - start
			t.Logf("%d KB: %v, rendered %d KB", len(msg)>>10, took, (len(s.Envelope)+len(s.BodyStructure))>>10)
			limit := budget
			if strings.HasPrefix(name, "3000") || strings.HasPrefix(name, "50,000") {
				limit = 200 * time.Millisecond * slowdown
			}
			if took > limit {
				t.Errorf("Parse took %v", took)
			}
			check(t, msg, s)
		})
	}
}

// base64Message is a message of one large part that exists only while it is read.
type base64Message struct{ head string }

func (m base64Message) ReadAt(b []byte, off int64) (int, error) {
	for n := 0; n < len(b); {
		if o := off + int64(n); o < int64(len(m.head)) {
			n += copy(b[n:], m.head[o:])
		} else {
			n += copy(b[n:], base64Line[(o-int64(len(m.head)))%int64(len(base64Line)):])
		}
	}
	return len(b), nil
}

func TestMemoryIsBounded(t *testing.T) {
	m := base64Message{"Content-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n"}
	const size = 50 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime(t)
	s, err := Parse(m, size)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	t.Logf("%v, %d KB", cpuTime(t)-start, (after.TotalAlloc-before.TotalAlloc)>>10)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("Parse of 50 MB allocated %d KB", got>>10)
	}
	if want := int64(size - len(m.head)); s.Root.Body.Len() != want {
		t.Errorf("body has %d octets, want %d", s.Root.Body.Len(), want)
	}
	n, err := io.Copy(io.Discard, DecodedBody(m, s.Root))
	perLine := int64(len(base64Line)-2) * 3 / 4
	if want := s.Root.Body.Len() / int64(len(base64Line)) * perLine; err != nil || n < want || n > want+perLine {
		t.Errorf("decoded %d octets, %v; want about %d", n, err, want)
	}
}

func TestHeaderFunctionsAreLinear(t *testing.T) {
	for name, v := range map[string]string{
		"words":    strings.Repeat("=?a?q?x", 40_000),
		"words b":  strings.Repeat("=?utf-8?b?w6k=?= ", 60_000),
		"quotes":   strings.Repeat(`"`, 200_001),
		"parens":   strings.Repeat("(", 200_000),
		"angles":   strings.Repeat("<", 200_000),
		"squares":  strings.Repeat("@[", 100_000),
		"commas":   strings.Repeat("A,", 100_000),
		"ats":      strings.Repeat("a@", 100_000),
		"spaces":   strings.Repeat("a b@c ", 40_000),
		"ids":      strings.Repeat("<", 200_000),
		"colons":   strings.Repeat("a:", 100_000),
		"comments": strings.Repeat("a(b)", 60_000),
	} {
		t.Run(name, func(t *testing.T) {
			start := cpuTime(t)
			DecodeHeader(v)
			ParseAddresses(v)
			messageIDs(v)
			parseDate(v)
			parseContentType(v)
			if took := cpuTime(t) - start; took > budget {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestHTMLTextIsLinear(t *testing.T) {
	for name, v := range map[string]string{
		"nested":        strings.Repeat("<div>", 200_000) + "x",
		"nested quotes": strings.Repeat("<blockquote>x", 80_000),
		"crossed":       strings.Repeat("<b><p>x</b>", 90_000),
		"hidden format": strings.Repeat("<font style=display:none><p>x", 30_000),
		"end tags":      strings.Repeat("<i>", 499) + strings.Repeat("</u></li>", 100_000),
		"links":         strings.Repeat("<a href=http://x>y", 60_000),
		"style":         "<p style=\"" + strings.Repeat("a:b;", 250_000) + "\">x",
		"sheet":         "<style>" + strings.Repeat("@a{", 100_000),
		"rules":         "<style>" + strings.Repeat(".a,", 100_000) + "{display:none}</style>x",
		"pre":           "<pre>" + strings.Repeat("\n", 200_000) + "x",
		"lists":         strings.Repeat("<ul><li>x", 100_000),
		"tables":        strings.Repeat("<table><td>x", 80_000),
		"open tag":      strings.Repeat("<", 100_000) + strings.Repeat("<a ", 300_000),
		"comments":      strings.Repeat("<!--", 250_000),
		"attributes":    "<a " + strings.Repeat("b=c ", 250_000) + ">x",
		"line breaks":   strings.Repeat("<br>", 250_000) + "x",
		"entities":      strings.Repeat("&amp", 250_000),
	} {
		t.Run(name, func(t *testing.T) {
			start := cpuTime(t)
			out, _ := HTMLText(v)
			if took := cpuTime(t) - start; took > budget {
				t.Errorf("took %v", took)
			}
			if len(out) > 20*len(v)+100 {
				t.Errorf("%d octets became %d", len(v), len(out))
			}
		})
	}
}

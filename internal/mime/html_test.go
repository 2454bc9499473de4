package mime
import "testing"
func TestHTMLQuick(t *testing.T) {
	for _, in := range []string{
		`<html><head><title>t</title><style>.x{display:none}</style></head><body><p>Order <b>pizza</b></p><div style="display:none">wire money</div><p class=x>nope</p><ul><li>a<li>b<ul><li>c</ul></ul><ol><li>one<li>two</ol><blockquote>q1<br>q2<blockquote>deep</blockquote></blockquote>after<pre>
a
  b

c</pre><a href="https://evil.example/">https://good.example</a> <a href=https://x.y/>x.y</a><table><tr><td>a<td>b<tr><td>c<td>d</table><td style="font-size:0"><div style="font-size:14px">vis</div></td>`,
		`<p><div hidden></p>secret</div>shown <b><div hidden></b>secret</div>shown2 <p><font style="display:none">a</p><p>b</p></font>shown3`,
		`<span style="color:#fff">w</span><table bgcolor=black><tr><td style="color:white">ok</table>`,
	} {
		s, n := HTMLText(in)
		t.Logf("%d\n%s", n, s)
	}
}

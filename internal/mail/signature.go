package mail

import (
	"regexp"
	"strings"
)

// device is what a footer of a phone or mail program names.
const device = `.{0,40}(i ?phone|ipad|ipod|apple watch|android|mobile|mobil|phone|handy|téléphone|teléfono|telefono|telefon|tablet|smartphone|outlook|samsung|galaxy|huawei|xiaomi|redmi|oneplus|pixel|blackberry|yahoo|gmail|proton|thunderbird|k-9|fairemail|gmx|web\.de|mail)\b.{0,60}`

// footerRE are the lines that phones and mail programs put below a text.
var footerRE = regexp.MustCompile(`(?i)^(` + strings.Join([]string{
	`(sent|posted) (from|via|with|by|using) ` + device,
	`get outlook for .{1,60}`,
	`(diese nachricht wurde )?(von|mit) (meinem|meiner) ` + device + ` gesendet.{0,10}`,
	`(gesendet|geschickt) (von|mit|aus) ` + device,
	`(envoyé|envoyée|envoyés) (de|depuis|à partir de|avec) ` + device,
	`(enviado|enviada) (desde|do|a partir do|con|com|de) ` + device,
	`(inviato|inviata) (da|dal|dallo|con) ` + device,
	`(verzonden|verstuurd) (vanaf|met|via|vanuit) ` + device,
	`skickat från ` + device,
	`sendt fra ` + device,
	`lähetetty ` + device,
	`(wysłane|wysłano) z ` + device,
	`odesláno z ` + device,
	`отправлено (с|из) .{1,60}`,
	`.{0,10}(iphone|ipad|android|スマートフォン).{0,10}から送信.{0,10}`,
	`(发自|從我的|从我的).{1,40}`,
	`나의 .{1,30}에서 보냄`,
}, "|") + `)$`)

// signatureAt returns the index from which on lines (visible text) are a signature:
// from the mark "-- " on (RFC 3676 section 4.3), or the footer of a phone at the end. A
// row of dashes is no mark. len(lines) when there is none.
func signatureAt(lines []string) int {
	end := len(lines)
	for i, l := range lines {
		if l == "-- " {
			end = i
			break
		}
	}
	for range 2 {
		last := end
		for last > 0 && strings.TrimSpace(lines[last-1]) == "" {
			last--
		}
		if last == 0 || !footerRE.MatchString(strings.TrimSpace(strings.Trim(lines[last-1], "*_ "))) {
			break
		}
		end = last - 1
	}
	return end
}

// cutSignature drops the signature of visible text.
func cutSignature(text string) string {
	lines := splitLines(text)
	return strings.Join(lines[:signatureAt(lines)], "\n")
}

package mail

import (
	"regexp"
	"strings"
)

var (
	addressRE   = regexp.MustCompile(`[^\s<>@]+@[^\s<>@]+`)
	clockRE     = regexp.MustCompile(`\b[0-2]?\d[:.h][0-5]\d\b`)
	yearRE      = regexp.MustCompile(`\b(19|20)\d\d\b|[12]\d{3}年|\b\d{1,2}[./-]\d{1,2}[./-](\d\d|\d{4})\b`)
	weekdayRE   = regexp.MustCompile(`(?i)^(on|am|le|el|il|em|op|den|dnia|on) \p{L}{2,10}\.?,? `)
	ruleRE      = regexp.MustCompile(`^[-_=* ]{3,}$`)
	separatorRE = regexp.MustCompile(`^[-_=*]{3,}[ \p{L}\p{M}'’:.]*[-_=*]{2,}:?$|^_{5,}$`)
	beginFwdRE  = regexp.MustCompile(`(?i)^(begin forwarded message|anfang der weitergeleiteten nachricht|début du message (réexpédié|transféré)|inicio del mensaje reenviado|inizio messaggio inoltrato):?$`)
	headerRE    = regexp.MustCompile(`^[*\s|]*(\p{L}[\p{L}\p{M} '’.-]{0,24}?)\s?[*]?\s?[:：]\s?[*]?(?:\s*(.*))$`)
)

// maxIntroduction is the length of a line that may introduce a quote.
const maxIntroduction = 200

// introduction returns how many lines from i on introduce a quote: one to three that
// end with a colon and name a date and an address, in whatever language. 0 if they
// do not. A wrapped introduction is recognised by its first line holding a date and
// its last ending with the colon.
func (s *splitter) introduction(i int) int {
	joined := ""
	for n := 1; n <= 3 && i+n <= len(s.lines); n++ {
		l := s.lines[i+n-1]
		if l.text == "" || l.depth > 0 || len(l.text) > maxIntroduction {
			return 0
		}
		joined = strings.TrimSpace(joined + " " + l.text)
		if n == 1 && !dated(joined) && !named(joined) {
			return 0
		}
		if introduces(joined) {
			return n
		}
		if endsIntroduction(joined) {
			return 0
		}
	}
	return 0
}

func endsIntroduction(s string) bool {
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：")
}

// introduces judges a whole introduction.
func introduces(s string) bool {
	switch {
	case !endsIntroduction(s):
		return full(s) && strings.HasSuffix(s, ">") && addressRE.MatchString(s)
	case full(s):
		return true
	case named(s) && (weekdayRE.MatchString(s) || addressRE.MatchString(s)):
		return true
	}
	return addressRE.MatchString(s) && dated(s)
}

// dated reports whether s holds part of a date.
func dated(s string) bool {
	return clockRE.MatchString(s) || yearRE.MatchString(s) || weekdayRE.MatchString(s)
}

// full reports whether s holds a date with its time, or a date and our name.
func full(s string) bool {
	return yearRE.MatchString(s) && (clockRE.MatchString(s) || named(s) || addressRE.MatchString(s)) ||
		clockRE.MatchString(s) && named(s)
}

// named reports whether our display name or address is in s.
func named(s string) bool { return strings.Contains(strings.ToLower(s), "pizza") }

// headerNames are the names of a header block's lines in the languages of mail
// programs.
var headerNames = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Split(`from,sent,to,cc,bcc,subject,date,reply-to,importance,attachments,
von,gesendet,an,betreff,datum,kopie,wichtigkeit,antwort an,
de,envoyé,à,objet,date,répondre à,enviado,enviado el,para,asunto,fecha,
da,inviato,a,oggetto,data,van,verzonden,aan,onderwerp,
enviada em,enviado em,assunto,från,skickat,till,ämne,fra,sendt,til,emne,dato,
lähettäjä,lähetetty,vastaanottaja,aihe,päiväys,od,wysłano,do,temat,wysłane,
odesláno,komu,předmět,feladó,elküldve,címzett,tárgy,dátum,
kimden,gönderildi,gönderme tarihi,kime,konu,tarih,от,от кого,отправлено,кому,тема,дата,від,надіслано,
差出人,送信日時,送信者,宛先,件名,日付,发件人,发送时间,收件人,主题,抄送,日期,寄件者,收件者,主旨,
보낸 사람,보낸 날짜,받는 사람,제목,날짜`, ",") {
		m[strings.TrimSpace(n)] = true
	}
	return m
}()

// headerBlock reports whether at line i a header block begins, as programs write it
// above a mail they quote without marks or forward: three or more header-like lines
// in any order, of which one holds an address or our name. begin is the line after
// it. A line of dashes, with or without words, may stand above.
func (s *splitter) headerBlock(i int) (begin int, forward, ok bool) {
	j, separated := i, false
	if t := s.lines[i].text; separates(t) {
		separated = true
		forward = strings.IndexFunc(strings.Trim(t, "-_=* "), func(r rune) bool { return r >= 'A' }) >= 0 && !original(t)
		j = s.next(i + 1)
		if j > i+3 {
			return 0, false, false
		}
	}
	n, known, addressed := 0, 0, false
	for ; j < len(s.lines) && n < 12; j++ {
		l := s.lines[j]
		m := headerRE.FindStringSubmatch(l.text)
		if l.depth > 0 || m == nil {
			if n > 0 && l.text != "" && continuesHeader(s.lines[j-1].text, l) {
				continue
			}
			break
		}
		n++
		if headerNames[strings.ToLower(strings.TrimSpace(m[1]))] {
			known++
		}
		addressed = addressed || addressRE.MatchString(l.text) || named(l.text)
	}
	ok = n >= 3 && (known >= 3 || known >= 2 && separated || separated && addressed) && (addressed || separated)
	if !ok && n >= 3 && addressed {
		after := s.next(j)
		ok = after < len(s.lines) && s.lines[after].end >= 0
	}
	return j, forward, ok
}

// separates reports whether t is a line of dashes or words that stands above a header
// block.
func separates(t string) bool {
	if len(t) > 100 {
		return false
	}
	return strings.ContainsRune("-_=*", rune(t[0])) && separatorRE.MatchString(t) || len(t) < 60 && beginFwdRE.MatchString(t)
}

// original reports whether a line of dashes speaks of the original mail, as above a
// reply, and not of a forwarded one.
func original(t string) bool {
	t = strings.ToLower(t)
	return strings.Contains(t, "original") || strings.Contains(t, "ursprüngliche") || strings.Contains(t, "oorspronkelijk")
}

// continuesHeader reports whether l is the wrapped rest of the header line before it:
// a list of addresses goes on.
func continuesHeader(before string, l replyLine) bool {
	return (strings.HasSuffix(before, ";") || strings.HasSuffix(before, ",")) && addressRE.MatchString(l.text)
}

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pizza/providers"
)

const maxMessage = 1000 // characters of a provider's error text that are kept

// Failure is what a provider says about a failed call, in any of the shapes in use.
type Failure struct {
	Code    string // "insufficient_quota", "502"
	Type    string // "server_error"
	Param   string
	Message string
}

// ParseFailure reads an error body: {"error":{...}}, {"error":"text"}, {"message":...},
// {"detail":...}, one of those in an array, plain text or a web page.
func ParseFailure(body []byte) Failure {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		return Failure{Message: plainText(body)}
	}
	if inner := object["error"]; present(inner) {
		return FailureOf(inner)
	}
	return failureFrom(object)
}

// FailureOf reads the value of an error member: an object or a text.
func FailureOf(value json.RawMessage) Failure {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) == nil {
		return failureFrom(object)
	}
	return Failure{Message: scalar(value)}
}

func failureFrom(o map[string]json.RawMessage) Failure {
	f := Failure{Code: scalar(o["code"]), Type: scalar(o["type"]), Param: scalar(o["param"]), Message: scalar(o["message"])}
	var meta map[string]json.RawMessage
	if json.Unmarshal(o["metadata"], &meta) == nil { // OpenRouter: what the upstream said
		f.Message = strings.TrimSuffix(f.Message+": "+scalar(meta["raw"]), ": ")
		if f.Type == "" {
			f.Type = scalar(meta["error_type"])
		}
	}
	if f.Message == "" {
		f.Message = scalar(o["detail"])
	}
	if f.Message == "" {
		f.Message = scalar(o["error"])
	}
	return f
}

// present reports whether a member is there and not null.
func present(v json.RawMessage) bool {
	return len(v) > 0 && string(v) != "null"
}

// scalar is a JSON string's text, or another value as it is written; null is "".
func scalar(v json.RawMessage) string {
	var s string
	switch {
	case !present(v):
		return ""
	case json.Unmarshal(v, &s) == nil:
		return s
	}
	return string(v)
}

var (
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	pageStart = regexp.MustCompile(`(?i)^<(!doctype|html|head|body)`)
)

func plainText(body []byte) string {
	if !pageStart.Match(body) {
		return string(body)
	}
	if m := pageTitle.FindSubmatch(body); m != nil {
		return "the server answered with a web page: " + strings.TrimSpace(string(m[1]))
	}
	return "the server answered with a web page"
}

// Error makes the neutral error of a failure. status is 0 where HTTP itself said
// nothing wrong (an error within a stream or a 200 body).
func (f Failure) Error(status int, header http.Header, redact Redact) *providers.Error {
	code := f.Code
	if code == "" {
		code = f.Type
	}
	message := redact.Clean(f.Message)
	if message == "" && status != 0 {
		message = http.StatusText(status)
	}
	if status >= 300 && status < 400 {
		message = "the server redirects elsewhere, which is not followed: set its address as the base URL"
	}
	return &providers.Error{
		Class:      f.class(status),
		Status:     status,
		Code:       redact.Clean(code),
		Message:    message,
		RetryAfter: RetryAfter(header, time.Now()),
	}
}

// codes are the classes of the providers' own codes and types.
var codes = map[string]providers.Class{
	"context_length_exceeded": providers.ContextLength, "request_too_large": providers.ContextLength,
	"exceed_context_size_error": providers.ContextLength,
	"insufficient_quota":        providers.Auth, "billing_error": providers.Auth, "billing_hard_limit_reached": providers.Auth,
	"authentication_error": providers.Auth, "permission_error": providers.Auth, "invalid_api_key": providers.Auth,
	"rate_limit_exceeded": providers.RateLimit, "rate_limit_error": providers.RateLimit,
	"overloaded_error": providers.Overloaded, "server_error": providers.Overloaded, "api_error": providers.Overloaded,
	"service_unavailable": providers.Overloaded, "engine_overloaded_error": providers.Overloaded,
	"timeout_error": providers.Timeout, "content_filter": providers.Filtered, "content_policy_violation": providers.Filtered,
}

// pattern is a class by words of the message.
type pattern struct {
	class providers.Class
	words *regexp.Regexp
}

var (
	tooLong = regexp.MustCompile(`(?i)maximum context length|context length exceeded|exceeds? the (maximum )?context|prompt is too long|` +
		`exceed context limit|exceed the configured limit of \d+ tokens|input exceeds the context window|input is too long for|too many input tokens|` +
		`exceeds the maximum number of tokens|exceeds the available context size|please reduce the length|exceed(s|ed)? context window`)
	noCredit   = regexp.MustCompile(`(?i)exceeded your current quota|insufficient (quota|credit|balance|funds)|billing`)
	badKey     = regexp.MustCompile(`(?i)(incorrect|invalid|missing|no) (api|x-api)[- ]key|api key (is )?(not valid|invalid|missing)|could not load credentials|security token`)
	moderation = regexp.MustCompile(`(?i)content management policy|content policy|moderation|flagged|guardrail`)
	inText     = []pattern{
		{providers.Auth, noCredit}, {providers.Auth, badKey}, {providers.Filtered, moderation},
		{providers.RateLimit, regexp.MustCompile(`(?i)rate.?limit|too many requests|throttl|quota`)},
		{providers.Timeout, regexp.MustCompile(`(?i)timed? ?out`)},
	}
)

// class applies facts in this order: the provider's code, the HTTP status, words.
func (f Failure) class(status int) providers.Class {
	for _, key := range []string{f.Code, f.Type} {
		if c, ok := codes[strings.ToLower(key)]; ok && !(c == providers.Overloaded && status >= 400 && status < 500) {
			return c
		}
	}
	if status == 0 {
		if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 { // OpenRouter: the status in the body
			status = n
		}
	}
	if status != http.StatusTooManyRequests && tooLong.MatchString(f.Message) {
		return providers.ContextLength
	}
	if status != 0 {
		return f.byStatus(status)
	}
	for _, p := range inText {
		if p.words.MatchString(f.Message) {
			return p.class
		}
	}
	if f.Type == "invalid_request_error" {
		return providers.Invalid
	}
	return providers.Overloaded // it failed on their side after it had begun
}

func (f Failure) byStatus(status int) providers.Class {
	switch {
	case status == 401, status == 402, status == 429 && noCredit.MatchString(f.Message):
		return providers.Auth
	case status == 403 && moderation.MatchString(f.Message):
		return providers.Filtered
	case status == 403:
		return providers.Auth
	case status == 408, status == 504:
		return providers.Timeout
	case status == 413:
		return providers.ContextLength
	case status == 429:
		return providers.RateLimit
	case status >= 500, status == 409, status == 425:
		return providers.Overloaded
	case badKey.MatchString(f.Message):
		return providers.Auth
	case moderation.MatchString(f.Message):
		return providers.Filtered
	}
	return providers.Invalid
}

// maxRetryAfter bounds what a server can ask for. Whether so long a wait is worth it is
// not for this package to say.
const maxRetryAfter = 366 * 24 * time.Hour

// RetryAfter reads retry-after-ms, and Retry-After in seconds or as a date (RFC 9110
// section 10.2.3). A date is taken against the server's own Date where there is one: the
// clocks of the two machines may differ. It is 0 if nothing usable is said.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clamp(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clamp(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		if sent, err := http.ParseTime(h.Get("Date")); err == nil {
			now = sent
		}
		return clamp(at.Sub(now).Seconds())
	}
	return 0
}

func clamp(seconds float64) time.Duration {
	if !(seconds > 0) { // NaN too
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// Redact removes a key from texts that others wrote.
type Redact struct{ Key string }

var looksLikeKey = regexp.MustCompile(`(?i)\b(sk|pk|rk|gsk|xai|key)-[a-z0-9_-]{12,}|\bbearer\s+[a-z0-9._~+/=-]{8,}|\bAIza[a-z0-9_-]{20,}`)

// Clean returns s without the key or anything that looks like one, on one line
// without control characters, and not too long.
func (r Redact) Clean(s string) string {
	if len(r.Key) >= 4 {
		s = strings.ReplaceAll(s, r.Key, "[key]")
	}
	s = looksLikeKey.ReplaceAllString(s, "[key]")
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c)
	}), " ")
	if c := []rune(s); len(c) > maxMessage {
		s = fmt.Sprintf("%s… (%d characters)", string(c[:maxMessage]), len(c))
	}
	return s
}

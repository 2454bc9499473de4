package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// ChatServer is a scripted Chat Completions server on loopback. A request that the
// real API would refuse gets 400 and is kept as a problem, whatever the script says.
type ChatServer struct {
	URL   string // base URL, with /v1
	Key   string // if set, requests without this bearer token get 401
	AnyID bool   // call ids need not be of the common form: the server made them

	srv      *httptest.Server
	mu       sync.Mutex
	turns    []ChatTurn
	next     int
	requests []ChatRequest
	problems []error
}

// ChatTurn is one expected request and its answer.
type ChatTurn struct {
	Check  func(ChatRequest) error // nil: any valid request
	Answer Answer
}

// ChatRequest is a request as it came.
type ChatRequest struct {
	Path   string
	Header http.Header
	Body   []byte
	ChatBody
}

// NewChat starts a server with these turns. Close it.
func NewChat(turns ...ChatTurn) *ChatServer {
	s := &ChatServer{turns: turns}
	s.srv = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.srv.URL + "/v1"
	return s
}

// Close stops the server. Answers that are still held back end.
func (s *ChatServer) Close() {
	s.srv.CloseClientConnections()
	s.srv.Close()
}

// Requests returns the requests so far.
func (s *ChatServer) Requests() []ChatRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ChatRequest(nil), s.requests...)
}

// Err returns what the script did not expect.
func (s *ChatServer) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.problems...)
}

func (s *ChatServer) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.take(ChatRequest{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}).write(w, r)
}

// take records a request and returns the answer to it.
func (s *ChatServer) take(req ChatRequest) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	decoded, err := decodeChat(req.Body)
	req.ChatBody = decoded
	s.requests = append(s.requests, req)
	if s.Key != "" && req.Header.Get("Authorization") != "Bearer "+s.Key {
		return Status(401, "", `{"error":{"message":"Incorrect API key provided: `+strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")+`","type":"invalid_request_error","code":"invalid_api_key"}}`)
	}
	if req.Path != "/v1/chat/completions" {
		err = errors.Join(err, fmt.Errorf("path is %s", req.Path))
	}
	if err == nil {
		err = decoded.validate(s.AnyID)
	}
	if s.next >= len(s.turns) {
		err = errors.Join(err, fmt.Errorf("the script has %d turns", len(s.turns)))
	} else if check := s.turns[s.next].Check; err == nil && check != nil {
		err = check(req)
	}
	s.next++
	if err != nil {
		s.problems = append(s.problems, fmt.Errorf("request %d: %w", s.next, err))
		text, _ := json.Marshal(err.Error()) // a string always encodes
		return Status(400, "", `{"error":{"message":`+string(text)+`,"type":"invalid_request_error","param":null,"code":null}}`)
	}
	return s.turns[s.next-1].Answer
}

// Answer is what goes over the wire, and what goes wrong with it.
type Answer struct {
	Code   int // 0: 200
	Header http.Header
	Body   []byte

	part  bool // only cut bytes are sent, and then
	cut   int
	reset bool // the connection breaks, or
	stall bool // nothing more comes; else the answer just ends
	split int  // bytes a piece; 0: all at once
}

// SSE is a stream of events with these data; a string that begins with ":" or
// "event:" is a line of its own.
func SSE(data ...string) Answer {
	var b strings.Builder
	for _, d := range data {
		switch {
		case strings.HasPrefix(d, ":"), strings.HasPrefix(d, "event:"):
			b.WriteString(d + "\n")
		default:
			b.WriteString("data: " + d + "\n\n")
		}
	}
	return Answer{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte(b.String())}
}

// JSON is a whole body that is not streamed.
func JSON(body string) Answer {
	return Answer{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
}

// Status is a refusal. retryAfter is the Retry-After field, if not empty.
func Status(code int, retryAfter, body string) Answer {
	a := JSON(body)
	a.Code = code
	if retryAfter != "" {
		a.Header.Set("Retry-After", retryAfter)
	}
	return a
}

// Cut ends the answer cleanly after n bytes; a negative n counts from the end.
func (a Answer) Cut(n int) Answer {
	if n < 0 {
		n += len(a.Body)
	}
	a.part, a.cut = true, n
	return a
}

// Reset breaks the connection after n bytes.
func (a Answer) Reset(n int) Answer {
	a = a.Cut(n)
	a.reset = true
	return a
}

// Stall says nothing more after n bytes, until the client goes away.
func (a Answer) Stall(n int) Answer {
	a = a.Cut(n)
	a.stall = true
	return a
}

// Split sends n bytes at a time, also in the middle of a character.
func (a Answer) Split(n int) Answer {
	a.split = n
	return a
}

// CRLF ends lines in CRLF in place of LF.
func (a Answer) CRLF() Answer {
	a.Body = []byte(strings.ReplaceAll(string(a.Body), "\n", "\r\n"))
	return a
}

func (a Answer) write(w http.ResponseWriter, r *http.Request) {
	for k, v := range a.Header {
		w.Header()[k] = v
	}
	if a.Code != 0 {
		w.WriteHeader(a.Code)
	}
	body := a.Body
	if a.part {
		body = body[:min(a.cut, len(body))]
	}
	control := http.NewResponseController(w)
	for len(body) > 0 {
		n := len(body)
		if a.split > 0 {
			n = min(n, a.split)
		}
		if _, err := w.Write(body[:n]); err != nil {
			return // the client is gone
		}
		if err := control.Flush(); err != nil {
			return
		}
		body = body[n:]
	}
	switch {
	case a.stall:
		_ = control.Flush() // the head at least
		<-r.Context().Done()
	case a.reset:
		hangUp(control)
	}
}

// hangUp closes the connection with a reset in place of the end of the body.
func hangUp(control *http.ResponseController) {
	conn, _, err := control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server's way to break a connection
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.SetDeadline(time.Now())
	_ = conn.Close()
}

// Pieces of a stream, as the API sends them.

// Text is a piece of text.
func Text(s string) string {
	return fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, quoted(s))
}

// Delta is a piece with these members.
func Delta(members string) string {
	return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}`
}

// ToolDelta is a piece of a tool call; an empty id or name is left out.
func ToolDelta(index int, id, name, args string) string {
	members := []string{fmt.Sprintf(`"index":%d`, index)}
	if id != "" {
		members = append(members, `"id":`+quoted(id), `"type":"function"`)
	}
	f := []string{`"arguments":` + quoted(args)}
	if name != "" {
		f = append(f, `"name":`+quoted(name))
	}
	members = append(members, `"function":{`+strings.Join(f, ",")+`}`)
	return Delta(`"tool_calls":[{` + strings.Join(members, ",") + `}]`)
}

// Finish ends the reply.
func Finish(reason string) string {
	return fmt.Sprintf(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":%s}]}`, quoted(reason))
}

// Tokens is the last chunk, with usage.
func Tokens(in, out int) string {
	return fmt.Sprintf(`{"id":"c","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, in, out)
}

// Done ends the stream.
const Done = "[DONE]"

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return string(b)
}

package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"pizza/providers"
)

const (
	// MaxReply is the most bytes that are read of one reply.
	MaxReply = 32 << 20

	defaultIdle  = 120 * time.Second
	defaultFirst = 10 * time.Minute
	maxErrorBody = 64 << 10
)

// Client makes the calls of a wire. The zero value is useful. It is safe for
// concurrent use.
type Client struct {
	HTTP  *http.Client  // nil: one without proxy and cookies. Redirects are never followed
	Idle  time.Duration // longest time without a byte within a reply; 0: 120 s
	First time.Duration // longest time until a reply begins (a local model may have to load); 0: 10 min
	Max   int64         // most bytes of a reply; 0: MaxReply

	once sync.Once
	http *http.Client
}

// client is c.HTTP, or a default, that follows no redirect: the key in the header is
// meant for one server.
func (c *Client) client() *http.Client {
	c.once.Do(func() {
		h := http.Client{Transport: &http.Transport{
			Proxy:                 nil, // not from the environment
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   15 * time.Second,
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
			DisableCompression:    true, // events must come when they are sent
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		}}
		if c.HTTP != nil {
			h = *c.HTTP
		}
		h.Jar = nil
		h.Timeout = 0 // a reply may take as long as bytes come
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.http = &h
	})
	return c.http
}

// Response is a reply that has begun. Close it.
type Response struct {
	Header http.Header
	Body   io.ReadCloser // its errors are *providers.Error, or ctx's when ctx ended
}

// errIdle is the cause with which the watchdog ends a call.
var errIdle = errors.New("no byte came for too long")

// Post sends a JSON body. Any status but 200 is a *providers.Error of the class that
// the body, the status and the headers tell; failure is what the body said.
func (c *Client) Post(ctx context.Context, to string, header http.Header, body []byte, redact Redact) (*Response, Failure, error) {
	call, cancel := context.WithCancelCause(ctx)
	dog := time.AfterFunc(orDefault(c.First, defaultFirst), func() { cancel(errIdle) })
	end := func() { dog.Stop(); cancel(nil) }
	req, err := http.NewRequestWithContext(call, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		end()
		return nil, Failure{}, &providers.Error{Class: providers.Invalid, Message: "the base URL is not usable"}
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client().Do(req)
	s := &stream{ctx: ctx, call: call, end: end, dog: dog, idle: orDefault(c.Idle, defaultIdle), max: orDefault(c.Max, MaxReply), redact: redact}
	if err != nil {
		err = s.failed(err)
		end()
		return nil, Failure{}, err
	}
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		defer s.Close()
		text, _ := io.ReadAll(io.LimitReader(s, maxErrorBody)) // what came of it is enough
		if ctx.Err() != nil {
			return nil, Failure{}, ctx.Err()
		}
		f := ParseFailure(text)
		return nil, f, f.Error(resp.StatusCode, resp.Header, redact)
	}
	return &Response{Header: resp.Header, Body: s}, Failure{}, nil
}

func orDefault[T ~int64](v, other T) T {
	if v > 0 {
		return v
	}
	return other
}

// stream is the body of a response under the watchdog and the size limit. It has
// the call's contexts because io.Reader has none.
type stream struct {
	ctx, call context.Context
	end       func()
	dog       *time.Timer
	idle      time.Duration
	redact    Redact
	body      io.ReadCloser
	read, max int64
}

func (s *stream) Read(p []byte) (int, error) {
	s.dog.Reset(s.idle)
	n, err := s.body.Read(p)
	s.read += int64(n)
	switch {
	case s.read > s.max:
		return n, &providers.Error{Class: providers.Failed, Message: fmt.Sprintf("the reply is larger than %d MiB", s.max>>20), Partial: true}
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	}
	return n, s.failed(err)
}

// Close ends the call, also one whose reply has not ended.
func (s *stream) Close() error {
	s.end()
	return s.body.Close()
}

// failed gives a transport error its class.
func (s *stream) failed(err error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	e := &providers.Error{Class: providers.Network, Partial: s.read > 0}
	if errors.Is(context.Cause(s.call), errIdle) {
		e.Class, e.Message = providers.Timeout, "the server was silent for too long"
		return e
	}
	var ue *url.Error
	var at string
	if errors.As(err, &ue) {
		err, at = ue.Err, hostOf(ue.URL)
		if ue.Timeout() {
			e.Class = providers.Timeout
		}
	}
	e.Message = s.redact.Clean(reason(err, at))
	return e
}

// hostOf is host and port of a URL. The rest may hold what is nobody's business.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the server"
	}
	port := u.Port()
	if port == "" && u.Scheme == "http" {
		port = "80"
	} else if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// reason says in words what went wrong with a connection to at.
func reason(err error, at string) string {
	var unknown x509.UnknownAuthorityError
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "cannot connect to " + at + ": " + dns.Err
	case errors.As(err, &unknown):
		return "the server's certificate is signed by an unknown authority"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed in the middle"
	case errors.As(err, &op) && op.Op == "dial":
		return "cannot connect to " + at + ": " + strings.TrimPrefix(op.Err.Error(), "connect: ")
	}
	return err.Error()
}

// Package web is the console over HTTP. For now it says how to connect a mail program,
// and nothing that needs a sign-in: people work in their mail program.
//
// It serves pages that work without JavaScript, with a content security policy that
// allows no script at all, and answers only to the names it is known by, so that a web
// page elsewhere cannot reach it under a name of its own (DNS rebinding). Requests that
// change something must not come from another origin. The account's password is never
// shown.
//
// GET /healthz and GET /metrics are for machines.
//
// Concurrency: the handler is safe for concurrent use. Of this module the package
// imports nothing; what it shows is passed in.
package web

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

//go:embed templates static
var files embed.FS

// Options are what the console shows and answers to.
type Options struct {
	Info      func() ConnectInfo             // how to connect, asked for each page
	Ready     func() bool                    // nil: always ready
	Metrics   func(context.Context) []Metric // further metrics; nil: none
	Hostnames []string                       // names and addresses it answers to beside those of loopback
	Log       *slog.Logger                   // nil: nothing is logged
}

// ConnectInfo is how to connect a mail program.
type ConnectInfo struct {
	User   string // login, as in "me"
	Domain string // of the addresses, as in "localhost"
	Host   string // server name to enter; empty: "localhost"

	// Ports, empty where a server is off. IMAP and SMTP offer STARTTLS; IMAPS and SMTPS
	// begin with TLS.
	IMAP, IMAPS, SMTP, SMTPS string

	Password    string // command that prints the password; empty: "pizza password" and the user
	CAPath      string // file of the certificate authority to trust
	Fingerprint string // its SHA-256 fingerprint
}

// server is the state behind the routes.
type server struct {
	opts     Options
	pages    *template.Template
	hosts    map[string]bool
	mux      *http.ServeMux
	requests atomic.Int64
}

// New returns the console.
func New(opts Options) http.Handler {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{
		opts:  opts,
		pages: template.Must(template.ParseFS(files, "templates/*.html")),
		hosts: hostSet(opts.Hostnames),
		mux:   http.NewServeMux(),
	}
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.pattern, r.handle)
	}
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.errorPage(w, r, http.StatusForbidden, "This request came from another site.")
	}))
	return s.guarded(sameOrigin.Handler(http.HandlerFunc(s.dispatch)))
}

// routes is everything there is.
func (s *server) routes() []route {
	return []route{
		{"GET /{$}", s.connect},
		{"GET /ca.pem", s.authority},
		{"GET /static/style.css", s.style},
		{"GET /healthz", s.health},
		{"GET /metrics", s.metrics},
	}
}

type route struct {
	pattern string
	handle  http.HandlerFunc
}

// guarded stands around everything: headers, Host, panics.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		setHeaders(w.Header())
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.opts.Log.Error("web panic", "path", r.URL.Path, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.errorPage(w, r, http.StatusInternalServerError, "Something went wrong here. The log has the details.")
		}()
		if !s.hosts[hostOf(r.Host)] {
			s.errorPage(w, r, http.StatusMisdirectedRequest, "This server does not answer to that name. Use http://localhost with the same port.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// setHeaders allows a page nothing but our own style sheet.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// hostSet are the names that a Host header may have, without port.
func hostSet(extra []string) map[string]bool {
	hosts := map[string]bool{}
	for _, name := range append([]string{"localhost", "pizza.localhost", "127.0.0.1", "::1"}, extra...) {
		hosts[hostOf(name)] = true
	}
	delete(hosts, "")
	return hosts
}

// hostOf is a Host header's host: lower case, without port, brackets and final dot.
func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "."))
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	return host
}

// dispatch runs the route, and gives 404 and 405 our own page.
func (s *server) dispatch(w http.ResponseWriter, r *http.Request) {
	handle, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	probe := &answer{header: http.Header{}, code: http.StatusOK}
	handle.ServeHTTP(probe, r)
	if allow := probe.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
	}
	text := "There is no such page."
	if probe.code == http.StatusMethodNotAllowed {
		text = "That cannot be done here."
	}
	s.errorPage(w, r, probe.code, text)
}

// answer takes what the mux itself would answer, without its text.
type answer struct {
	header http.Header
	code   int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"pizza/web"
)

// printSetup says how to connect a mail program. The password is printed to a
// terminal only: output that is kept in a file must not hold it.
func (a *app) printSetup(w io.Writer, e endpoints) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Pizza Mail %s is ready. Set up a mail program with:\n\n", version)
	rows := func(name, secure, plain string) {
		row := func(addr, security string) {
			if addr == "" {
				return
			}
			host, port := hostPort(addr)
			fmt.Fprintf(&b, "  %-18s server %s   port %-5s  security: %s\n", name, host, port, security)
			name = "      or"
		}
		row(secure, "SSL/TLS")
		row(plain, "STARTTLS, or none on this machine")
	}
	rows("incoming (IMAP)", e.IMAPS, e.IMAP)
	rows("outgoing (SMTP)", e.SMTPS, e.SMTP)
	fmt.Fprintf(&b, "\n  user %s   address %s@%s   password %s\n", e.User, e.User, e.Domain, a.passwordHint(w, e.User))
	fmt.Fprintf(&b, "  certificate authority to trust, for SSL/TLS: %s\n", a.ca.CertPath())
	if e.Web != "" {
		fmt.Fprintf(&b, "  step by step: %s\n", e.Web)
	}
	fmt.Fprintf(&b, "\nThen mail a task to pizza@%s. Model: %s.\n", e.Domain, a.settings.Models.Default())
	for _, g := range a.settings.Folders() {
		access := "read-only"
		if g.Write {
			access = "writing asks you each time"
		}
		fmt.Fprintf(&b, "Granted: %s as /local/%s (%s)\n", g.Path, g.ID, access)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) passwordHint(w io.Writer, user string) string {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		if password, err := readPassword(a.root, user); err == nil {
			return password
		}
	}
	return "as `pizza password` prints it"
}

// hostPort splits an address for showing: loopback is named localhost, which is
// what the certificate and most setup dialogs expect.
func hostPort(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost"
	}
	return host, port
}

// webOptions is what the web page shows.
func (s *servers) webOptions() web.Options {
	a := s.app
	e := s.endpoints()
	port := func(addr string) string {
		_, p := hostPort(addr)
		return p
	}
	info := web.ConnectInfo{
		User: e.User, Domain: e.Domain, Host: "localhost",
		IMAP: port(e.IMAP), IMAPS: port(e.IMAPS), SMTP: port(e.SMTP), SMTPS: port(e.SMTPS),
		CAPath: a.ca.CertPath(), Fingerprint: a.ca.Fingerprint(),
	}
	return web.Options{
		Log: a.log.With("server", "web"), Hostnames: a.settings.Hostnames, Ready: s.ready.Load, Metrics: a.metrics,
		Info: func() web.ConnectInfo { return info },
	}
}

// metrics are the numbers of GET /metrics beside the web server's own.
func (a *app) metrics() []web.Metric {
	return []web.Metric{
		{Name: "pizza_store_commits_total", Help: "Groups of transactions that the store has synced since the start.", Counter: true, Value: float64(a.store.Commits())},
	}
}

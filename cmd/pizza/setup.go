package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"pizza/internal/config"
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
			host, port := hostPort(addr, a.settings.Hostnames)
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
	if a.ca.Renewed() {
		b.WriteString("  This one is new: import it again into programs that trusted an older one.\n")
	}
	if e.Web != "" {
		fmt.Fprintf(&b, "  step by step: %s\n", e.Web)
	}
	fmt.Fprintf(&b, "\nThen mail a task to pizza@%s. Model: %s.\n", e.Domain, a.settings.Models.Default())
	if why := a.settings.keyless(); why != "" {
		fmt.Fprintf(&b, "Tasks will wait: %s.\n", why)
	}
	for _, g := range a.settings.Folders() {
		access := "read-only"
		if g.Write {
			access = "writing asks you each time"
		}
		fmt.Fprintf(&b, "Granted: %s as /local/%s (%s)\n", g.Path, g.ID, access)
	}
	if len(a.settings.Folders()) == 0 {
		b.WriteString("No folder is granted: --grant PATH lets the agent read one, --grant PATH:rw write there too.\n")
	}
	b.WriteString("Ctrl-C stops it; tasks that run go on at the next start.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// passwordCommand prints the password from any directory and environment, as the
// settings of a mail program need it.
func passwordCommand(root, user string) string {
	parts := []string{"pizza", "password", user}
	if self, err := os.Executable(); err == nil {
		parts[0] = self
	}
	noEnv := func(string) string { return "" }
	if usual, err := config.DataRoot("", noEnv); err != nil || usual != root {
		parts = append(parts, "--data-root", root)
	}
	for i, p := range parts {
		if strings.ContainsFunc(p, func(r rune) bool { return !plainInShell(r) }) {
			parts[i] = "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
		}
	}
	return strings.Join(parts, " ")
}

// plainInShell reports whether a shell takes r as it is.
func plainInShell(r rune) bool {
	return r > 0x7f || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("/._-+:@%,", r)
}

func (a *app) passwordHint(w io.Writer, user string) string {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		if password, err := readPassword(a.root, user); err == nil {
			return password
		}
	}
	return "as `" + passwordCommand(a.root, user) + "` prints it"
}

// hostPort splits an address for showing: loopback is named localhost, which is
// what the certificate and most setup dialogs expect, and every address of the machine by
// the first of its names, else by the name that the machine gives itself.
func hostPort(addr string, names []string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, ""
	}
	switch ip := net.ParseIP(host); {
	case ip == nil:
	case ip.IsLoopback():
		host = "localhost"
	case ip.IsUnspecified() && len(names) > 0:
		host = names[0]
	case ip.IsUnspecified():
		host = "localhost"
		if name, err := os.Hostname(); err == nil && name != "" {
			host = name
		}
	}
	return host, port
}

// webOptions is what the web page shows.
func (s *servers) webOptions() web.Options {
	a := s.app
	e := s.endpoints()
	port := func(addr string) string {
		_, p := hostPort(addr, nil)
		return p
	}
	info := web.ConnectInfo{
		User: e.User, Domain: e.Domain, Host: "localhost",
		IMAP: port(e.IMAP), IMAPS: port(e.IMAPS), SMTP: port(e.SMTP), SMTPS: port(e.SMTPS),
		Password: passwordCommand(a.root, e.User),
		CAPath:   a.ca.CertPath(), Fingerprint: a.ca.Fingerprint(),
	}
	return web.Options{
		Log: a.log.With("server", "web"), Hostnames: a.settings.Hostnames, Ready: s.ready.Load, Metrics: a.metrics,
		Info: func() web.ConnectInfo { return info },
	}
}

// metrics are the numbers of GET /metrics beside the web server's own.
func (a *app) metrics(ctx context.Context) []web.Metric {
	list := []web.Metric{
		{Name: "pizza_store_commits_total", Help: "Groups of transactions that the store has synced since the start.", Counter: true, Value: float64(a.store.Commits())},
		{Name: "pizza_start_time_seconds", Help: "When the process began, in seconds since 1970.", Value: float64(began.UnixMilli()) / 1000},
	}
	if rss := residentBytes(); rss > 0 {
		list = append(list, web.Metric{Name: "pizza_resident_bytes", Help: "Memory of the process, in bytes.", Value: rss})
	}
	if a.spans != nil {
		list = append(list, web.Metric{Name: "pizza_spans_dropped_total", Help: "Spans that no collector took.", Counter: true, Value: float64(a.spans.Dropped())})
	}
	for _, f := range a.agent.Figures(ctx) {
		m := web.Metric{Name: f.Name, Help: f.Help, Counter: f.Counter, Labels: f.Labels, Value: f.Value}
		for _, b := range f.Buckets {
			m.Buckets = append(m.Buckets, web.MetricBucket(b))
		}
		list = append(list, m)
	}
	return list
}

// began is when this process did.
var began = time.Now()

// residentBytes is the memory of the process that is in RAM, 0 where it is not to be had
// cheaply (proc_pid_statm(5)).
func residentBytes() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0
	}
	return resident * float64(os.Getpagesize())
}

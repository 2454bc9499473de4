package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	modelName    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}:[!-~]{1,200}$`)
	hostName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
)

// domains are those that addresses of ours can have.
var domains = []string{"localhost", "pizza.localhost"}

// validate notes what is wrong with the values, but for grants, which need the disk.
func (s Settings) validate(p *problems, capabilities []string) {
	s.validateListen(p)
	for i, name := range s.Hostnames {
		if net.ParseIP(name) == nil && !isHost(strings.ToLower(name)) {
			p.add(fmt.Sprintf("hostnames[%d]", i), "%q is neither a host name nor an IP address", name)
		}
	}
	if !slices.Contains(domains, s.Domain) {
		p.add("domain", "%q cannot be the domain of our addresses: this server takes mail for localhost and pizza.localhost only; other names under which the machine is reached belong in hostnames", s.Domain)
	}
	if !modelName.MatchString(s.Model) {
		p.add("model", "%q must be provider:id, as in runbook:mail", s.Model)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Providers)) {
		s.Providers[name].validate(p, name)
	}
	for _, login := range slices.Sorted(maps.Keys(s.Accounts)) {
		s.Accounts[login].validate(p, "accounts."+login, capabilities)
	}
	if s.KeepDays < 0 || s.KeepDays > 36_500 {
		p.add("keep_days", "%d is not between 0 and 36500", s.KeepDays)
	}
	for i, row := range s.Policies {
		for _, wrong := range row.Check() {
			p.add(fmt.Sprintf("policies[%d].%s", i, wrong.Key), "%s", wrong.Text)
		}
	}
	s.Limits.validate(p)
	if _, err := time.LoadLocation(s.TimeZone); err != nil {
		p.add("time_zone", "%q is no time zone: write one as in Europe/Berlin", s.TimeZone)
	}
}

func (a Account) validate(p *problems, key string, capabilities []string) {
	for i, name := range a.HideCapabilities {
		at := fmt.Sprintf("%s.hide_capabilities[%d]", key, i)
		known := slices.ContainsFunc(capabilities, func(c string) bool { return strings.EqualFold(c, name) })
		if capabilities != nil && !known {
			p.add(at, "%q is no capability that can be hidden%s", name, nearest(name, capabilities))
		}
	}
	if !slices.Contains([]string{"", "auto", "server", "client"}, a.SentCopy) {
		p.add(key+".sent_copy", "%q must be auto, server or client", a.SentCopy)
	}
	if a.MonthlyUSD != nil {
		checkUSD(p, key+".monthly_usd", *a.MonthlyUSD)
	}
	if n := a.MonthlyTokens; n != nil && (*n < 0 || *n > maxTokens) {
		p.add(key+".monthly_tokens", "%d is not between 0 and %d", *n, maxTokens)
	}
}

const (
	maxUSD    = 1_000_000
	maxTokens = 1_000_000_000_000
)

func checkUSD(p *problems, key string, usd float64) {
	if !(usd >= 0 && usd <= maxUSD) {
		p.add(key, "%v is not between 0 and %d", usd, maxUSD)
	}
}

func isHost(s string) bool { return len(s) <= 253 && hostName.MatchString(s) }

func (s Settings) validateListen(p *problems) {
	taken := map[string]string{}
	for _, service := range Services {
		key, value := "listen."+service, s.Listen.Get(service)
		if value == "off" {
			continue
		}
		host, port, err := SplitListen(value)
		switch {
		case err != nil:
			p.add(key, "%v", err)
			continue
		case !isLoopback(host) && !isSecure(service):
			p.add(key, "%s can be reached from other machines, and %s is not encrypted there: passwords and mail could be read on the way. %s", value, service, secureInstead(service))
		}
		at := net.JoinHostPort(host, port)
		if other := taken[at]; other != "" && port != "0" {
			p.add(key, "port %s is already that of %s", port, other)
		}
		taken[at] = service
	}
}

func isSecure(service string) bool { return service == "imaps" || service == "smtps" }

func secureInstead(service string) string {
	if service == "web" {
		return "Use a loopback address, and reach it from elsewhere through a TLS proxy or a tunnel"
	}
	return fmt.Sprintf("Use a loopback address here, and %ss for other machines", service)
}

// SplitListen splits "[host:]port". An empty host stands for 127.0.0.1 and ::1.
func SplitListen(value string) (host, port string, err error) {
	port = value
	if strings.Contains(value, ":") {
		if host, port, err = net.SplitHostPort(value); err != nil {
			return "", "", fmt.Errorf("%q must be [host:]port, or off", value)
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%q must be [host:]port, or off: %q is not a port", value, port)
	}
	if _, err := netip.ParseAddr(host); host != "" && host != "localhost" && err != nil {
		return "", "", fmt.Errorf("%q: the host must be an IP address or localhost", value)
	}
	return host, port, nil
}

// isLoopback reports whether only this machine reaches a listener on host.
func isLoopback(host string) bool {
	if host == "" || host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func (v Provider) validate(p *problems, name string) {
	key := "providers." + name
	if !providerName.MatchString(name) {
		p.add(key, "a provider's name has lower-case letters, digits and hyphens, at most 32")
	}
	if v.BaseURL != "" {
		if err := v.checkURL(); err != nil {
			p.add(key+".base_url", "%v", err)
		}
	}
	if v.Key != "" {
		if err := v.Key.check(); err != nil {
			p.add(key+".key", "%v", err)
		}
	}
	for id, n := range v.Windows {
		if id == "" || n < 1000 || n > 100_000_000 {
			p.add(key+".windows", "%q: a window is a number of tokens from 1,000 to 100,000,000, behind the id of a model", id)
		}
	}
}

// checkURL does not repeat the URL: people paste keys into it.
func (v Provider) checkURL() error {
	u, err := url.Parse(v.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must be a URL that begins with https:// or http://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("must have no user, no ? and no #; a secret belongs behind key")
	case u.Scheme == "http" && v.Key != "" && !isLoopback(u.Hostname()):
		return errors.New("must be https: over http to another machine the key could be read on the way")
	}
	return nil
}

func (l Limits) validate(p *problems) {
	checkUSD(p, "limits.usd", l.USD)
	checkUSD(p, "limits.monthly_usd", l.MonthlyUSD)
	for _, r := range []struct {
		key              string
		value, low, high int
	}{
		{"workers", l.Workers, 1, 256},
		{"model_calls", l.ModelCalls, 0, 10_000},
		{"tool_calls", l.ToolCalls, 0, 10_000},
		{"worker_model_calls", l.WorkerModelCalls, 0, 10_000},
		{"worker_tool_calls", l.WorkerToolCalls, 0, 10_000},
		{"tokens", l.Tokens, 0, maxTokens},
		{"minutes", l.Minutes, 0, 1_000_000},
		{"monthly_tokens", l.MonthlyTokens, 0, maxTokens},
		{"worker_depth", l.WorkerDepth, 0, 4},
		{"worker_fanout", l.WorkerFanout, 1, 256},
		{"retry_tries", l.RetryTries, 1, 1000},
		{"retry_hours", l.RetryHours, 1, 720},
		{"call_minutes", l.CallMinutes, 1, 1440},
		{"max_message_mb", l.MaxMessageMB, 1, 1024},
		{"expiry_days", l.ExpiryDays, 1, 365},
		{"reminder_hours", l.ReminderHours, 0, 8760},
		{"move_window_seconds", l.MoveWindowSeconds, 0, 3600},
		{"imap_connections", l.IMAPConnections, 1, 100_000},
		{"connections_per_account", l.ConnectionsPerAccount, 1, 10_000},
		{"smtp_connections", l.SMTPConnections, 1, 100_000},
		{"max_command_kb", l.MaxCommandKB, 8, 1024}, // RFC 7162 section 4: 8192 octets at least
		{"login_seconds", l.LoginSeconds, 5, 3600},
		{"idle_minutes", l.IdleMinutes, 30, 1440}, // RFC 9051 section 5.4
		{"read_seconds", l.ReadSeconds, 10, 3600},
		{"write_seconds", l.WriteSeconds, 10, 3600},
		{"keep_free_mb", l.KeepFreeMB, 0, 1 << 30},
	} {
		if r.value < r.low || r.value > r.high {
			p.add("limits."+r.key, "%d is not between %d and %d", r.value, r.low, r.high)
		}
	}
}

// Package config reads the settings of a data root: settings.json, the environment and
// the command line, in rising order of precedence over the defaults.
//
// Every problem of a file is reported at once, with line and column; unknown keys are
// problems, because a mistyped key that is passed over is a setting that does not
// happen. The file holds no secrets, only references to them, which are resolved when a
// secret is used. It is written 0600 and replaced by rename.
//
// A Watcher re-reads the file when it changes. A file that has become wrong changes
// nothing: the last good settings stay in force; Err and OnError tell why.
//
// Plain-text listeners are for loopback addresses only: passwords and mail would cross
// the network readable by everybody on it.
//
// The package is a leaf: it imports nothing of this module but internal/levenshtein and
// internal/policy.
package config

import (
	"fmt"
	"strings"
	"time"

	_ "time/tzdata" // zones on machines that have none

	"pizza/internal/policy"
)

// FileName is the settings file in the data root.
const FileName = "settings.json"

// Settings are the contents of settings.json. The zero value is not useful: Default is
// what a missing file means, and a key that is missing keeps its default.
type Settings struct {
	// Listen says where the servers listen.
	Listen Listen `json:"listen"`
	// Hostnames are further names or IP addresses under which this machine is reached;
	// the certificate gets them, and the web page answers to them.
	Hostnames []string `json:"hostnames,omitempty"`
	// Domain is the domain of our addresses towards people: localhost, or pizza.localhost
	// for mail programs that refuse a domain without a dot.
	Domain string `json:"domain"`
	// Model is what runs use when nothing else is said, as provider:id.
	Model string `json:"model"`
	// Providers are further sources of models, by the name that Model begins with.
	Providers map[string]Provider `json:"providers,omitempty"`
	// Grants are the folders that the agent may use.
	Grants []Grant `json:"grants,omitempty"`
	// Workers are agents that tasks may give work to, by name.
	Workers map[string]Worker `json:"workers,omitempty"`
	// Policies say which tools may do what: allow, ask or deny. Of those that apply the
	// strictest counts.
	Policies []policy.Row `json:"policies,omitempty"`
	// Limits keep a mistake from becoming expensive.
	Limits Limits `json:"limits"`
	// ActionInInbox also puts open decisions into INBOX, which mail programs announce.
	ActionInInbox bool `json:"action_in_inbox"`
	// KeepDays is after how many days an ended task is forgotten whose mails lie in no
	// mailbox but Trash. 0: never.
	KeepDays int `json:"keep_days,omitempty"`
	// Telemetry says where traces go.
	Telemetry Telemetry `json:"telemetry"`
	// Accounts are settings of single accounts, by login.
	Accounts map[string]Account `json:"accounts,omitempty"`
	// TimeZone is where times are shown and schedules run, as in Europe/Berlin. Empty is
	// the machine's own.
	TimeZone string `json:"time_zone,omitempty"`
}

// Listen has "[host:]port" or "off" for each server. Without a host it is 127.0.0.1 and
// ::1. Port 0 picks a free one.
type Listen struct {
	IMAP  string `json:"imap"`  // IMAP with STARTTLS; loopback only. 2143
	IMAPS string `json:"imaps"` // IMAP under TLS. 2993
	SMTP  string `json:"smtp"`  // submission with STARTTLS; loopback only. 2587
	SMTPS string `json:"smtps"` // submission under TLS. 2465
	Web   string `json:"web"`   // console over HTTP; loopback only. 2080
}

// Provider is a source of models.
type Provider struct {
	// BaseURL is where its interface is, as in https://openrouter.ai/api/v1.
	BaseURL string `json:"base_url"`
	// Key refers to the secret that it wants, if it wants one.
	Key SecretRef `json:"key,omitempty"`
	// Windows are the context windows of its models in tokens, by model id. One that is not
	// here is taken for 128,000.
	Windows map[string]int `json:"windows,omitempty"`
}

// Grant is a folder that the agent may use.
type Grant struct {
	// Path is absolute, on this machine.
	Path string `json:"path"`
	// Write also lets it change files there; each change asks first.
	Write bool `json:"write,omitempty"`
}

// Account is what one account has of its own. The zero value is the default.
type Account struct {
	// Unread shows the mailbox Unread, a view of every unseen message.
	Unread bool `json:"unread,omitempty"`
	// HideCapabilities are IMAP capabilities that this account's programs are not told
	// of, for a program that takes one wrongly.
	HideCapabilities []string `json:"hide_capabilities,omitempty"`
	// SentCopy says who files what the account sends in Sent: auto (the default), server
	// or client.
	SentCopy string `json:"sent_copy,omitempty"`
	// MonthlyUSD and MonthlyTokens are the most that the account's tasks may use in a
	// month; without them those of limits hold. 0: no cap.
	MonthlyUSD    *float64 `json:"monthly_usd,omitempty"`
	MonthlyTokens *int     `json:"monthly_tokens,omitempty"`
}

// Limits of the server and of a run.
type Limits struct {
	Workers           int `json:"workers"`             // runs that work at the same time. 16
	ModelCalls        int `json:"model_calls"`         // model calls of a run before it asks whether to go on. 20; 0: no limit
	ToolCalls         int `json:"tool_calls"`          // tool calls of a run before it asks whether to go on. 40; 0: no limit
	WorkerModelCalls  int `json:"worker_model_calls"`  // model calls of a worker, likewise. 20; 0: no limit
	WorkerToolCalls   int `json:"worker_tool_calls"`   // tool calls of a worker, likewise. 80; 0: no limit
	WorkerDepth       int `json:"worker_depth"`        // how deep work is given on: 0 not at all, 1 by the task itself only. 1
	WorkerFanout      int `json:"worker_fanout"`       // workers that work at the same time for one task or worker. 8
	RetryTries        int `json:"retry_tries"`         // model calls in a row that fail before the run does. 100
	RetryHours        int `json:"retry_hours"`         // hours in which they are tried. 24
	CallMinutes       int `json:"call_minutes"`        // minutes that a tool call may take, unless the tool says. 10
	MaxMessageMB      int `json:"max_message_mb"`      // size of a message, MiB. 50
	ExpiryDays        int `json:"expiry_days"`         // days until an open decision expires. 7
	ReminderHours     int `json:"reminder_hours"`      // hours between reminders of open decisions; 0 sends none. 0
	MoveWindowSeconds int `json:"move_window_seconds"` // seconds in which a decision by move can be taken back. 15

	// Further limits of a run with its workers, likewise. 0: none.
	Tokens  int     `json:"tokens"`  // input and output
	USD     float64 `json:"usd"`     // US dollars, where the provider says what a call costs
	Minutes int     `json:"minutes"` // of work; waits for a person do not count

	// What the tasks of an account may use in a month, where it has no cap of its own. 0: any.
	MonthlyUSD    float64 `json:"monthly_usd"`
	MonthlyTokens int     `json:"monthly_tokens"`

	// Connections of mail programs. What is over a limit is told so: BYE, NO [LIMIT], 421.
	IMAPConnections       int `json:"imap_connections"`        // at once. 2000
	ConnectionsPerAccount int `json:"connections_per_account"` // of IMAP, logged in, of one account. 64
	SMTPConnections       int `json:"smtp_connections"`        // at once. 200
	MaxCommandKB          int `json:"max_command_kb"`          // length of an IMAP command, KiB; a message is none. 64
	LoginSeconds          int `json:"login_seconds"`           // for an IMAP program to log in. 60
	IdleMinutes           int `json:"idle_minutes"`            // without a command, or in IDLE. 35; 30 at least (RFC 9051)
	ReadSeconds           int `json:"read_seconds"`            // without an octet in the middle of a command. 300
	WriteSeconds          int `json:"write_seconds"`           // without an octet taken by the program. 120
	// KeepFreeMB is how much of the disk stays free, MiB: with less, new mail is refused
	// and tasks wait. 0 is 5 % of the disk, and 200 MB at most.
	KeepFreeMB int `json:"keep_free_mb"`
}

// Default is what holds without any setting.
func Default() Settings {
	return Settings{
		Listen: Listen{IMAP: "2143", IMAPS: "2993", SMTP: "2587", SMTPS: "2465", Web: "2080"},
		Domain: "localhost",
		Model:  "runbook:mail",
		Limits: Limits{Workers: 16, ModelCalls: 20, ToolCalls: 40, CallMinutes: 10,
			WorkerModelCalls: 20, WorkerToolCalls: 80, WorkerDepth: 1, WorkerFanout: 8,
			RetryTries: 100, RetryHours: 24, MaxMessageMB: 50, ExpiryDays: 7, MoveWindowSeconds: 15,
			IMAPConnections: 2000, ConnectionsPerAccount: 64, SMTPConnections: 200, MaxCommandKB: 64,
			LoginSeconds: 60, IdleMinutes: 35, ReadSeconds: 300, WriteSeconds: 120},
		ActionInInbox: true,
	}
}

// Services are the names of the listeners, as in flags and settings.
var Services = []string{"imap", "imaps", "smtp", "smtps", "web"}

// Get returns the value of a service by its name; "off" for one that does not exist.
func (l Listen) Get(service string) string {
	if p := l.field(service); p != nil {
		return *p
	}
	return "off"
}

func (l *Listen) field(service string) *string {
	switch service {
	case "imap":
		return &l.IMAP
	case "imaps":
		return &l.IMAPS
	case "smtp":
		return &l.SMTP
	case "smtps":
		return &l.SMTPS
	case "web":
		return &l.Web
	}
	return nil
}

// MaxMessage is the largest message in octets.
func (l Limits) MaxMessage() int64 { return int64(l.MaxMessageMB) << 20 }

// KeepFree is how many octets of the disk stay free; 0: as KeepFreeMB says.
func (l Limits) KeepFree() int64 { return int64(l.KeepFreeMB) << 20 }

// Monthly is the cap of an account's month; 0: none.
func (s Settings) Monthly(login string) (usd float64, tokens int64) {
	usd, tokens = s.Limits.MonthlyUSD, int64(s.Limits.MonthlyTokens)
	if a := s.Accounts[login]; a.MonthlyUSD != nil {
		usd = *a.MonthlyUSD
	}
	if a := s.Accounts[login]; a.MonthlyTokens != nil {
		tokens = int64(*a.MonthlyTokens)
	}
	return usd, tokens
}

// Expiry is how long a decision stays open.
func (l Limits) Expiry() time.Duration { return time.Duration(l.ExpiryDays) * 24 * time.Hour }

// Keep is how long an ended task is kept whose mails are gone; 0: for ever.
func (s Settings) Keep() time.Duration { return time.Duration(s.KeepDays) * 24 * time.Hour }

// MoveWindow is how long a decision by move can be taken back.
func (l Limits) MoveWindow() time.Duration { return time.Duration(l.MoveWindowSeconds) * time.Second }

// Reminder is how often a person is reminded of an open decision; 0: never.
func (l Limits) Reminder() time.Duration { return time.Duration(l.ReminderHours) * time.Hour }

// Location is the zone of TimeZone, which has been validated.
func (s Settings) Location() *time.Location {
	if s.TimeZone == "" {
		return time.Local
	}
	loc, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return time.Local
	}
	return loc
}

// Problem is one thing wrong with the settings.
type Problem struct {
	Where string // "settings.json:4:12", "--imap", "PIZZA_IMAP"
	Key   string // "listen.imap"; empty for the file as a whole
	Text  string // what is wrong, and what would be right
}

func (p Problem) String() string {
	if p.Key == "" || p.Key == p.Where {
		return p.Where + ": " + p.Text
	}
	return p.Where + ": " + p.Key + ": " + p.Text
}

// Error is all that is wrong with the settings.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems in the settings:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// problems collects what is wrong; key is turned into a place by where.
type problems struct {
	list  []Problem
	where func(key string) string
}

func (p *problems) add(key, format string, args ...any) {
	p.list = append(p.list, Problem{Where: p.where(key), Key: key, Text: fmt.Sprintf(format, args...)})
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Error{Problems: p.list}
}

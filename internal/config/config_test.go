package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func noEnv(string) string { return "" }

// root makes a data root with a settings file.
func root(t *testing.T, file string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if file != "" {
		write(t, dir, file)
	}
	return dir
}

func write(t *testing.T, dir, file string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
}

// problemsOf returns the problems of an error as lines.
func problemsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *Error", err)
	}
	var out []string
	for _, p := range e.Problems {
		out = append(out, p.String())
	}
	return out
}

func TestNoFileIsDefault(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "{}", " \n"} {
		r, err := Resolve(Sources{Root: root(t, file), Getenv: noEnv})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(r.Settings, Default()) {
			t.Errorf("%q gives %+v", file, r.Settings)
		}
		if r.From["listen.imap"] != "default" {
			t.Errorf("from %q", r.From)
		}
	}
}

func TestWholeFile(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte(`{
		"listen": {"imap": "off", "imaps": "0.0.0.0:993", "web": "[::1]:8080"},
		"hostnames": ["mail.example.org", "192.168.1.5"],
		"domain": "pizza.localhost",
		"model": "openrouter:some/model",
		"providers": {"openrouter": {"base_url": "https://openrouter.ai/api/v1", "key": "env:KEY", "windows": {"some/model": 32768}}},
		"grants": [{"path": "/srv/docs"}, {"path": "/srv/out", "write": true}],
		"workers": {"research": {"description": "looks things up", "instructions": "Look it up.", "tools": ["read_*", "search_files"],
			"model": "openrouter:small/model", "limits": {"model_calls": 5, "usd": 0.5}}},
		"limits": {"workers": 2, "move_window_seconds": 0, "worker_depth": 0},
		"action_in_inbox": false,
		"keep_days": 90,
		"time_zone": "Europe/Berlin"
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Listen.IMAP, want.Listen.IMAPS, want.Listen.Web = "off", "0.0.0.0:993", "[::1]:8080"
	want.Hostnames = []string{"mail.example.org", "192.168.1.5"}
	want.Domain, want.Model, want.TimeZone = "pizza.localhost", "openrouter:some/model", "Europe/Berlin"
	want.Providers = map[string]Provider{"openrouter": {BaseURL: "https://openrouter.ai/api/v1", Key: "env:KEY", Windows: map[string]int{"some/model": 32768}}}
	want.Grants = []Grant{{Path: "/srv/docs"}, {Path: "/srv/out", Write: true}}
	want.Limits.Workers, want.Limits.MoveWindowSeconds, want.Limits.WorkerDepth = 2, 0, 0
	want.Workers = map[string]Worker{"research": {Description: "looks things up", Instructions: "Look it up.",
		Tools: []string{"read_*", "search_files"}, Model: "openrouter:small/model", Limits: WorkerLimits{ModelCalls: 5, USD: 0.5}}}
	want.ActionInInbox, want.KeepDays = false, 90
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got.Location().String() != "Europe/Berlin" || got.Limits.MaxMessage() != 50<<20 || got.Limits.Expiry() != 168*time.Hour || got.Limits.MoveWindow() != 0 || got.Keep() != 90*24*time.Hour {
		t.Error("derived values are wrong")
	}
}

func TestEveryProblemAtOnceWithItsPlace(t *testing.T) {
	t.Parallel()
	const file = `{
  "listen": {"imap": "0.0.0.0:2143", "imasp": "2993", "smtp": "25x", "web": "2080", "smtps": "2080"},
  "modle": "runbook:mail",
  "hostnames": ["ok.example", "not ok"],
  "äö": 1, "model": 5,
  "providers": {"x": {"base_url": "https://me:pw@x", "key": "sk-verysecret"}},
  "limits": {"workers": "many", "tool_calls": -1, "tool_calls": 1},
  "grants": [{"path": "relative", "rw": true}, 5],
  "action_in_inbox": null,
  "time_zone": "Mars/Olympus",
  "accounts": {"me": {"sent_copy": "both"}},
  "keep_days": -1
}`
	_, err := Resolve(Sources{Root: root(t, file), Getenv: noEnv})
	want := []string{
		`settings.json:2:38: listen.imasp: unknown key; did you mean "imap"?`,
		`settings.json:3:3: modle: unknown key; did you mean "model"?`,
		`settings.json:5:3: äö: unknown key; known are listen, hostnames, domain, model, providers, grants, workers, policies, limits, action_in_inbox, keep_days, telemetry, accounts, time_zone`,
		`settings.json:5:21: model: must be text in quotes: "..."`,
		`settings.json:7:25: limits.workers: must be a whole number`,
		`settings.json:7:51: limits.tool_calls: comes twice`,
		`settings.json:8:35: grants[0].rw: unknown key; known are path, write`,
		`settings.json:8:48: grants[1]: must be an object: { ... }`,
		`settings.json:9:22: action_in_inbox: must be true or false`,
		`settings.json:2:22: listen.imap: 0.0.0.0:2143 can be reached from other machines, and imap is not encrypted there: passwords and mail could be read on the way. Use a loopback address here, and imaps for other machines`,
		`settings.json:2:63: listen.smtp: "25x" must be [host:]port, or off: "25x" is not a port`,
		`settings.json:2:77: listen.web: port 2080 is already that of smtps`,
		`settings.json:4:31: hostnames[1]: "not ok" is neither a host name nor an IP address`,
		`settings.json:6:35: providers.x.base_url: must have no user, no ? and no #; a secret belongs behind key`,
		`settings.json:6:61: providers.x.key: a secret does not belong in this file: put it into an environment variable and write env:NAME, or into a file that only you can read and write file:/path`,
		`settings.json:11:36: accounts.me.sent_copy: "both" must be auto, server or client`,
		`settings.json:12:16: keep_days: -1 is not between 0 and 36500`,
		`settings.json:7:47: limits.tool_calls: -1 is not between 0 and 10000`,
		`settings.json:10:16: time_zone: "Mars/Olympus" is no time zone: write one as in Europe/Berlin`,
		`settings.json:8:14: grants[0]: "relative" is not an absolute path`,
		`settings.json:8:48: grants[1]: "" is not an absolute path`,
	}
	got := problemsOf(t, err)
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("problem %d\n got %s\nwant %s", i, g, w)
		}
	}
	if strings.Contains(err.Error(), "verysecret") || strings.Contains(err.Error(), "me:pw") {
		t.Error("a secret is in the error")
	}
	if !strings.HasPrefix(err.Error(), fmt.Sprintf("%d problems in the settings:\n  settings.json:2:38: ", len(want))) {
		t.Errorf("as text: %v", err)
	}
}

func TestSyntax(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, where string }{
		{"{\n  \"model\": runbook\n}", "settings.json:2:12"},
		{"{\n  \"model\": \"a:b\",\n}", "settings.json:3:1"},
		{"{\"model\": \"a:b\"", "settings.json:1:16"},
		{"{}\n{}", "settings.json:2:1"},
		{"// no\n{}", "settings.json:1:1"},
		{"[]", "settings.json:1:1"},
		{"null", "settings.json:1:1"},
	} {
		_, err := Parse([]byte(tt.file))
		got := problemsOf(t, err)
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.where+": ") {
			t.Errorf("%q: %q, want one problem at %s", tt.file, got, tt.where)
		}
	}
}

// Editors of Windows put a byte order mark before UTF-8.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte("\uFEFF{\"model\": \"a:b\"}"))
	if err != nil || got.Model != "a:b" {
		t.Errorf("%q, %v", got.Model, err)
	}
	if got, err = Parse([]byte("\uFEFF\r\n")); err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("a mark alone: %+v, %v", got, err)
	}
	_, err = Parse([]byte("\uFEFF{\"modle\": 1}"))
	if p := problemsOf(t, err); len(p) != 1 || !strings.HasPrefix(p[0], "settings.json:1:2: ") {
		t.Errorf("the place counts the mark: %q", p)
	}
	if _, err = Parse([]byte("\uFEFF\uFEFF{}")); err == nil {
		t.Error("two marks")
	}
}

// Mail for another domain is refused, so no address of ours may have one.
func TestDomain(t *testing.T) {
	t.Parallel()
	for domain, ok := range map[string]bool{
		"localhost": true, "pizza.localhost": true,
		"example.org": false, "LOCALHOST": false, "localhost.": false, "": false, "me@localhost": false,
	} {
		_, err := Resolve(Sources{Root: root(t, fmt.Sprintf(`{"domain": %q}`, domain)), Getenv: noEnv})
		if ok {
			if err != nil {
				t.Errorf("%q: %v", domain, err)
			}
			continue
		}
		if p := problemsOf(t, err); len(p) != 1 || !strings.HasPrefix(p[0], "settings.json:1:12: domain: ") || !strings.Contains(p[0], "pizza.localhost") {
			t.Errorf("%q: %q", domain, p)
		}
	}
}

func TestOrderOfSources(t *testing.T) {
	t.Parallel()
	dir := root(t, `{"listen": {"imap": "1", "imaps": "2", "smtp": "3"}, "model": "file:x"}`)
	env := map[string]string{"PIZZA_IMAPS": "20", "PIZZA_SMTP": "30", "PIZZA_MODEL": "env:x"}
	r, err := Resolve(Sources{
		Root: dir, Flags: map[string]string{"smtp": "300", "web": "off"},
		Getenv: func(name string) string { return env[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Listen{IMAP: "1", IMAPS: "20", SMTP: "300", SMTPS: "2465", Web: "off"}); r.Listen != want {
		t.Errorf("listen %+v, want %+v", r.Listen, want)
	}
	if r.Model != "env:x" {
		t.Errorf("model %q", r.Model)
	}
	want := map[string]string{
		"listen.imap": "settings.json:1:21", "listen.imaps": "PIZZA_IMAPS", "listen.smtp": "--smtp",
		"listen.smtps": "default", "listen.web": "--web", "model": "PIZZA_MODEL", "telemetry.otlp": "default",
	}
	if !reflect.DeepEqual(r.From, want) {
		t.Errorf("from %v, want %v", r.From, want)
	}
	// A problem names the source that the value is from.
	env["PIZZA_IMAPS"] = "x"
	_, err = Resolve(Sources{Root: dir, Flags: map[string]string{"smtp": "0.0.0.0:25"}, Getenv: func(name string) string { return env[name] }})
	got := problemsOf(t, err)
	if len(got) != 2 || !strings.HasPrefix(got[0], "PIZZA_IMAPS: listen.imaps: ") || !strings.HasPrefix(got[1], "--smtp: listen.smtp: 0.0.0.0:25 can be reached") {
		t.Errorf("problems %q", got)
	}
}

func TestListeners(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		service, value string
		ok             bool
	}{
		{"imap", "2143", true}, {"imap", ":2143", true}, {"imap", "127.0.0.1:0", true}, {"imap", "[::1]:1", true},
		{"imap", "localhost:2143", true}, {"imap", "127.9.9.9:2143", true}, {"imap", "[::ffff:127.0.0.1]:2143", true}, {"imap", "off", true},
		{"imap", "192.168.1.5:2143", false}, {"smtp", "0.0.0.0:2587", false}, {"web", "[::]:2080", false},
		{"imaps", "0.0.0.0:993", true}, {"smtps", "[::]:465", true},
		{"imap", "", false}, {"imap", "70000", false}, {"imap", "-1", false}, {"imap", "mail.example:2143", false}, {"imap", "::1", false}, {"imap", "imap", false},
	} {
		_, err := Resolve(Sources{Root: t.TempDir(), Flags: map[string]string{tt.service: tt.value}, Getenv: noEnv})
		if (err == nil) != tt.ok {
			t.Errorf("--%s %q: %v, want ok: %v", tt.service, tt.value, err, tt.ok)
		}
	}
}

func TestProviders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    Provider
		ok   bool
	}{
		{"local", Provider{BaseURL: "http://127.0.0.1:11434/v1"}, true},
		{"local", Provider{BaseURL: "http://localhost:11434/v1", Key: "env:K"}, true},
		{"lan", Provider{BaseURL: "http://192.168.1.9:11434/v1"}, true},
		{"lan", Provider{BaseURL: "http://192.168.1.9:11434/v1", Key: "env:K"}, false},
		{"a", Provider{BaseURL: "https://x/v1?key=abc"}, false},
		{"a", Provider{Windows: map[string]int{"m": 8192}}, true},
		{"a", Provider{Windows: map[string]int{"m": 8}}, false},
		{"a", Provider{BaseURL: "x/v1"}, false},
		{"a", Provider{Key: "file:/run/secrets/key"}, true},
		{"a", Provider{Key: "file:key"}, false},
		{"a", Provider{Key: "env:A B"}, false},
		{"a", Provider{Key: "keyring:x"}, false},
		{"A b", Provider{}, false},
	} {
		s := Default()
		s.Providers = map[string]Provider{tt.name: tt.p}
		err := Save(root(t, ""), s, nil)
		if (err == nil) != tt.ok {
			t.Errorf("%q %+v: %v, want ok: %v", tt.name, tt.p, err, tt.ok)
		}
	}
}

func TestSaveRoundTrip(t *testing.T) {
	t.Parallel()
	dir := root(t, "")
	s := Default()
	s.Limits.MoveWindowSeconds, s.ActionInInbox = 0, false
	s.Providers = map[string]Provider{"x": {BaseURL: "https://x/<v1>", Key: "env:K"}}
	if err := Save(dir, s, nil); err != nil {
		t.Fatal(err)
	}
	r, err := Resolve(Sources{Root: dir, Getenv: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Settings, s) {
		t.Errorf("got %+v, want %+v", r.Settings, s)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	before, _ := os.ReadFile(filepath.Join(dir, FileName))
	s.Limits.Workers = 0
	if problemsOf(t, Save(dir, s, nil)) == nil {
		t.Error("wrong settings were saved")
	}
	after, _ := os.ReadFile(filepath.Join(dir, FileName))
	entries, _ := os.ReadDir(dir)
	if string(before) != string(after) || len(entries) != 1 {
		t.Errorf("a refused Save left traces: %v", entries)
	}
}

func TestSecrets(t *testing.T) {
	t.Setenv("CONFIG_TEST_SECRET", "swordfish")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("swordfish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []SecretRef{"env:CONFIG_TEST_SECRET", SecretRef("file:" + file)} {
		secret, err := ref.Resolve()
		if err != nil || secret.Reveal() != "swordfish" {
			t.Fatalf("%s: %q, %v", ref, secret.Reveal(), err)
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secret, "in", struct{ S Secret }{secret})
		j, err := json.Marshal(map[string]any{"s": secret})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{fmt.Sprint(secret), fmt.Sprintf("%v %+v %#v %s %q %x", secret, secret, secret, secret, secret, secret), string(j), log.String(), fmt.Sprintf("%+v", &secret), fmt.Sprintf("%#v", struct{ S Secret }{secret})} {
			if strings.Contains(text, "swordfish") || strings.Contains(text, "73776f") {
				t.Errorf("the secret shows: %s", text)
			}
		}
	}
	for _, ref := range []SecretRef{"env:CONFIG_TEST_NONE", SecretRef("file:" + file + "x"), "swordfish", "file:/dev/zero"} {
		_, err := ref.Resolve()
		if err == nil || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%v", err)
		}
	}
	if got := fmt.Sprint(SecretRef("swordfish")); got != "***" {
		t.Errorf("a literal secret prints as %q", got)
	}
	if s, err := SecretRef("").Resolve(); err != nil || s.Reveal() != "" {
		t.Errorf("no reference: %v", err)
	}
}

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestWatch(t *testing.T) {
	t.Parallel()
	dir := root(t, "")
	c := &clock{time.Unix(1_800_000_000, 0)}
	w, err := Watch(Sources{Root: dir, Getenv: noEnv}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	w.OnError(func(err error) { told = append(told, err) })
	var reads []string
	w.OnRead(func(old, now *Resolved) { reads = append(reads, old.Model+" "+now.Model) })
	model := func() string { return w.Current().Model }
	write(t, dir, `{"model": "a:b"}`)
	if got := model(); got != "runbook:mail" {
		t.Errorf("looked within a second: %s", got)
	}
	c.t = c.t.Add(time.Second)
	if got := model(); got != "a:b" || w.Err() != nil {
		t.Errorf("after a change: %s, %v", got, w.Err())
	}
	write(t, dir, `{"model": 5555}`)
	c.t = c.t.Add(time.Second)
	if got := model(); got != "a:b" || problemsOf(t, w.Err()) == nil {
		t.Errorf("after a mistake: %s, %v", got, w.Err())
	}
	c.t = c.t.Add(time.Second)
	if got := model(); got != "a:b" || len(told) != 1 || told[0] != w.Err() {
		t.Errorf("told of one mistake: %v", told)
	}
	write(t, dir, `{"model": "corrected:b"}`)
	c.t = c.t.Add(time.Second)
	if got := model(); got != "corrected:b" || w.Err() != nil {
		t.Errorf("after the correction: %s, %v", got, w.Err())
	}
	if len(told) != 1 {
		t.Errorf("told of the correction: %v", told)
	}
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	c.t = c.t.Add(time.Second)
	if got := model(); got != "runbook:mail" {
		t.Errorf("after the removal: %s", got)
	}
	if first := w.Current(); first != w.Current() {
		t.Error("read again without a change")
	}
	if want := []string{"runbook:mail a:b", "a:b corrected:b", "corrected:b runbook:mail"}; !slices.Equal(reads, want) {
		t.Errorf("told of reading %q, want %q", reads, want)
	}
}

func TestWatchRefusesAWrongStart(t *testing.T) {
	t.Parallel()
	if _, err := Watch(Sources{Root: root(t, "{"), Getenv: noEnv}, nil); problemsOf(t, err) == nil {
		t.Error("started with a broken file")
	}
}

func TestDataRoot(t *testing.T) {
	t.Parallel()
	env := func(string) string { return "/from/env" }
	for _, tt := range []struct {
		flag string
		env  func(string) string
		want string
	}{{"/from/flag", env, "/from/flag"}, {"", env, "/from/env"}} {
		if got, err := DataRoot(tt.flag, tt.env); err != nil || got != tt.want {
			t.Errorf("DataRoot(%q) = %q, %v", tt.flag, got, err)
		}
	}
	got, err := DataRoot("", noEnv)
	if err != nil || filepath.Base(got) != ".pizza-bot-oss" || !filepath.IsAbs(got) {
		t.Errorf("default %q, %v", got, err)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := func(parts ...string) string {
		path := filepath.Join(append([]string{base}, parts...)...)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := dir("home", "data")
	docs, sub, out := dir("home", "Docs"), dir("home", "Docs", "Sub"), dir("home", "Out")
	link := filepath.Join(base, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(base, "inner")
	if err := os.Symlink(sub, inner); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		grants []Grant
		want   string // part of the problem; empty: none
	}{
		{"two", []Grant{{docs, false}, {out, true}}, ""},
		{"writable in read-only", []Grant{{docs, false}, {sub, true}}, ""},
		{"the other order", []Grant{{sub, true}, {docs, false}}, ""},
		{"read-only in writable", []Grant{{docs, true}, {sub, false}}, "cannot be read-only in"},
		{"the other order", []Grant{{sub, false}, {docs, true}}, "cannot be read-only in"},
		{"same access", []Grant{{docs, false}, {sub, false}}, "with the same access"},
		{"through a link", []Grant{{docs, false}, {inner, false}}, "with the same access"},
		{"twice", []Grant{{docs, false}, {docs + "/.", true}}, "is granted already (grants[0])"},
		{"a file", []Grant{{file, false}}, "is not a folder"},
		{"missing", []Grant{{base + "/none", false}}, "there is no folder"},
		{"relative", []Grant{{"home", false}}, "is not an absolute path"},
		{"long", []Grant{{"/" + strings.Repeat("x", 5000), false}}, "longer than"},
		{"data root", []Grant{{data, false}}, "lies in the data root"},
		{"in the data root", []Grant{{dir("home", "data", "tls"), false}}, "lies in the data root"},
		{"in the data root through a link", []Grant{{link, false}}, "lies in the data root"},
		{"around the data root", []Grant{{dir("home"), false}}, "contains the data root"},
		{"everything", []Grant{{"/", false}}, "contains the data root"},
		{"beside the data root", []Grant{{dir("home", "data2"), false}}, ""},
	} {
		p := &problems{where: func(key string) string { return key }}
		var keyed []keyedGrant
		for i, g := range tt.grants {
			keyed = append(keyed, keyedGrant{g, fmt.Sprintf("grants[%d]", i)})
		}
		folders(data, keyed, p)
		err := p.err()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestGrantIDs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	long := strings.Repeat("long", 20)
	var grants []string
	for _, name := range []string{"a/Docs", "b/docs", "c/docs-2", "d/DOCS", "e/Müller & Söhne (2026)", "f/写真", "g/..x--y..", "h/" + long, "i/" + long} {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		grants = append(grants, path)
	}
	grants[1] += ":rw"
	r, err := Resolve(Sources{Root: root(t, ""), Grants: grants, Getenv: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range r.Folders {
		ids = append(ids, f.ID)
		if f.Write != (f.ID == "docs-2") {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"docs", "docs-2", "docs-2-2", "docs-3", "muller-sohne-2026", "folder", "x-y", long[:48], long[:46] + "-2"}
	if !slices.Equal(ids, want) {
		t.Errorf("ids %q\nwant %q", ids, want)
	}
}

func TestGrantOfTheCommandLineReplacesThatOfTheFile(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	r, err := Resolve(Sources{
		Root: root(t, fmt.Sprintf(`{"grants": [{"path": %q}]}`, base)), Grants: []string{base + ":rw"}, Getenv: noEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Folders) != 1 || !r.Folders[0].Write {
		t.Errorf("folders %+v", r.Folders)
	}
	_, err = Resolve(Sources{Root: root(t, ""), Grants: []string{":rw", base + "/none:ro"}, Getenv: noEnv})
	got := problemsOf(t, err)
	if len(got) != 2 || !strings.HasPrefix(got[0], "--grant :rw: must be a folder") || !strings.HasPrefix(got[1], "--grant "+base+"/none:ro: there is no folder") {
		t.Errorf("problems %q", got)
	}
}

func TestUnreadableFileIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	var pe *fs.PathError
	if _, err := Resolve(Sources{Root: dir, Getenv: noEnv}); !errors.As(err, &pe) {
		t.Errorf("error %v", err)
	}
}

// FuzzParse: no input panics, and what is without a problem can be saved and read back.
func FuzzParse(f *testing.F) {
	f.Add(`{"listen": {"imap": "1"}, "providers": {"a": {"key": "env:X"}}}`)
	f.Add(`{"grants": [{"path": "/x"}, 5], "x": [[]], "limits": null}`)
	f.Add(`{"model": "\ud800", "model": 1e999}`)
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse([]byte(in))
		if err != nil {
			_ = err.Error()
			return
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		b, err := json.Marshal(again)
		if err != nil || string(b) != string(data) {
			t.Fatalf("%s became %s", data, b)
		}
	})
}

// TestHideCapabilities: a capability that cannot be hidden is a problem at its place, in
// any case of letters; without a list nothing is looked at.
func TestHideCapabilities(t *testing.T) {
	t.Parallel()
	dir := root(t, `{"accounts": {"me": {"hide_capabilities": ["move", "QRESINC", "IMAP4rev2"]}}}`)
	_, err := Resolve(Sources{Root: dir, Getenv: noEnv, Capabilities: []string{"MOVE", "QRESYNC", "IMAP4rev2"}})
	const want = `settings.json:1:52: accounts.me.hide_capabilities[1]: "QRESINC" is no capability that can be hidden; did you mean "QRESYNC"?`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	got, err := Resolve(Sources{Root: dir, Getenv: noEnv})
	if err != nil || len(got.Accounts["me"].HideCapabilities) != 3 {
		t.Fatal(got, err)
	}
	if err := Save(dir, got.Settings, []string{"MOVE", "QRESYNC", "IMAP4rev2"}); err == nil || !strings.Contains(err.Error(), `did you mean "QRESYNC"?`) {
		t.Errorf("saved what a start refuses: %v", err)
	}
}

// TestLimits: each limit has bounds, and defaults lie within them.
func TestLimits(t *testing.T) {
	t.Parallel()
	if _, err := Resolve(Sources{Root: root(t, "{}"), Getenv: noEnv}); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"worker_fanout", "imap_connections", "connections_per_account", "smtp_connections", "max_command_kb",
		"call_minutes", "login_seconds", "idle_minutes", "read_seconds", "write_seconds"} {
		for _, value := range []string{"0", "10000000"} {
			_, err := Resolve(Sources{Root: root(t, `{"limits": {"`+key+`": `+value+`}}`), Getenv: noEnv})
			if err == nil || !strings.Contains(err.Error(), "limits."+key+": "+value+" is not between") {
				t.Errorf("%s %s: %v", key, value, err)
			}
		}
	}
	if _, err := Resolve(Sources{Root: root(t, `{"limits": {"idle_minutes": 29}}`), Getenv: noEnv}); err == nil {
		t.Error("an idle time-out shorter than RFC 9051 allows is taken")
	}
}

func TestLimitsOfMoneyAndTheMonth(t *testing.T) {
	t.Parallel()
	s, err := resolve(Sources{Root: t.TempDir(), Getenv: func(string) string { return "" }}, []byte(`{
		"limits": {"model_calls": 0, "usd": 2.5, "minutes": 30, "tokens": 100000, "monthly_usd": 20, "monthly_tokens": 5},
		"accounts": {"ann": {"monthly_usd": 1.25, "monthly_tokens": 0}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Limits.ModelCalls != 0 || s.Limits.ToolCalls != 40 || s.Limits.WorkerModelCalls != 20 || s.Limits.WorkerToolCalls != 80 || s.Limits.USD != 2.5 || s.Limits.Minutes != 30 {
		t.Errorf("%+v", s.Limits)
	}
	if usd, tokens := s.Monthly("ann"); usd != 1.25 || tokens != 0 {
		t.Errorf("ann: %v, %v", usd, tokens)
	}
	if usd, tokens := s.Monthly("me"); usd != 20 || tokens != 5 {
		t.Errorf("me: %v, %v", usd, tokens)
	}
	_, err = resolve(Sources{Root: t.TempDir(), Getenv: func(string) string { return "" }}, []byte(`{
		"limits": {"usd": -1, "monthly_usd": "20", "minutes": 1.5, "worker_tool_calls": -1},
		"accounts": {"ann": {"monthly_usd": 1e7, "monthly_tokens": -1}}
	}`))
	for _, want := range []string{"limits.usd: -1 is not between 0 and 1000000", "limits.monthly_usd: must be a number", "limits.minutes: must be a whole number", "limits.worker_tool_calls: -1 is not between 0",
		"accounts.ann.monthly_usd: 1e+07 is not between", "accounts.ann.monthly_tokens: -1 is not between"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	dir := root(t, `{"policies": [
  {"tool": "write_file", "rule": "ask", "args": {"path": "/local/x/*", "pay.amount": ">100"}},
  {"tool": "delete_file", "rule": "deny", "skill": "orders"}
]}`)
	now := time.Now()
	w, err := Watch(Sources{Root: dir, Getenv: noEnv}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	rows := w.Policies()
	if len(rows) != 2 || rows[0].Args["pay.amount"] != ">100" || rows[1].Name != "policies[1]" || rows[1].Skill != "orders" {
		t.Fatalf("%+v", rows)
	}
	wrong := `{"policies": [
  {"tool": "write_file", "rule": "maybe"},
  {"tool": "read_file", "rule": "deny"},
  {"tool": "list_folder", "rule": "allow"},
  {"tool": "a b", "rule": "deny", "args": {"x y": ">much"}},
  {"tool": "move_file", "rule": "deny", "arg": {}}
]}`
	_, err = Resolve(Sources{Root: root(t, wrong), Getenv: noEnv})
	want := []string{
		`settings.json:2:34: policies[0].rule: "maybe" must be allow, ask or deny`,
		`settings.json:5:12: policies[3].tool: "a b" is no name`,
		`settings.json:5:51: policies[3].args.x y: `,
		`settings.json:5:51: policies[3].args.x y: ">much" begins like a comparison`,
		`settings.json:6:41: policies[4].arg: unknown key; did you mean "args"?`,
	}
	got := problemsOf(t, err)
	for _, line := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, line) }) {
			t.Errorf("no problem %s among\n%s", line, strings.Join(got, "\n"))
		}
	}
	// While it is wrong, what held holds, and what the file wants to be stricter as well.
	write(t, dir, wrong)
	now = now.Add(2 * checkEvery)
	var names []string
	for _, r := range w.Policies() {
		names = append(names, r.Rule+" "+r.Tool)
	}
	if got, want := strings.Join(names, ", "), "ask write_file, deny delete_file, maybe write_file, deny read_file, deny a b, deny move_file"; got != want {
		t.Errorf("in force: %s\nwant %s", got, want)
	}
	write(t, dir, `{"policies": []}`)
	now = now.Add(2 * checkEvery)
	if rows := w.Policies(); len(rows) != 0 {
		t.Errorf("after it was corrected: %v", rows)
	}
}

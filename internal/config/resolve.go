package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sources are where settings come from.
type Sources struct {
	// Root is the data root; settings.json lies in it.
	Root string
	// Flags are the values given on the command line, by name: imap, imaps, smtp, smtps,
	// web, model. A flag that was not given is not in it.
	Flags map[string]string
	// Grants are the values of --grant: PATH[:rw].
	Grants []string
	// Capabilities are what accounts can hide from their mail programs; nil: not checked.
	Capabilities []string
	// Getenv is the environment; nil is os.Getenv.
	Getenv func(string) string
}

// Resolved are the settings that hold.
type Resolved struct {
	Settings
	// Folders are the grants of file and command line, with their ids.
	Folders []Folder
	// Traces are where spans go.
	Traces Traces
	// From says where a setting comes from, by its key: "--imap", "PIZZA_IMAP",
	// "settings.json:3:12" or "default".
	From map[string]string
}

// DataRoot is where everything is kept: the flag, else PIZZA_DATA_ROOT, else
// ~/.pizza-bot-oss; absolute.
func DataRoot(flag string, getenv func(string) string) (string, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	dir := flag
	if dir == "" {
		dir = getenv("PIZZA_DATA_ROOT")
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("config: no home directory; name a data root with --data-root: %w", err)
		}
		dir = filepath.Join(home, ".pizza-bot-oss")
	}
	return filepath.Abs(dir)
}

func (src Sources) env() func(string) string {
	if src.Getenv == nil {
		return os.Getenv
	}
	return src.Getenv
}

// overridable are the settings that flags and environment can set, by flag name.
var overridable = []string{"imap", "imaps", "smtp", "smtps", "web", "model"}

func keyOf(flag string) string {
	if flag == "model" {
		return "model"
	}
	return "listen." + flag
}

// Resolve reads the file, if there is one, lays environment and flags over it, and
// validates the whole. The error is an *Error with every problem, or one of the disk.
func Resolve(src Sources) (*Resolved, error) {
	data, err := os.ReadFile(filepath.Join(src.Root, FileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("config: %w", err)
	}
	return resolve(src, data)
}

func resolve(src Sources, data []byte) (*Resolved, error) {
	s, doc := parse(FileName, data)
	r := &Resolved{Settings: s, From: map[string]string{}}
	for i := range r.Policies {
		r.Policies[i].Name = fmt.Sprintf("policies[%d]", i)
	}
	r.override(src, doc)
	p := &doc.found
	p.where = func(key string) string {
		if from := r.From[key]; from != "" && from != "default" {
			return from
		}
		return doc.where(key)
	}
	r.validate(p, src.Capabilities)
	r.Traces = r.traces(src.env(), doc, p)
	r.Folders = folders(src.Root, r.grants(src, p), p)
	return r, p.err()
}

// override lays environment and flags over the file and notes where each value is from.
func (r *Resolved) override(src Sources, doc *document) {
	getenv := src.env()
	for _, name := range overridable {
		key, target := keyOf(name), r.Listen.field(name)
		if name == "model" {
			target = &r.Model
		}
		r.From[key] = "default"
		if off, ok := doc.keys[key]; ok {
			r.From[key] = doc.at(off)
		}
		env := "PIZZA_" + strings.ToUpper(name)
		if value := getenv(env); value != "" {
			*target, r.From[key] = value, env
		}
		if value, ok := src.Flags[name]; ok {
			*target, r.From[key] = value, "--"+name
		}
	}
}

// grants are those of the file and of the command line.
func (r *Resolved) grants(src Sources, p *problems) []keyedGrant {
	var file, flags []keyedGrant
	for i, g := range r.Settings.Grants {
		file = append(file, keyedGrant{g, fmt.Sprintf("grants[%d]", i)})
	}
	for _, value := range src.Grants {
		key := "--grant " + value
		r.From[key] = key
		g, err := ParseGrant(value)
		if err != nil {
			p.add(key, "%v", err)
			continue
		}
		flags = append(flags, keyedGrant{g, key})
	}
	return mergeGrants(file, flags)
}

package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// SecretRef says where a secret is: "env:NAME" or "file:/absolute/path".
type SecretRef string

// maxSecret is the largest secret file that is read, in octets.
const maxSecret = 64 << 10

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check refuses everything that is no reference, without repeating it.
func (r SecretRef) check() error {
	kind, name, ok := strings.Cut(string(r), ":")
	switch {
	case ok && kind == "env" && envName.MatchString(name):
		return nil
	case ok && kind == "env":
		return errors.New("env: must be followed by the name of an environment variable")
	case ok && kind == "file" && filepath.IsAbs(name):
		return nil
	case ok && kind == "file":
		return errors.New("file: must be followed by an absolute path")
	case ok && kind == "keyring":
		return errors.New("the keyring is not supported yet: use env:NAME or file:/path")
	}
	return errors.New("a secret does not belong in this file: put it into an environment variable and write env:NAME, or into a file that only you can read and write file:/path")
}

// String gives the reference; of what is none, nothing.
func (r SecretRef) String() string {
	if r != "" && r.check() != nil {
		return hidden
	}
	return string(r)
}

// LogValue is String.
func (r SecretRef) LogValue() slog.Value { return slog.StringValue(r.String()) }

// Resolve fetches the secret now, so that a changed one takes effect at once. The empty
// reference is the empty secret.
func (r SecretRef) Resolve() (Secret, error) {
	if r == "" {
		return Secret{}, nil
	}
	if err := r.check(); err != nil {
		return Secret{}, fmt.Errorf("config: %w", err)
	}
	kind, name, _ := strings.Cut(string(r), ":")
	value, err := os.Getenv(name), error(nil)
	if kind == "file" {
		value, err = readSecret(name)
	}
	switch {
	case err != nil:
		return Secret{}, fmt.Errorf("config: secret %s: %w", r, err)
	case value == "":
		return Secret{}, fmt.Errorf("config: secret %s: there is none", r)
	}
	return Secret{value}, nil
}

// readSecret reads the first line of a file; editors leave a line end behind it.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxSecret {
		return "", fmt.Errorf("larger than %d KB", maxSecret>>10)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line), nil
}

const hidden = "***"

// Secret is a secret value that does not get into logs, errors and files by accident:
// whatever prints it prints ***.
type Secret struct{ value string }

// Reveal returns the secret, for the one place that sends it.
func (s Secret) Reveal() string { return s.value }

// String hides the secret.
func (s Secret) String() string { return hidden }

// Format hides the secret from every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

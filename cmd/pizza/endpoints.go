package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// endpoints is run/endpoints.json: where the running server of a data root
// listens. It is there exactly while the server is ready.
type endpoints struct {
	IMAP    string `json:"imap,omitempty"`
	IMAPS   string `json:"imaps,omitempty"`
	SMTP    string `json:"smtp,omitempty"`
	SMTPS   string `json:"smtps,omitempty"`
	Web     string `json:"web,omitempty"`
	Control string `json:"control"`
	Domain  string `json:"domain"`
	User    string `json:"user"`
	PID     int    `json:"pid"`
}

func endpointsPath(root string) string { return filepath.Join(root, "run", "endpoints.json") }

func readEndpoints(root string) (endpoints, error) {
	var e endpoints
	b, err := os.ReadFile(endpointsPath(root))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("%s: %w", endpointsPath(root), err)
	}
	return e, nil
}

// write puts the file in place by rename, so that a reader never sees half of it.
func (e endpoints) write(root string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	temp := endpointsPath(root) + ".new"
	if err := os.WriteFile(temp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, endpointsPath(root))
}

// removeEndpoints takes the file away if it is ours.
func removeEndpoints(root string) error {
	e, err := readEndpoints(root)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && e.PID != os.Getpid()) {
		return nil
	}
	return os.Remove(endpointsPath(root))
}

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"pizza/internal/policy"
)

// checkEvery is how often Current looks at the file.
const checkEvery = time.Second

// Watcher has the settings that hold now. It is safe for concurrent use.
type Watcher struct {
	src Sources
	now func() time.Time

	mu      sync.Mutex // guards below
	current *Resolved
	err     error
	wrong   []policy.Row // of the file as it is now, when it has become wrong
	onError func(error)
	onRead  func(old, now *Resolved)
	seen    stamp
	checked time.Time
}

// stamp tells whether a file was changed without reading it.
type stamp struct {
	exists bool
	size   int64
	time   time.Time
}

// Watch resolves the settings and keeps them up to date. now is the clock; nil is
// time.Now.
func Watch(src Sources, now func() time.Time) (*Watcher, error) {
	if now == nil {
		now = time.Now
	}
	w := &Watcher{src: src, now: now, checked: now()}
	var err error
	if w.seen, err = w.stat(); err != nil {
		return nil, err
	}
	if w.current, err = Resolve(src); err != nil {
		return nil, err
	}
	return w, nil
}

// Current returns the settings that hold. It looks at the file at most once a second,
// reads it when it changed, and keeps the last good settings when it became wrong. Do
// not change what it returns.
func (w *Watcher) Current() *Resolved {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Sub(w.checked) < checkEvery && !now.Before(w.checked) {
		return w.current
	}
	w.checked = now
	seen, err := w.stat()
	switch {
	case err != nil:
		w.note(err)
		return w.current
	case seen == w.seen:
		return w.current
	}
	w.seen = seen
	next, err := Resolve(w.src)
	w.note(err)
	w.wrong = nil
	if err != nil && next != nil {
		w.wrong = next.Policies
	}
	if err == nil {
		old := w.current
		w.current = next
		if w.onRead != nil {
			w.onRead(old, next)
		}
	}
	return w.current
}

// Policies are the rows of policy that hold: those of the settings that do and, while the
// file is wrong, also those of the file that ask, deny or do not parse. A rule with a
// mistake must not be passed over, and one that allows must not come into force by it.
func (w *Watcher) Policies() []policy.Row {
	rows := w.Current().Policies
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.wrong {
		if r.Rule != policy.Allow || len(r.Check()) > 0 {
			r.Name += " of the file as it is now"
			rows = append(rows[:len(rows):len(rows)], r)
		}
	}
	return rows
}

// note keeps err and tells of it, once for as long as it is the same.
func (w *Watcher) note(err error) {
	if err != nil && w.onError != nil && (w.err == nil || w.err.Error() != err.Error()) {
		w.onError(err)
	}
	w.err = err
}

// OnError has f called when the file has become wrong, or wrong in another way. f is
// called within Current and must not call w.
func (w *Watcher) OnError(f func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onError = f
}

// OnRead has f called when the file was read anew and its settings hold, with those that
// held before; they may be equal. f is called within Current and must not call w.
func (w *Watcher) OnRead(f func(old, now *Resolved)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onRead = f
}

// Err is what is wrong with the file as it is now, if the settings that hold are older.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Watcher) stat() (stamp, error) {
	info, err := os.Stat(filepath.Join(w.src.Root, FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stamp{}, nil
	case err != nil:
		return stamp{}, fmt.Errorf("config: %w", err)
	}
	return stamp{true, info.Size(), info.ModTime()}, nil
}

// Save writes settings.json, 0600, so that it is at any time the old or the new one. It
// refuses settings that could not be read back; capabilities are as in Sources.
func Save(root string, s Settings, capabilities []string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if _, err := resolve(Sources{Root: root, Capabilities: capabilities, Getenv: func(string) string { return "" }}, b.Bytes()); err != nil {
		return err
	}
	temp, err := os.CreateTemp(root, FileName+".new-*") // 0600
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	_, err = temp.Write(b.Bytes())
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(root, FileName))
	}
	if err != nil {
		return fmt.Errorf("config: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

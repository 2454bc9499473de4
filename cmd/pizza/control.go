package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"pizza/agent"
	"pizza/mailbox"
)

// The control socket is HTTP over a Unix socket that only this operating-system
// user can open. It serves the command line what mail cannot say.

// controlRoutes lists what the socket serves.
func controlRoutes(s service) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /of/{account}/send", func(w http.ResponseWriter, r *http.Request) {
		var m submission
		answer(w, r, &m, func(ctx context.Context) (any, error) { return s.Send(ctx, r.PathValue("account"), m) })
	})
	mux.HandleFunc("GET /of/{account}/list/{mailbox}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) {
			return s.List(ctx, r.PathValue("account"), r.PathValue("mailbox"))
		})
	})
	mux.HandleFunc("GET /of/{account}/show/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) { return s.Show(ctx, r.PathValue("account"), r.PathValue("id")) })
	})
	mux.HandleFunc("POST /of/{account}/decide", func(w http.ResponseWriter, r *http.Request) {
		var d decision
		answer(w, r, &d, func(ctx context.Context) (any, error) { return s.Decide(ctx, r.PathValue("account"), d) })
	})
	mux.HandleFunc("POST /of/{account}/cancel/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) {
			return struct{}{}, s.Cancel(ctx, r.PathValue("account"), r.PathValue("id"))
		})
	})
	mux.HandleFunc("POST /of/{account}/forget/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) {
			return s.Forget(ctx, r.PathValue("account"), r.PathValue("id"))
		})
	})
	mux.HandleFunc("GET /of/{account}/usage/{when}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) {
			return s.Usage(ctx, r.PathValue("account"), r.PathValue("when"))
		})
	})
	mux.HandleFunc("GET /of/{account}/wait/{task}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) {
			return s.Wait(ctx, r.PathValue("account"), r.PathValue("task"))
		})
	})
	mux.HandleFunc("GET /accounts", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) { return s.Accounts(ctx) })
	})
	mux.HandleFunc("POST /accounts/put", func(w http.ResponseWriter, r *http.Request) {
		var c credentialRequest
		answer(w, r, &c, func(ctx context.Context) (any, error) { return s.PutCredential(ctx, c) })
	})
	mux.HandleFunc("POST /accounts/remove", func(w http.ResponseWriter, r *http.Request) {
		var c credentialRequest
		answer(w, r, &c, func(ctx context.Context) (any, error) { return struct{}{}, s.RemoveCredential(ctx, c) })
	})
	policyRoutes(mux, s)
	mux.HandleFunc("GET /backup", serveBackup(s))
	mux.HandleFunc("GET /of/{account}/export", serveExport(s))
	mux.HandleFunc("GET /of/{account}/events", serveEvents(s))
	mux.HandleFunc("POST /of/{account}/import", serveImport(s))
	return mux
}

// wireError carries a *mailbox.Error over the socket.
type wireError struct {
	Kind mailbox.Kind `json:"kind"`
	Text string       `json:"text"`
}

// answer decodes the request into in (if any), calls f and writes its result.
func answer(w http.ResponseWriter, r *http.Request, in any, f func(context.Context) (any, error)) {
	if in != nil {
		if err := json.NewDecoder(r.Body).Decode(in); err != nil {
			writeJSON(w, http.StatusBadRequest, wireError{Kind: mailbox.Invalid, Text: "control: " + err.Error()})
			return
		}
	}
	out, err := f(r.Context())
	if err != nil {
		e := wireError{Text: userText(err)}
		var me *mailbox.Error
		if errors.As(err, &me) {
			e.Kind = me.Kind
		}
		writeJSON(w, http.StatusUnprocessableEntity, e)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the other end is gone: nobody to tell
}

// userText is the sentence of an error for a person. What has none, and is no fault of
// the person or the machine, is told as it is: who gives commands also reads logs.
func userText(err error) string {
	var me *mailbox.Error
	switch {
	case !errors.As(err, &me):
		return err.Error()
	case me.Text != "":
		return me.Text
	case kindTexts[me.Kind] == "":
		return err.Error()
	case me.Name != "":
		return me.Name + ": " + kindTexts[me.Kind]
	}
	return kindTexts[me.Kind]
}

// kindTexts are for errors that come without a text for the person.
var kindTexts = map[mailbox.Kind]string{
	mailbox.NotFound:  "There is no such thing",
	mailbox.Exists:    "There is one of that name already",
	mailbox.TooLarge:  "It is too large, or there are too many",
	mailbox.Transient: "Not now: try again later",
	mailbox.Conflict:  "It was changed meanwhile: try again",
	mailbox.Refused:   "That is not allowed here",
	mailbox.Denied:    "This login may not do that",
	mailbox.Full:      "The disk is almost full: delete mail or other files first",
}

// maxSocketPath is what sun_path holds on the strictest system we run on (macOS).
const maxSocketPath = 103

// controlPath is where the socket lies: under the data root, or, where that path is
// too long for a socket, in a private directory of the system's temporary folder.
func controlPath(root string) (string, error) {
	path := filepath.Join(root, "run", "control.sock")
	if len(path) <= maxSocketPath {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "pizza")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "control.sock"), nil
}

// removeControlDir removes the temporary directory of a closed socket that did not lie
// under the data root.
func removeControlDir(root, socket string) error {
	if dir := filepath.Dir(socket); dir != filepath.Join(root, "run") {
		return os.Remove(dir)
	}
	return nil
}

// listenControl opens the socket, private to the user. A socket left by a killed
// server is in nobody's use: the store's lock is already ours.
func listenControl(root string) (net.Listener, error) {
	path, err := controlPath(root)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// controlClient is a service behind a control socket.
type controlClient struct{ http *http.Client }

// dialControl connects to the running server of a data root; errNoServer if there
// is none.
func dialControl(root string) (*controlClient, error) {
	e, err := readEndpoints(root)
	if err != nil {
		return nil, errNoServer
	}
	probe, err := net.DialTimeout("unix", e.Control, 2*time.Second)
	if err != nil {
		return nil, errNoServer
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", e.Control)
	}
	return &controlClient{http: &http.Client{Transport: &http.Transport{DialContext: dial}}}, nil
}

// call makes one request with in as its body (nil: none) and decodes the answer.
func (c *controlClient) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(out)
}

// do makes one request and returns a good answer, whose body the caller closes. Any
// other is the error that it tells of.
func (c *controlClient) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var e wireError
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
		return nil, fmt.Errorf("control socket: HTTP %d", resp.StatusCode)
	}
	return nil, &mailbox.Error{Op: "control", Kind: e.Kind, Text: e.Text}
}

func accountPath(account string, parts ...string) string {
	path := "/of/" + url.PathEscape(account)
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return path
}

func (c *controlClient) Send(ctx context.Context, account string, m submission) (r mailbox.Receipt, err error) {
	err = c.call(ctx, "POST", accountPath(account, "send"), m, &r)
	return r, err
}

func (c *controlClient) List(ctx context.Context, account, box string) (l []item, err error) {
	err = c.call(ctx, "GET", accountPath(account, "list", box), nil, &l)
	return l, err
}

func (c *controlClient) Show(ctx context.Context, account, id string) (s agent.Shown, err error) {
	err = c.call(ctx, "GET", accountPath(account, "show", id), nil, &s)
	return s, err
}

func (c *controlClient) Decide(ctx context.Context, account string, d decision) (out agent.Decision, err error) {
	err = c.call(ctx, "POST", accountPath(account, "decide"), d, &out)
	return out, err
}

func (c *controlClient) Cancel(ctx context.Context, account, id string) error {
	return c.call(ctx, "POST", accountPath(account, "cancel", id), nil, &struct{}{})
}

func (c *controlClient) Forget(ctx context.Context, account, id string) (f agent.Forgot, err error) {
	err = c.call(ctx, "POST", accountPath(account, "forget", id), nil, &f)
	return f, err
}

func (c *controlClient) Usage(ctx context.Context, account, when string) (u agent.Usage, err error) {
	err = c.call(ctx, "GET", accountPath(account, "usage", when), nil, &u)
	return u, err
}

func (c *controlClient) Wait(ctx context.Context, account, task string) (o outcome, err error) {
	err = c.call(ctx, "GET", accountPath(account, "wait", task), nil, &o)
	return o, err
}

func (c *controlClient) Accounts(ctx context.Context) (l []mailbox.Account, err error) {
	err = c.call(ctx, "GET", "/accounts", nil, &l)
	return l, err
}

func (c *controlClient) PutCredential(ctx context.Context, r credentialRequest) (password string, err error) {
	err = c.call(ctx, "POST", "/accounts/put", r, &password)
	return password, err
}

func (c *controlClient) RemoveCredential(ctx context.Context, r credentialRequest) error {
	return c.call(ctx, "POST", "/accounts/remove", r, &struct{}{})
}

func (c *controlClient) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

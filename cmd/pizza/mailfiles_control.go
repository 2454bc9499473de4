package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"pizza/internal/mailfile"
	"pizza/mailbox"
)

// Mail goes over the control socket as frames (internal/mailfile), one message in memory
// at a time.

// serveExport streams an account's mail.
func serveExport(s service) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		frames := mailfile.NewFrameWriter(w)
		err := s.Export(r.Context(), r.PathValue("account"), r.URL.Query()["folder"], frames)
		if err != nil {
			err = errors.New(userText(err))
		}
		_ = frames.End(err) // the other end is gone: nobody to tell
	}
}

// maxBatch bounds what one request of an import may hold.
const maxBatch = 2 * mailfile.MaxMessage

// serveImport takes a batch.
func serveImport(s service) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var batch []mailfile.Message
		err := mailfile.ReadFrames(http.MaxBytesReader(w, r.Body, maxBatch), func(m mailfile.Message) error {
			batch = append(batch, m)
			return nil
		})
		if err != nil {
			writeJSON(w, http.StatusBadRequest, wireError{Kind: mailbox.Invalid, Text: "control: " + err.Error()})
			return
		}
		answer(w, r, nil, func(ctx context.Context) (any, error) { return s.Import(ctx, r.PathValue("account"), batch) })
	}
}

func (c *controlClient) Export(ctx context.Context, account string, folders []string, sink exportSink) error {
	path := accountPath(account, "export") + "?" + url.Values{"folder": folders}.Encode()
	resp, err := c.do(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = mailfile.ReadFrames(resp.Body, func(m mailfile.Message) error {
		if m.Body == nil {
			return sink.Folder(m.Folder)
		}
		return sink.Add(m)
	})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server did not send all of it: %w", err)
	}
	return err
}

func (c *controlClient) Import(ctx context.Context, account string, batch []mailfile.Message) (out []imported, err error) {
	var b bytes.Buffer
	frames := mailfile.NewFrameWriter(&b)
	for _, m := range batch {
		if m.Body == nil {
			err = frames.Folder(m.Folder)
		} else {
			err = frames.Add(m)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := frames.End(nil); err != nil {
		return nil, err
	}
	resp, err := c.do(ctx, "POST", accountPath(account, "import"), &b)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

package web

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"os"
)

// connectPage is what connect.html shows.
type connectPage struct {
	ConnectInfo
	Address  string // the person's own
	Task     string // where tasks go
	HasCA    bool
	In, Out  row  // what to enter where one row is wanted
	AnyPlain bool // a server without TLS from the start is on
}

// row is one line of the settings of a mail program.
type row struct {
	Port, Security string
}

// connect says how to connect a mail program.
func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	info := s.opts.Info()
	if info.Host == "" {
		info.Host = "localhost"
	}
	if info.Password == "" {
		info.Password = "pizza password " + info.User
	}
	page := connectPage{
		ConnectInfo: info,
		Address:     info.User + "@" + info.Domain,
		Task:        "pizza@" + info.Domain,
		HasCA:       info.CAPath != "",
		In:          best(info.IMAPS, info.IMAP),
		Out:         best(info.SMTPS, info.SMTP),
		AnyPlain:    info.IMAP != "" || info.SMTP != "",
	}
	s.render(w, r, http.StatusOK, "connect.html", page)
}

// best prefers TLS from the start (RFC 8314).
func best(secure, plain string) row {
	switch {
	case secure != "":
		return row{secure, "SSL/TLS"}
	case plain != "":
		return row{plain, "STARTTLS"}
	}
	return row{}
}

// errorPage is the one place where a failure becomes an answer.
func (s *server) errorPage(w http.ResponseWriter, r *http.Request, code int, text string) {
	s.render(w, r, code, "error.html", struct {
		Code        int
		Title, Text string
	}{code, http.StatusText(code), text})
}

// render writes a page as a whole, or a plain 500 when it cannot be made.
func (s *server) render(w http.ResponseWriter, r *http.Request, code int, name string, data any) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, data); err != nil {
		s.opts.Log.Error("web page", "path", r.URL.Path, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	w.Write(b.Bytes())
}

// style is the style sheet of all pages.
func (s *server) style(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=3600")
	http.ServeFileFS(w, r, files, "static/style.css")
}

// authority is the certificate to import into programs. Whatever else the file may
// hold, only certificates go out.
func (s *server) authority(w http.ResponseWriter, r *http.Request) {
	path := s.opts.Info().CAPath
	data, err := os.ReadFile(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		s.errorPage(w, r, http.StatusNotFound, "There is no certificate authority here.")
		return
	case err != nil:
		s.opts.Log.Error("web certificate", "err", err)
		s.errorPage(w, r, http.StatusInternalServerError, "The certificate cannot be read. The log has the details.")
		return
	}
	var out []byte
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	w.Header().Set("Content-Disposition", `attachment; filename="pizza-ca.pem"`)
	w.Write(out)
}

// Package backup is the file that `pizza backup` writes: a tar archive, gzip-compressed
// or not, of the files of a data root.
//
// Its first entry, backup.json, says what it is. Its last one, MANIFEST.sha256, lists
// the SHA-256 of every other entry in the form that sha256sum -c reads, so that an
// archive that was cut off, or changed on its way, is told from a whole one. Entries are
// regular files with paths below the data root. An archive holds passwords and the mail
// itself: it is a file for the owner alone.
//
// The package knows the container, not what is in it. It imports nothing of this module.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

const (
	infoName     = "backup.json"
	manifestName = "MANIFEST.sha256"
	format       = 1
)

// Info says what an archive is.
type Info struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Version string    `json:"version"` // of the program that wrote it
	Logins  []string  `json:"logins"`
}

// Writer writes an archive. It is for one goroutine.
type Writer struct {
	tar      *tar.Writer
	created  time.Time
	manifest bytes.Buffer
}

// NewWriter begins an archive. Format is filled in.
func NewWriter(w io.Writer, info Info) (*Writer, error) {
	info.Format = format
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return nil, err
	}
	a := &Writer{tar: tar.NewWriter(w), created: info.Created}
	return a, a.Add(infoName, int64(len(b)), func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Add adds a file of size octets, which write writes.
func (a *Writer) Add(name string, size int64, write func(io.Writer) error) error {
	h := sha256.New()
	if err := a.header(name, size); err != nil {
		return err
	}
	if err := write(io.MultiWriter(a.tar, h)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := a.tar.Flush(); err != nil { // fewer octets than were said
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(&a.manifest, "%x  %s\n", h.Sum(nil), name)
	return nil
}

func (a *Writer) header(name string, size int64) error {
	return a.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: a.created, Format: tar.FormatPAX})
}

// AddTree adds a file, or all regular files of a folder, under the names that they have
// below root. What is neither file nor folder is left out and listed in skipped; a name
// that does not exist adds nothing.
func (a *Writer) AddTree(root, name string) (skipped []string, err error) {
	err = filepath.WalkDir(filepath.Join(root, name), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			skipped = append(skipped, rel)
			return nil
		}
		return a.addFile(p, filepath.ToSlash(rel))
	})
	return skipped, err
}

// addFile adds a small file. It is read first: its size must be known and may change.
func (a *Writer) addFile(path, name string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return a.Add(name, int64(len(b)), func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Close writes the manifest and ends the archive. Without it the archive is not whole.
func (a *Writer) Close() error {
	if err := a.header(manifestName, int64(a.manifest.Len())); err != nil {
		return err
	}
	if _, err := a.tar.Write(a.manifest.Bytes()); err != nil {
		return err
	}
	return a.tar.Close()
}

// Error is an archive that cannot be used.
type Error struct {
	Name string // the entry, if it is about one
	Text string // "": it does not begin as a backup does
	Err  error
}

// notOurs is about what does not begin as a backup does; a fault of the disk stays one.
func notOurs(err error) error {
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return err
	}
	return &Error{Err: err}
}

func (e *Error) Error() string {
	if e.Text == "" {
		return "this is no backup of pizza"
	}
	s := "not a whole backup"
	if e.Name != "" {
		s += ": " + e.Name
	}
	s += ": " + e.Text
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Extract reads an archive to its end and checks it; with a folder, its files are
// written there, synced. It is compressed or not. When it returns an error, what it
// wrote is of no use. The error is *Error when the archive is at fault.
func Extract(r io.Reader, into string) (Info, error) {
	r, err := decompressed(r)
	if err != nil {
		return Info{}, notOurs(err)
	}
	x := &extraction{tar: tar.NewReader(r), into: into, sums: map[string]string{}}
	for {
		h, err := x.tar.Next()
		if errors.Is(err, io.EOF) {
			return x.info, x.end()
		}
		if err != nil && len(x.sums) == 0 {
			return x.info, notOurs(err)
		}
		if err != nil {
			return x.info, &Error{Text: "it is cut off or damaged", Err: err}
		}
		if err := x.entry(h); err != nil {
			return x.info, err
		}
	}
}

type extraction struct {
	tar      *tar.Reader
	into     string
	info     Info
	sums     map[string]string // by name
	manifest map[string]string // nil: not seen
}

func (x *extraction) entry(h *tar.Header) error {
	switch {
	case x.manifest != nil:
		return &Error{Name: h.Name, Text: "it comes after the end"}
	case h.Typeflag != tar.TypeReg || !filepath.IsLocal(filepath.FromSlash(h.Name)) || path.Clean(h.Name) != h.Name:
		return &Error{Name: h.Name, Text: "it is no file below a data root"}
	case x.sums[h.Name] != "":
		return &Error{Name: h.Name, Text: "it is there twice"}
	case len(x.sums) == 0 && h.Name != infoName:
		return &Error{Err: tar.ErrHeader}
	case h.Name == infoName, h.Name == manifestName:
		return x.own(h)
	}
	return x.file(h)
}

// maxOwn is how large backup.json and the manifest may be: some million files.
const maxOwn = 256 << 20

// own reads the entries that are about the archive.
func (x *extraction) own(h *tar.Header) error {
	if h.Size > maxOwn {
		return &Error{Name: h.Name, Text: "it is too large"}
	}
	b, err := io.ReadAll(x.tar)
	if err != nil {
		return &Error{Name: h.Name, Text: "it is cut off", Err: err}
	}
	if h.Name == manifestName {
		x.manifest = map[string]string{}
		for line := range bytes.Lines(b) {
			sum, name, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("  "))
			if !ok {
				return &Error{Name: h.Name, Text: "a line of it cannot be read"}
			}
			x.manifest[string(name)] = string(sum)
		}
		return nil
	}
	x.sums[h.Name] = hexSum(sha256.Sum256(b))
	if err := json.Unmarshal(b, &x.info); err != nil {
		return &Error{Name: h.Name, Text: "it cannot be read", Err: err}
	}
	if x.info.Format != format {
		return &Error{Text: fmt.Sprintf("it has format %d, and this release reads %d: use the release that wrote it (%s)", x.info.Format, format, x.info.Version)}
	}
	return nil
}

func hexSum(s [32]byte) string { return hex.EncodeToString(s[:]) }

// file reads one file, and writes it.
func (x *extraction) file(h *tar.Header) error {
	sum := sha256.New()
	var err error
	if x.into == "" {
		_, err = io.Copy(sum, x.tar)
	} else {
		err = x.write(filepath.Join(x.into, filepath.FromSlash(h.Name)), sum)
	}
	var disk *fs.PathError
	if err != nil && !errors.As(err, &disk) {
		return &Error{Name: h.Name, Text: "it is cut off or damaged", Err: err}
	}
	x.sums[h.Name] = hex.EncodeToString(sum.Sum(nil))
	return err
}

func (x *extraction) write(to string, sum hash.Hash) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(f, sum), x.tar)
	return errors.Join(err, f.Sync(), f.Close())
}

// end compares what was read with the manifest.
func (x *extraction) end() error {
	if x.manifest == nil {
		return &Error{Text: "it is cut off: its end, " + manifestName + ", is missing"}
	}
	for name, sum := range x.manifest {
		if got, ok := x.sums[name]; !ok || got != sum {
			return &Error{Name: name, Text: "it is missing or was changed"}
		}
	}
	if len(x.manifest) != len(x.sums) {
		return &Error{Text: "it holds files that its manifest does not name"}
	}
	return nil
}

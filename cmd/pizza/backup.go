package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pizza/internal/backup"
)

// kept are the files and folders of a data root that a backup holds beside the store;
// run/ and logs/ are of the moment.
var kept = []string{"settings.json", "credentials", "tls", ".mcp.json", "skills", "plugins"}

func newBackup(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "write a copy of everything into one file, also while the server runs",
		Long: "Write a copy of all accounts, their mail and tasks, the settings, the passwords and the\n" +
			"certificates into one tar file, compressed when its name ends in .gz. The copy is of one\n" +
			"moment, also while the server runs. FILE appears when it is whole, readable by you alone:\n" +
			"who has it can read your mail. `pizza restore --check FILE` reads it through.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := mayReplace(args[0]); err != nil {
				return fmt.Errorf("no backup: %w", err)
			}
			return g.with(cmd, func(s service) error {
				size, err := writeBackup(cmd.Context(), s, args[0])
				if err != nil {
					return fmt.Errorf("no backup: %w", err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", args[0], octets(size))
				return err
			})
		},
	}
}

// mayReplace refuses a name that something else than a file has, which a backup would
// take the place of.
func mayReplace(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no folder %s", filepath.Dir(path))
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a device, a pipe or the like: name a file", path)
	}
	return nil
}

// writeBackup writes the file under another name, syncs it, and gives it its name: what
// is there under the name is whole.
func writeBackup(ctx context.Context, s service, path string) (size int64, err error) {
	temp := path + ".tmp"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	err = backupTo(ctx, s, f, strings.HasSuffix(path, ".gz"))
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(temp, path); err != nil {
		return 0, err
	}
	return size, syncFolder(filepath.Dir(path))
}

func backupTo(ctx context.Context, s service, f io.Writer, compressed bool) error {
	if !compressed {
		return s.Backup(ctx, f)
	}
	z := gzip.NewWriter(f)
	return errors.Join(s.Backup(ctx, z), z.Close())
}

// syncFolder makes a new name in a folder durable, where the system has a call for it.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && os.PathSeparator == '/' {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}

// octets shows a size to a person.
func octets(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1e3)
}

// Backup writes an archive of the data root.
func (a *app) Backup(ctx context.Context, w io.Writer) error {
	info := backup.Info{Created: time.Now().UTC(), Version: version}
	list, err := a.accounts.List(ctx)
	if err != nil {
		return err
	}
	for _, acc := range list {
		info.Logins = append(info.Logins, acc.Login)
	}
	out, err := backup.NewWriter(w, info)
	if err != nil {
		return err
	}
	if err := a.store.Backup(ctx, out.Add); err != nil {
		return err
	}
	for _, name := range kept {
		skipped, err := out.AddTree(a.root, name)
		if err != nil {
			return err
		}
		if len(skipped) > 0 {
			a.log.Warn("links and the like are not in the backup", "names", strings.Join(skipped, ", "))
		}
	}
	return out.Close()
}

// trailerError carries why a stream that had begun well did not end so.
const trailerError = "Pizza-Error"

// serveBackup streams an archive over the control socket.
func serveBackup(s service) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", trailerError)
		w.Header().Set("Content-Type", "application/x-tar")
		if err := s.Backup(r.Context(), w); err != nil {
			w.Header().Set(trailerError, strings.Map(oneLine, userText(err)))
		}
	}
}

// oneLine keeps a header field one line.
func oneLine(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

func (c *controlClient) Backup(ctx context.Context, w io.Writer) error {
	resp, err := c.do(ctx, "GET", "/backup", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the server did not send all of it: %w", err)
	}
	if text := resp.Trailer.Get(trailerError); text != "" {
		return errors.New(text)
	}
	return nil
}

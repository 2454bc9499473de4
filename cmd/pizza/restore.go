package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"pizza/agent"
	"pizza/internal/backup"
	"pizza/mailbox"
	"pizza/mailbox/boltstore"
)

func newRestore(g *globals) *cobra.Command {
	var force, check bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "make a data root of what `pizza backup` wrote",
		Long: "Make a data root of a backup. It must be empty; with --force what is there is put aside\n" +
			"into a folder in it, and not deleted. The server must not run.\n\n" +
			"Mail programs fetch everything anew: every mailbox gets a new UIDVALIDITY. Where tasks or\n" +
			"decisions were open, nothing runs until the person answers one mail in Action.\n\n" +
			"--check reads the file through and says whether it is whole.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check {
				return checkBackup(cmd.OutOrStdout(), args[0])
			}
			root, err := g.root()
			if err != nil {
				return err
			}
			return restore(cmd.Context(), cmd.OutOrStdout(), args[0], root, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "put aside what is in the data root")
	cmd.Flags().BoolVar(&check, "check", false, "only read the file")
	return cmd
}

func checkBackup(w io.Writer, path string) error {
	info, err := extract(path, "")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: whole; made %s by %s\n", path, info.Created.Local().Format("2006-01-02 15:04"), info.Version)
	return err
}

func extract(path, into string) (backup.Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return backup.Info{}, err
	}
	defer f.Close()
	info, err := backup.Extract(f, into)
	if err != nil {
		return info, fmt.Errorf("%s: %w", path, err)
	}
	return info, nil
}

// unpacked is where a backup is made ready, in the root itself so that its files are
// renamed and not copied.
const unpacked = "restore.tmp"

// restore unpacks the backup beside what is in the root, makes it ready there, and then
// moves it into place, accounts.db last: a root without it is no root.
func restore(ctx context.Context, w io.Writer, path, root string, force bool) (err error) {
	if err := mayRestore(root, force); err != nil {
		return err
	}
	work := filepath.Join(root, unpacked)
	if err := os.RemoveAll(work); err != nil { // of a restore that was cut off
		return err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	info, err := extract(path, work)
	if err != nil {
		return err
	}
	parked, err := ready(ctx, work, info)
	if err != nil {
		return err
	}
	aside, err := putAside(root)
	if err != nil {
		return err
	}
	if err := moveInto(work, root); err != nil {
		return err
	}
	return tellRestored(w, root, info, parked, aside)
}

// mayRestore refuses a root in use, and one with something in it.
func mayRestore(root string, force bool) error {
	if _, err := dialControl(root); err == nil {
		return fmt.Errorf("a server runs on %s: stop it first", root)
	}
	rest, err := contents(root)
	if err != nil || len(rest) == 0 {
		return err
	}
	if !force {
		return fmt.Errorf("%s is not empty: name another folder with --data-root, or put what is there aside with --force", root)
	}
	if !madeByServe(root) {
		return nil
	}
	store, err := boltstore.Open(root, boltstore.Options{})
	var me *mailbox.Error
	if errors.As(err, &me) && me.Kind == mailbox.Transient {
		return err
	}
	if err != nil { // damaged: the more reason to restore
		return nil
	}
	return store.Close()
}

// contents lists what a restore would replace.
func contents(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); n != unpacked && n != "run" && n != "logs" && !isAside(n) {
			names = append(names, n)
		}
	}
	return names, err
}

const asidePrefix = "replaced-"

func isAside(name string) bool {
	return len(name) > len(asidePrefix) && name[:len(asidePrefix)] == asidePrefix
}

// ready makes an unpacked store one that goes on by itself: numbers that were never
// given out, and the question where something was open.
func ready(ctx context.Context, root string, info backup.Info) (parked map[string]agent.Parked, err error) {
	set, err := loadSettings(root, serveFlags{})
	if err != nil { // of another machine, perhaps: the person corrects them before the start
		set, err = loadSettings(filepath.Join(root, "none"), serveFlags{})
	}
	if err != nil {
		return nil, err
	}
	a, err := openApp(ctx, root, set, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	ids, err := a.store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	list, err := a.accounts.List(ctx)
	if err != nil {
		return nil, err
	}
	parked = map[string]agent.Parked{}
	for _, id := range ids {
		if err := a.store.Renumber(ctx, id); err != nil {
			return nil, err
		}
		p, err := a.agent.Restored(ctx, id, info.Created)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(list, func(acc mailbox.Account) bool { return acc.ID == id }); i >= 0 && p != (agent.Parked{}) {
			parked[list[i].Login] = p
		}
	}
	return parked, nil
}

// putAside moves what is in the root into a folder of its own; "" when there is nothing.
func putAside(root string) (string, error) {
	names, err := contents(root)
	if err != nil || len(names) == 0 {
		return "", err
	}
	aside := filepath.Join(root, asidePrefix+time.Now().Format("20060102-150405"))
	if err := os.Mkdir(aside, 0o700); err != nil {
		return "", err
	}
	// accounts.db first: what is cut off here is no root any more.
	slices.SortFunc(names, func(x, y string) int { return last(y) - last(x) })
	return aside, moveAll(root, aside, names)
}

// last orders accounts.db behind everything else.
func last(name string) int {
	if name == "accounts.db" {
		return 1
	}
	return 0
}

// moveInto moves a store that is ready into the root, accounts.db last.
func moveInto(work, root string) error {
	entries, err := os.ReadDir(work)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); n != "run" && n != "logs" && n != "backup.json" {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return last(x) - last(y) })
	return moveAll(work, root, names)
}

func moveAll(from, to string, names []string) error {
	for _, n := range names {
		if err := os.Rename(filepath.Join(from, n), filepath.Join(to, n)); err != nil {
			return err
		}
		if last(n) == 1 {
			if err := errors.Join(syncFolder(to), syncFolder(from)); err != nil {
				return err
			}
		}
	}
	return errors.Join(syncFolder(from), syncFolder(to))
}

func tellRestored(w io.Writer, root string, info backup.Info, parked map[string]agent.Parked, aside string) error {
	fmt.Fprintf(w, "restored into %s: the state of %s\n", root, info.Created.Local().Format("2006-01-02 15:04"))
	for login, p := range parked {
		fmt.Fprintf(w, "%s: %s and %s wait; a mail in Action asks whether they go on\n", login, count(p.Tasks, "open task"), count(p.Decisions, "open decision"))
	}
	if aside != "" {
		fmt.Fprintf(w, "what was there before is in %s\n", aside)
	}
	if _, err := loadSettings(root, serveFlags{}); err != nil {
		fmt.Fprintf(w, "its settings do not fit this machine; correct them before the start:\n%v\n", err)
	}
	_, err := fmt.Fprintln(w, "start it with `pizza serve`; programs know the passwords that were in the backup")
	return err
}

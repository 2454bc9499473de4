package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"pizza/internal/mailfile"
)

func newExport(g *globals) *cobra.Command {
	var maildir, mbox string
	var folders []string
	cmd := &cobra.Command{
		Use: "export --maildir DIR | --mbox DIR", Short: "write an account's mail as files that other mail programs read",
		Long: "Write the mail of an account (--account) as a Maildir with folders, as mutt, mbsync and\n" +
			"Dovecot know it, or as one mbox file a folder. Flags, dates and folders come along, and\n" +
			"keywords as far as the format has them. DIR must be empty or missing. `pizza import` reads\n" +
			"both back.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (maildir == "") == (mbox == "") {
				return errors.New("say where to: --maildir DIR or --mbox DIR")
			}
			dir, open := maildir, mailfile.NewMaildir
			if mbox != "" {
				dir, open = mbox, mailfile.NewMbox
			}
			return g.with(cmd, func(s service) error { return exportTo(cmd, s, g.account, folders, dir, open) })
		},
	}
	cmd.Flags().StringVar(&maildir, "maildir", "", "write a Maildir into this folder")
	cmd.Flags().StringVar(&mbox, "mbox", "", "write mbox files into this folder")
	cmd.Flags().StringArrayVar(&folders, "folder", nil, "only this folder; may be given again")
	return cmd
}

func exportTo(cmd *cobra.Command, s service, account string, folders []string, dir string, open func(string) (mailfile.Sink, error)) error {
	if err := mayExport(dir); err != nil {
		return err
	}
	sink, err := open(dir)
	if err != nil {
		return err
	}
	c := &counted{Sink: sink, progress: newProgress(cmd.ErrOrStderr())}
	err = errors.Join(s.Export(cmd.Context(), account, folders, c), sink.Close())
	c.progress.end()
	if err != nil {
		return fmt.Errorf("not all is exported: %w", err)
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "exported %s of %s to %s\n", count(c.messages, "message"), count(c.folders, "folder"), dir); err != nil {
		return err
	}
	if len(folders) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "not exported: Action and Running, which show how tasks stand now (--folder NAME exports one), and the view Unread")
	}
	return c.leftOut(cmd.ErrOrStderr())
}

// mayExport refuses what is no folder, and a folder with something in it.
func mayExport(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder: name one that is empty or missing", dir)
	}
	list, err := os.ReadDir(dir)
	if err == nil && len(list) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	return err
}

// counted counts what a sink takes, and keeps what the format has no place for.
type counted struct {
	mailfile.Sink
	messages, folders int
	faults            []error
	progress          *progress
}

func (c *counted) Folder(name string) error {
	c.folders++
	return c.Sink.Folder(name)
}

func (c *counted) Add(m mailfile.Message) error {
	err := c.Sink.Add(m)
	var fault *mailfile.Error
	if errors.As(err, &fault) {
		c.faults = append(c.faults, err)
		err = nil
	}
	c.messages++
	c.progress.at(c.messages)
	return err
}

func (c *counted) leftOut(w io.Writer) error {
	for _, f := range c.faults {
		fmt.Fprintln(w, f)
	}
	if len(c.faults) > 0 {
		return exitError{code: 1, text: "pizza: not all keywords are exported of " + count(len(c.faults), "message")}
	}
	return nil
}

// progress shows on a terminal how far a command has come.
type progress struct {
	w     io.Writer
	shows bool
	shown bool
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, shows: ok && isTerminal(f)}
}

func (p *progress) at(n int) {
	if p.shows && n%100 == 0 {
		p.shown = true
		fmt.Fprintf(p.w, "\r%d messages", n)
	}
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r                        \r")
	}
}

func newImport(g *globals) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use: "import PATH...", Short: "take in mail from mbox files, Maildirs and .eml files",
		Long: "File the mail of mbox files, Maildirs (with folders as Dovecot and mbsync keep them), .eml\n" +
			"files, and folders of these, in an account (--account) with its flags, dates and folders.\n" +
			"It starts no task. What lies in a folder already, byte for byte, is not added once more. Mail of\n" +
			"folders that have a meaning here (Action, Running, Tasks and so on) goes into Imported/.\n" +
			"Links in a folder, pipes and devices are left out. Ctrl-C ends it; the same command once more\n" +
			"goes on.\n\n" +
			"The exit code is 1 when something was left out; each has a line on standard error.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.with(cmd, func(s service) error {
				im := &importer{s: s, account: g.account, below: folder, errw: cmd.ErrOrStderr(), progress: newProgress(cmd.ErrOrStderr()),
					moved: map[string]bool{}, folders: map[string]bool{}}
				err := im.paths(cmd.Context(), args)
				im.progress.end()
				if told := im.tell(cmd.OutOrStdout()); err == nil {
					return told
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&folder, "folder", "", "file everything in this folder and below it")
	return cmd
}

const (
	batchMessages = 200
	batchBytes    = 4 << 20
)

// importer hands what a walk finds to a service, in batches.
type importer struct {
	s       service
	account string
	below   string
	errw    io.Writer

	batch []mailfile.Message
	size  int

	progress          *progress
	moved, folders    map[string]bool
	added, there, out int
}

// errStopped: the person ended the import. What was filed is told before it.
var errStopped = errors.New("stopped before the end: the same command once more files the rest")

func (im *importer) paths(ctx context.Context, paths []string) error {
	for _, p := range paths {
		err := mailfile.Walk(p, beside, func(m mailfile.Message, err error) error {
			var fault *mailfile.Error
			switch {
			case ctx.Err() != nil:
				return errStopped
			case errors.As(err, &fault):
				im.leave(fault)
				return nil
			case err != nil:
				return err
			}
			return im.take(ctx, m)
		})
		if !errors.Is(err, errStopped) {
			err = errors.Join(err, im.flush(ctx))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take adds a message to the batch.
func (im *importer) take(ctx context.Context, m mailfile.Message) error {
	if im.below != "" {
		if m.Folder == "INBOX" || m.Folder == beside {
			m.Folder = im.below
		} else {
			m.Folder = im.below + "/" + m.Folder
		}
	}
	m.Body = bytes.Clone(m.Body)
	im.batch, im.size = append(im.batch, m), im.size+len(m.Body)
	if len(im.batch) < batchMessages && im.size < batchBytes {
		return nil
	}
	return im.flush(ctx)
}

// flush hands a batch over. One that was begun is ended, or nobody could say what of it
// was filed: it takes a moment.
func (im *importer) flush(ctx context.Context) error {
	if len(im.batch) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return errStopped
	}
	batch := im.batch
	im.batch, im.size = nil, 0
	results, err := im.s.Import(context.WithoutCancel(ctx), im.account, batch)
	if err != nil {
		return fmt.Errorf("at %s: %w", batch[0].Where, err)
	}
	for i, r := range results {
		im.result(batch[i], r)
	}
	im.progress.at((im.added + im.there) / 100 * 100)
	return nil
}

func (im *importer) result(m mailfile.Message, r imported) {
	switch {
	case r.Text != "":
		where := m.Where
		if where == "" {
			where = m.Folder
		}
		im.leave(errors.New(where + ": " + r.Text))
		return
	case r.View:
		im.note(m.Folder, "the mail of %s is not imported: it shows what lies in other folders (--folder NAME files it below NAME)", visible(m.Folder))
		return
	case r.Folder == "": // an empty folder that is here already
		return
	case r.Folder != m.Folder:
		im.note(m.Folder, "the mail of %s goes into %s: what lies in %s is what the server works with, and an import starts, decides and teaches nothing",
			visible(m.Folder), visible(r.Folder), visible(m.Folder))
	}
	im.folders[r.Folder] = true
	switch {
	case m.Body == nil:
	case r.There:
		im.there++
	default:
		im.added++
	}
}

// note says once of a folder what becomes of its mail.
func (im *importer) note(folder, format string, args ...any) {
	if !im.moved[folder] {
		im.moved[folder] = true
		fmt.Fprintf(im.errw, format+"\n", args...)
	}
}

func (im *importer) leave(why error) {
	im.out++
	im.progress.end()
	fmt.Fprintln(im.errw, "left out:", visible(why.Error()))
}

func (im *importer) tell(w io.Writer) error {
	line := fmt.Sprintf("imported %s into %s", count(im.added, "message"), count(len(im.folders), "folder"))
	if im.there > 0 {
		line += fmt.Sprintf("; %d lay there already", im.there)
	}
	if im.out > 0 {
		line += fmt.Sprintf("; %d left out", im.out)
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return err
	}
	if im.out > 0 {
		return exitError{code: 1}
	}
	return nil
}

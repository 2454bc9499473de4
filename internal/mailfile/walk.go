package mailfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Walk calls fn with each message below path: a Maildir with its folders, an mbox file, a
// message (.eml), or a directory with such things in it, whose folders become folders. A
// folder comes first as a Message without Body. What cannot be read is a call with an
// *Error (and an empty Message); Walk goes on unless fn returns an error, which it then
// returns. So are links in a directory, which could lead out of it (path itself may be
// one), pipes, devices and sockets: none of them is opened.
//
// The folder of a Maildir is INBOX, and of those in it their names. That of an mbox file
// is its name without .mbox; that of single messages is their directory's name below
// path, and loose for those at the top.
func Walk(path, loose string, fn func(Message, error) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	w := &walker{loose: loose, fn: fn}
	switch {
	case !info.IsDir():
		return w.named(path)
	case isMaildir(path):
		return w.maildir(path, "INBOX", "")
	}
	return w.directory(path, "")
}

type walker struct {
	loose string
	fn    func(Message, error) error
}

// maildir reads a Maildir and what lies in it: folders by Maildir++, and directories as
// mbsync makes them with SubFolders Verbatim.
func (w *walker) maildir(dir, folder, below string) error {
	if err := readMaildir(dir, folder, w.fn); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return w.fn(Message{}, unreadable(dir, err))
	}
	for _, e := range entries {
		name, sub := e.Name(), filepath.Join(dir, e.Name())
		if name == "cur" || name == "new" || name == "tmp" || name == keywordFile || e.Type().IsRegular() {
			continue
		}
		if !e.IsDir() {
			if err := w.fn(Message{}, irregular(sub, e.Type())); err != nil {
				return err
			}
			continue
		}
		child := join(below, dirFolder(name))
		if !isMaildir(sub) && strings.HasPrefix(name, ".") {
			continue // a program's own
		}
		if err := w.nested(sub, child); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) nested(dir, folder string) error {
	if isMaildir(dir) {
		return w.maildir(dir, folder, folder)
	}
	return w.directory(dir, folder)
}

func join(below, name string) string {
	if below == "" {
		return name
	}
	return below + "/" + name
}

// directory reads what lies in one that is no Maildir. A Maildir named Inbox or INBOX at
// its top is the inbox.
func (w *walker) directory(dir, folder string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return w.fn(Message{}, unreadable(dir, err))
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if strings.HasPrefix(name, ".") && !(e.IsDir() && isMaildir(path)) {
			continue
		}
		if !e.IsDir() {
			if err := w.file(path, folder); err != nil {
				return err
			}
			continue
		}
		if err := w.nested(path, join(folder, dirFolder(name))); err != nil {
			return err
		}
	}
	return nil
}

// dirFolder is the folder that a directory stands for: Thunderbird keeps what is below
// the mbox file Work in Work.sbd, Apple Mail exports Work.mbox with a file mbox in it.
func dirFolder(name string) string {
	if strings.HasPrefix(name, ".") {
		return folderOf(name)
	}
	name = strings.TrimSuffix(name, ".sbd")
	return inbox(unescape(strings.TrimSuffix(name, mboxSuffix)))
}

func inbox(name string) string {
	if strings.EqualFold(name, "inbox") {
		return "INBOX"
	}
	return name
}

// named reads the file that Walk was called for, which a link may lead to.
func (w *walker) named(path string) error {
	f, err := openFile(path, os.Stat)
	if err != nil {
		return w.fn(Message{}, err)
	}
	defer f.Close()
	return w.read(f, path, "")
}

// file reads a file in a directory.
func (w *walker) file(path, folder string) error {
	f, err := openFile(path, os.Lstat)
	if err != nil {
		return w.fn(Message{}, err)
	}
	defer f.Close()
	return w.read(f, path, folder)
}

// read reads an mbox file or a message. What is neither is told of, but for the index
// files of programs.
func (w *walker) read(f *os.File, path, folder string) error {
	name := filepath.Base(path)
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return w.fn(Message{}, unreadable(path, err))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return w.fn(Message{}, unreadable(path, err))
	}
	head = head[:n]
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case ext == ".eml":
		return w.message(f, path, folder)
	case bytes.HasPrefix(head, []byte(fromLine)), n == 0 && (ext == mboxSuffix || ext == ""):
		return w.mbox(f, path, join(folder, mboxFolder(name)))
	case ext == ".msf", ext == ".json", name == "table_of_contents", ext == ".plist", name == keywordFile, name == "maildirfolder",
		ext == ".lock", strings.HasPrefix(name, "dovecot"), name == "subscriptions":
		return nil
	}
	return w.fn(Message{}, &Error{Where: path, Text: "neither an mbox file nor a message: its name does not end in .eml and it does not begin with \"From \""})
}

func mboxFolder(name string) string {
	return inbox(unescape(strings.TrimSuffix(name, mboxSuffix)))
}

func (w *walker) mbox(f io.Reader, path, folder string) error {
	if filepath.Base(path) == "mbox" && strings.HasSuffix(filepath.Dir(path), mboxSuffix) { // Apple Mail
		folder = strings.TrimSuffix(strings.TrimSuffix(folder, "mbox"), "/")
	}
	if err := w.fn(Message{Folder: folder}, nil); err != nil {
		return err
	}
	return readMbox(f, path, folder, w.fn)
}

func (w *walker) message(f *os.File, path, folder string) error {
	body, when, err := readFile(f, path)
	if err != nil {
		return w.fn(Message{}, err)
	}
	if line, _, _ := bytes.Cut(body, []byte("\n")); !bytes.HasSuffix(line, []byte("\r")) {
		body = toCRLF(body)
	}
	if folder == "" {
		folder = w.loose
	}
	return w.fn(Message{Folder: folder, Body: body, Date: when, Where: path}, nil)
}

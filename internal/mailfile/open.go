package mailfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"
)

// openFile opens a regular file for reading. A pipe, a device or a socket is an *Error,
// and is not waited for: it is not opened, or, when it came there between looking and
// opening, opened without blocking. stat is os.Lstat for what was found in a folder, so
// that a link does not lead out of it, and os.Stat for what a person named.
func openFile(path string, stat func(string) (fs.FileInfo, error)) (*os.File, error) {
	found, err := stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !found.Mode().IsRegular() {
		return nil, irregular(path, found.Mode())
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	opened, err := f.Stat()
	if err != nil {
		return nil, errors.Join(unreadable(path, err), f.Close())
	}
	if !os.SameFile(found, opened) {
		return nil, errors.Join(&Error{Where: path, Text: "it was replaced meanwhile"}, f.Close())
	}
	return f, nil
}

// unreadable is what the disk says of a path, without the path once more.
func unreadable(path string, err error) *Error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &Error{Where: path, Text: "it cannot be read", Err: err}
}

// irregular says of what is neither a file nor a folder why it is left out.
func irregular(path string, mode fs.FileMode) *Error {
	text := "it is no file"
	switch {
	case mode&fs.ModeSymlink != 0:
		text = "it is a link, which may lead out of the folder: name what it leads to"
	case mode&fs.ModeNamedPipe != 0:
		text += " but a pipe"
	case mode&fs.ModeSocket != 0:
		text += " but a socket"
	case mode&fs.ModeDevice != 0:
		text += " but a device"
	}
	return &Error{Where: path, Text: text}
}

// readFile reads a message and its time of change.
func readFile(f *os.File, path string) ([]byte, time.Time, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, unreadable(path, err)
	}
	if info.Size() > MaxMessage {
		return nil, time.Time{}, &Error{Where: path, Text: "larger than " + strconv.Itoa(MaxMessage>>20) + " MiB"}
	}
	body, err := io.ReadAll(io.LimitReader(f, MaxMessage))
	if err != nil {
		return nil, time.Time{}, unreadable(path, err)
	}
	return body, info.ModTime(), nil
}

package smtpgate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"syscall"

	"pizza/mailbox"
)

// maxSpool is how much of a message without Message-ID is kept in memory.
const maxSpool = 1 << 20

// spooled is a message body that had to be read to its end before its header could be
// written: the Message-ID that we add is made from the content, so that a sender which
// tries again sends the same mail and not a second one. Mail programs set a Message-ID
// themselves; what comes without is mostly short.
type spooled struct {
	io.Reader
	file *os.File // nil: all in memory
}

// spool reads r to its end and adds it to sum.
func spool(r io.Reader, sum hash.Hash) (*spooled, error) {
	var mem bytes.Buffer
	r = io.TeeReader(r, sum)
	if _, err := io.CopyN(&mem, r, maxSpool); err == io.EOF {
		return &spooled{Reader: &mem}, nil
	} else if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "pizza-mail-*") // 0600
	if err != nil {
		return nil, diskError(err)
	}
	os.Remove(file.Name()) // at once where an open file allows it: a crash leaves no mail behind
	s := &spooled{Reader: file, file: file}
	if _, err := io.Copy(file, io.MultiReader(&mem, r)); err != nil {
		s.Close()
		return nil, diskError(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		s.Close()
		return nil, diskError(err)
	}
	return s, nil
}

// Close removes the file where it is still there.
func (s *spooled) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if gone := os.Remove(s.file.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &mailbox.Error{Op: "spool", Kind: mailbox.Full, Err: err}
	}
	return err
}

// contentSum begins the sum that a Message-ID is made of: login and content as
// received.
func contentSum(login string, head []byte) hash.Hash {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00", login)
	sum.Write(head)
	return sum
}

func messageIDOf(sum hash.Hash) string {
	return "<" + hex.EncodeToString(sum.Sum(nil)[:20]) + "@pizza.localhost>"
}

package tools

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// errors of files, in words for the model. They name no path of the machine.
var (
	errMissing   = errors.New("there is no such file or folder")
	errIsFolder  = errors.New("it is a folder")
	errNotFolder = errors.New("it is a file, not a folder")
	errSpecial   = errors.New("it is no regular file")
	errSymlink   = errors.New("the path goes over a symbolic link; nothing is changed through those")
)

// plainError is what happened to a file, without the system's own paths.
func plainError(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errMissing
	case errors.Is(err, fs.ErrPermission):
		return errors.New("the system does not permit it")
	case errors.Is(err, syscall.ENOTDIR):
		return errors.New("a part of the path is a file, not a folder")
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	if strings.Contains(err.Error(), "escapes") { // os.Root has no exported error for it
		return errors.New("it leads out of the granted folder")
	}
	return err
}

// openGrant opens a granted folder. It is opened for each call: a folder that is
// replaced or unmounted is seen as it is now.
func openGrant(g Grant) (*os.Root, error) {
	root, err := os.OpenRoot(g.Path)
	if err != nil {
		return nil, errors.New("the granted folder cannot be opened: " + plainError(err).Error())
	}
	return root, nil
}

// source is an open file to read.
type source struct {
	io.ReadCloser
	size int64
}

// openTarget opens a file of any place for reading.
func openTarget(w Workspace, t target) (source, error) {
	switch t.place {
	case inPlace:
		return openListed(w.In(), t.rel)
	case outPlace:
		return openListed(w.Out(), t.rel)
	}
	root, err := openGrant(t.grant)
	if err != nil {
		return source{}, err
	}
	defer root.Close()
	return openIn(root, t.name())
}

func openListed(files []File, name string) (source, error) {
	f := listed(files, name)
	if f == nil {
		return source{}, errMissing
	}
	r, err := f.Open()
	if err != nil {
		return source{}, plainError(err)
	}
	return source{r, f.Size}, nil
}

func listed(files []File, name string) *File {
	for i := range files {
		if files[i].Name == name {
			return &files[i]
		}
	}
	return nil
}

// openIn opens a regular file of a granted folder. Links are followed as long as
// they stay inside. O_NONBLOCK keeps a pipe from holding the call.
func openIn(root *os.Root, name string) (source, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return source{}, plainError(err)
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
		err = plainError(err)
	case fi.IsDir():
		err = errIsFolder
	case !fi.Mode().IsRegular():
		err = errSpecial
	default:
		return source{f, fi.Size()}, nil
	}
	_ = f.Close() // only read from
	return source{}, err
}

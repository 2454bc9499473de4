package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const maxEdit = maxContent // bytes of a file that is edited

func runWrite(ctx context.Context, w Workspace, j *job) Outcome {
	content := j.args.text["content"]
	if j.path.place == outPlace {
		o := done("Wrote %s, %s.", j.path, size(int64(len(content))))
		o.Out = []OutFile{{Name: j.path.rel, Content: []byte(content)}}
		return o
	}
	root, err := openGrant(j.path.grant)
	if err != nil {
		return failed("%s was not written: %v", j.path, err)
	}
	defer root.Close()
	old, err := changeable(root, j.path.rel)
	if err == nil && old != nil && old.IsDir() {
		err = errIsFolder
	}
	if err == nil {
		err = replace(ctx, root, j.path.rel, old, []byte(content))
	}
	if err != nil {
		return failed("%s was not written: %v", j.path, err)
	}
	what := "a new file"
	if old != nil {
		what = "in place of the one before"
	}
	return done("Wrote %s, %s, %s.", j.path, size(int64(len(content))), what)
}

// changeable refuses a path that goes over a symbolic link at any segment, or ends
// at what is neither a file nor a folder. The result is nil if nothing is there yet.
func changeable(root *os.Root, rel string) (fs.FileInfo, error) {
	segments := strings.Split(rel, "/")
	for i := range segments {
		fi, err := root.Lstat(strings.Join(segments[:i+1], "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, plainError(err)
		case fi.Mode()&fs.ModeSymlink != 0:
			return nil, errSymlink
		case i < len(segments)-1 && !fi.IsDir():
			return nil, errors.New("a part of the path is a file, not a folder")
		case i == len(segments)-1 && !fi.IsDir() && !fi.Mode().IsRegular():
			return nil, errSpecial
		case i == len(segments)-1:
			return fi, nil
		}
	}
	return nil, nil
}

// replace writes a file atomically: a new file beside it, synced, then renamed over
// it. An error means that nothing changed (folders made on the way aside).
func replace(ctx context.Context, root *os.Root, rel string, old fs.FileInfo, content []byte) error {
	if err := ctx.Err(); err != nil {
		return errors.New("stopped before it was written")
	}
	dir := path.Dir(rel)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return plainError(err)
	}
	temp := path.Join(dir, ".pizza-"+rand.Text()+".tmp")
	err := fill(root, temp, old, content)
	if err == nil && ctx.Err() != nil {
		err = errors.New("stopped before it was written")
	}
	if err == nil && old != nil {
		err = unchanged(root, rel, old)
	}
	if err == nil {
		err = root.Rename(temp, rel)
	}
	if err != nil {
		_ = root.Remove(temp) // the error that counts is the first
		return plainError(err)
	}
	syncFolder(root, dir)
	return nil
}

// fill writes a new file with the mode of the one it will replace.
func fill(root *os.Root, name string, old fs.FileInfo, content []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// unchanged makes sure that what is replaced is what was looked at.
func unchanged(root *os.Root, rel string, old fs.FileInfo) error {
	now, err := root.Lstat(rel)
	if err != nil {
		return err
	}
	if !os.SameFile(old, now) || now.Size() != old.Size() || !now.ModTime().Equal(old.ModTime()) {
		return errors.New("somebody else changed it in this moment")
	}
	return nil
}

// syncFolder makes a rename durable. The rename is done and seen by everybody, so
// an error cannot be taken as "no effect" any more; file systems that cannot sync a
// folder are no fault of the call.
func syncFolder(root *os.Root, dir string) {
	d, err := root.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}

func runEdit(ctx context.Context, w Workspace, j *job) Outcome {
	var before fs.FileInfo
	var root *os.Root
	if j.path.place == grantPlace {
		var err error
		if root, err = openGrant(j.path.grant); err != nil {
			return failed("%s was not changed: %v", j.path, err)
		}
		defer root.Close()
		if before, err = changeable(root, j.path.rel); err == nil && before == nil {
			err = errMissing
		}
		if err != nil {
			return failed("%s was not changed: %v", j.path, err)
		}
	}
	text, err := readAll(w, j.path)
	if err == nil {
		text, err = substitute(text, j.args.text["old"], j.args.text["new"])
	}
	if err == nil && root != nil {
		err = replace(ctx, root, j.path.rel, before, []byte(text))
	}
	if err != nil {
		return failed("%s was not changed: %v", j.path, err)
	}
	o := done("Changed %s; it has %s now.", j.path, size(int64(len(text))))
	if root == nil {
		o.Out = []OutFile{{Name: j.path.rel, Content: []byte(text)}}
	}
	return o
}

// readAll reads a whole file that is to be changed.
func readAll(w Workspace, t target) (string, error) {
	src, err := openTarget(w, t)
	if err != nil {
		return "", err
	}
	defer src.Close()
	b, err := io.ReadAll(io.LimitReader(src, maxEdit+1))
	switch {
	case err != nil:
		return "", plainError(err)
	case len(b) > maxEdit:
		return "", errors.New("it is larger than " + size(maxEdit))
	}
	return string(b), nil
}

// substitute replaces the only occurrence of old. A file with CRLF line ends keeps
// them: old and new are tried with those where old is not found as it is.
func substitute(text, old, new string) (string, error) {
	n := strings.Count(text, old)
	if n == 0 && strings.Contains(text, "\r\n") && !strings.Contains(old, "\r") {
		crlf := strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")
		old, new = crlf.Replace(old), crlf.Replace(new)
		n = strings.Count(text, old)
	}
	switch {
	case n == 0:
		return "", errors.New("the old text is not in it")
	case n > 1 || strings.LastIndex(text, old) != strings.Index(text, old): // Count does not see overlaps
		return "", errors.New("the old text occurs more than once; give more of what is around it")
	}
	return strings.Replace(text, old, new, 1), nil
}

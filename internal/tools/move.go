package tools

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
)

func runMove(ctx context.Context, w Workspace, j *job) Outcome {
	if j.path.place == outPlace {
		return moveOut(w, j)
	}
	root, err := openGrant(j.path.grant)
	if err == nil {
		defer root.Close()
		err = move(ctx, root, j.path.rel, j.to.rel)
	}
	if err != nil {
		return failed("%s was not moved: %v", j.path, err)
	}
	return done("Moved %s to %s.", j.path, j.to)
}

func move(ctx context.Context, root *os.Root, from, to string) error {
	source, err := changeable(root, from)
	if err == nil && source == nil {
		err = errMissing
	}
	if err != nil {
		return err
	}
	there, err := changeable(root, to)
	switch {
	case err != nil:
		return errors.New("the new path: " + err.Error())
	case there != nil && there.IsDir():
		return errors.New("the new path is a folder that exists; give the whole new path, with the name")
	case there != nil:
		return errors.New("there is a file at the new path already; nothing is overwritten")
	case ctx.Err() != nil:
		return errors.New("stopped before it was moved")
	}
	if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return plainError(err)
	}
	if err := root.Rename(from, to); err != nil {
		return plainError(err)
	}
	syncFolder(root, path.Dir(to))
	syncFolder(root, path.Dir(from))
	return nil
}

func moveOut(w Workspace, j *job) Outcome {
	if listed(w.Out(), j.to.rel) != nil {
		return failed("%s was not moved: there is a file at the new path already; nothing is overwritten", j.path)
	}
	src, err := openTarget(w, j.path)
	if err != nil {
		return failed("%s was not moved: %v", j.path, err)
	}
	defer src.Close()
	content, err := io.ReadAll(src)
	if err != nil {
		return failed("%s was not moved: %v", j.path, plainError(err))
	}
	o := done("Moved %s to %s.", j.path, j.to)
	o.Out = []OutFile{{Name: j.to.rel, Content: content}, {Name: j.path.rel, Deleted: true}}
	return o
}

func runDelete(ctx context.Context, w Workspace, j *job) Outcome {
	if j.path.place == outPlace {
		if listed(w.Out(), j.path.rel) == nil {
			return failed("%s was not deleted: %v", j.path, errMissing)
		}
		o := done("Deleted %s.", j.path)
		o.Out = []OutFile{{Name: j.path.rel, Deleted: true}}
		return o
	}
	root, err := openGrant(j.path.grant)
	if err == nil {
		defer root.Close()
		err = remove(ctx, root, j.path.rel)
	}
	if err != nil {
		return failed("%s was not deleted: %v", j.path, err)
	}
	return done("Deleted %s.", j.path)
}

func remove(ctx context.Context, root *os.Root, rel string) error {
	fi, err := changeable(root, rel)
	if err == nil && fi == nil {
		err = errMissing
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		entries, _, err := readFolder(ctx, root, rel)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			return errors.New("the folder is not empty")
		}
	}
	if ctx.Err() != nil {
		return errors.New("stopped before it was deleted")
	}
	if err := root.Remove(rel); err != nil {
		return plainError(err)
	}
	syncFolder(root, path.Dir(rel))
	return nil
}

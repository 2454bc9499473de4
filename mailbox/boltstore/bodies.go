package boltstore

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	bolt "go.etcd.io/bbolt"
)

// missingBodies tells the log which large bodies have no file of their size any more.
// The account opens all the same: everything else in it is well, and these messages are
// an error when they are read.
func (a *account) missingBodies() error {
	missing, first := 0, ""
	err := a.db.View(func(tx *bolt.Tx) error {
		bs := bucketsOf(tx)
		return bs.at(bktBlob).ForEach(func(k, v []byte) error {
			row, err := decodeBlob(v)
			if err != nil || row.inline || len(k) != len(sum{}) {
				return err
			}
			path := a.stage.path(sum(k))
			info, err := os.Stat(path)
			if err == nil && info.Size() == row.size {
				return nil
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if missing++; missing == 1 {
				first = path
			}
			return nil
		})
	})
	if missing > 0 {
		a.log.Error("files of large messages are missing or damaged: stop the server and put them back from the newest backup",
			slog.Int("files", missing), slog.String("first", first))
	}
	return err
}

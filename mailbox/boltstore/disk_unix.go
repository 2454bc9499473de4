//go:build linux || darwin

package boltstore

import "syscall"

// freeSpace is what this user can still write to the file system of path, and how
// large it is.
func freeSpace(path string) (free, size int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}

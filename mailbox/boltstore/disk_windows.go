package boltstore

import "golang.org/x/sys/windows"

// freeSpace is what this user can still write to the volume of path, and how large it
// is.
func freeSpace(path string) (free, size int64, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var avail, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &avail, &total, nil); err != nil {
		return 0, 0, err
	}
	return int64(min(avail, 1<<62)), int64(min(total, 1<<62)), nil
}

//go:build !linux && !darwin && !windows

package boltstore

import "errors"

func freeSpace(string) (free, size int64, err error) { return 0, 0, errors.ErrUnsupported }

package backup

import (
	"bufio"
	"compress/gzip"
	"io"
)

// decompressed gives the archive in r, whether it is compressed or not.
func decompressed(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if magic[0] != 0x1f || magic[1] != 0x8b { // RFC 1952 section 2.3.1
		return b, nil
	}
	return gzip.NewReader(b)
}

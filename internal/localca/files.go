package localca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY"
)

func sortedIPs(ips []net.IP) []net.IP {
	return slices.SortedFunc(slices.Values(ips), func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
}

// read reads a certificate and its key. Neither there is fs.ErrNotExist. A key that
// does not fit its certificate counts as no certificate: a crash may have come between
// the two, or somebody restored one of them.
func (c *CA) read(certFile, keyFile string) (pair, error) {
	key, err := readKey(filepath.Join(c.dir, keyFile))
	if err != nil {
		return pair{}, err
	}
	der, err := readBlock(filepath.Join(c.dir, certFile), certBlock)
	if err != nil {
		return pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, damaged(filepath.Join(c.dir, certFile), err)
	}
	public, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || !public.Equal(&key.PublicKey) {
		return pair{}, fmt.Errorf("localca: %s does not fit %s: %w", certFile, keyFile, fs.ErrNotExist)
	}
	return pair{cert, key}, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	der, err := readBlock(path, keyBlock)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, damaged(path, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, damaged(path, errors.New("not an ECDSA key"))
	}
	return key, nil
}

func readBlock(path, kind string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("localca: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, damaged(path, errors.New("no "+strings.ToLower(kind)+" in it"))
	}
	return block.Bytes, nil
}

// damaged is an error that says what to do: a file that is not ours to understand is
// not overwritten silently.
func damaged(path string, err error) error {
	return fmt.Errorf("localca: %s is damaged: %w (remove the directory %s to make new certificates)", path, err, filepath.Dir(path))
}

// write replaces key, then certificate.
func (c *CA) write(p pair, certFile string, mode fs.FileMode, keyFile string) error {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return fmt.Errorf("localca: key: %w", err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})
	cert := pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: p.cert.Raw})
	if err := replace(filepath.Join(c.dir, keyFile), key, 0o600); err != nil {
		return err
	}
	return replace(filepath.Join(c.dir, certFile), cert, mode)
}

// replace writes a file so that path is at any time the old or the new one.
func replace(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // 0600
	if err != nil {
		return fmt.Errorf("localca: %w", err)
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("localca: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// Package localca is a certificate authority for one machine's own servers: TLS for
// localhost that mail programs accept once they trust one file.
//
// The authority (ECDSA P-256, ten years) is constrained to the names it was made for:
// localhost, pizza.localhost, 127.0.0.1, ::1 and the extra host names (RFC 5280 section
// 4.2.1.10), so that whoever steals its key can impersonate nobody else. It issues one
// leaf (397 days, serverAuth) for all those names. Authority and leaf are separate
// certificates: strict clients refuse one that is both.
//
// Files, in a directory of mode 0700: ca.pem (0644, what is imported into programs),
// ca.key, leaf.pem and leaf.key (0600). They are replaced by rename, so a crash leaves
// the old or the new one.
//
// A leaf with less than 30 days left, or whose names are not the wanted ones, is issued
// again on the same key, also while servers run. An authority is made anew only when
// there is none, when it does not allow a wanted name, or when it ends within the
// leaf's time: people have to import it again then, and Renewed says so.
//
// Concurrency: a CA is safe for concurrent use. The package is a leaf: it imports
// nothing of this module.
package localca

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 397 * 24 * time.Hour // the most that browsers accept
	// renewBefore is how much time a certificate has left when it is renewed.
	renewBefore = 30 * 24 * time.Hour
	// backdate lets clocks that are a little slow accept a new certificate.
	backdate = time.Hour

	caCertFile, caKeyFile     = "ca.pem", "ca.key"
	leafCertFile, leafKeyFile = "leaf.pem", "leaf.key"
)

// always are the names every certificate has.
var always = []string{"localhost", "pizza.localhost", "127.0.0.1", "::1"}

// CA is an authority with its present leaf.
type CA struct {
	dir   string
	names names
	now   func() time.Time

	mu      sync.Mutex // guards below
	ca      pair
	leaf    pair
	tls     *tls.Certificate
	renewed bool
}

// names are what certificates are for.
type names struct {
	dns []string
	ips []net.IP
}

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open reads the authority in dir, makes what is missing and renews what needs it.
// hostnames are further names or IP addresses. now is the clock; nil is time.Now.
func Open(dir string, hostnames []string, now func() time.Time) (*CA, error) {
	if now == nil {
		now = time.Now
	}
	wanted, err := parseNames(append(slices.Clone(always), hostnames...))
	if err != nil {
		return nil, err
	}
	c := &CA{dir: dir, names: wanted, now: now}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("localca: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("localca: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.openAuthority(); err != nil {
		return nil, err
	}
	if err := c.openLeaf(); err != nil {
		return nil, err
	}
	return c, nil
}

// parseNames sorts host names and IP addresses, without doubles.
func parseNames(list []string) (names, error) {
	var n names
	for _, s := range list {
		s = strings.ToLower(strings.TrimSuffix(strings.Trim(strings.TrimSpace(s), "[]"), "."))
		if ip := net.ParseIP(s); ip != nil {
			if !slices.ContainsFunc(n.ips, ip.Equal) {
				n.ips = append(n.ips, ip)
			}
			continue
		}
		if !isHostname(s) {
			return names{}, fmt.Errorf("localca: %q is neither a host name nor an IP address", s)
		}
		if !slices.Contains(n.dns, s) {
			n.dns = append(n.dns, s)
		}
	}
	slices.Sort(n.dns)
	slices.SortFunc(n.ips, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	return n, nil
}

// isHostname reports whether s is a host name in ASCII (RFC 1123 section 2.1).
func isHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for _, label := range strings.Split(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
				return false
			}
		}
	}
	return true
}

// ServerConfig is for all listeners: TLS 1.2 or later with the leaf, which is renewed
// by the first handshake that finds it old.
func (c *CA) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.certificate() },
	}
}

// certificate returns the leaf. When it cannot be renewed, because the disk is full for
// example, the old one serves as long as it is valid.
func (c *CA) certificate() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isFresh(c.leaf) {
		return c.tls, nil
	}
	if err := c.issueLeaf(); err != nil && !c.now().Before(c.leaf.cert.NotAfter) {
		return nil, err
	}
	return c.tls, nil
}

// CertPath is the file to import into programs that shall trust the servers.
func (c *CA) CertPath() string { return filepath.Join(c.dir, caCertFile) }

// Fingerprint is the authority's SHA-256 fingerprint, as programs show it.
func (c *CA) Fingerprint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fingerprint(c.ca.cert)
}

// LeafFingerprint is that of the servers' certificate, for programs that trust a single
// certificate.
func (c *CA) LeafFingerprint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fingerprint(c.leaf.cert)
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// Renewed reports whether Open made a new authority in the place of an older one, so
// that programs which trusted that have to import ca.pem again.
func (c *CA) Renewed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}

// isFresh reports whether a certificate is valid now and for a while.
func (c *CA) isFresh(p pair) bool {
	now := c.now()
	return !now.Before(p.cert.NotBefore) && now.Add(renewBefore).Before(p.cert.NotAfter)
}

func (c *CA) openAuthority() error {
	p, err := c.read(caCertFile, caKeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.renewed = c.hadOne()
		return c.makeAuthority()
	case err != nil:
		return err
	}
	if !p.cert.IsCA || !c.names.allowedBy(p.cert) || c.now().Add(leafLife).After(p.cert.NotAfter) || c.now().Before(p.cert.NotBefore) {
		c.renewed = true
		return c.makeAuthority()
	}
	c.ca = p
	return nil
}

// hadOne reports whether something is left of an authority before.
func (c *CA) hadOne() bool {
	return slices.ContainsFunc([]string{caCertFile, caKeyFile, leafCertFile}, func(name string) bool {
		_, err := os.Stat(filepath.Join(c.dir, name))
		return err == nil
	})
}

func (c *CA) openLeaf() error {
	p, err := c.read(leafCertFile, leafKeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.issueLeaf()
	case err != nil:
		return err
	}
	c.leaf = p
	if !c.isFresh(p) || p.cert.CheckSignatureFrom(c.ca.cert) != nil || !c.names.equal(p.cert) {
		return c.issueLeaf()
	}
	c.use(p)
	return nil
}

// use makes p the certificate of handshakes.
func (c *CA) use(p pair) {
	c.leaf = p
	c.tls = &tls.Certificate{Certificate: [][]byte{p.cert.Raw, c.ca.cert.Raw}, PrivateKey: p.key, Leaf: p.cert}
}

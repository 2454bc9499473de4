package localca

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)} }

func open(t *testing.T, dir string, c *clock, hostnames ...string) *CA {
	t.Helper()
	ca, err := Open(dir, hostnames, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// shake does a handshake with the server's name and returns the leaf the client saw.
func shake(t *testing.T, ca *CA, c *clock, name string) (*x509.Certificate, error) {
	t.Helper()
	data, err := os.ReadFile(ca.CertPath())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		t.Fatal("ca.pem holds no certificate")
	}
	left, right := net.Pipe()
	defer left.Close()
	defer right.Close()
	go tls.Server(left, ca.ServerConfig()).Handshake()
	client := tls.Client(right, &tls.Config{RootCAs: pool, ServerName: name, Time: c.now})
	if err := client.Handshake(); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0], nil
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	c := newClock()
	ca := open(t, t.TempDir(), c, "Mail.Example.org.", "192.168.1.5")
	for _, name := range []string{"localhost", "pizza.localhost", "127.0.0.1", "::1", "mail.example.org", "192.168.1.5"} {
		leaf, err := shake(t, ca, c, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if leaf.IsCA || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
			t.Errorf("the leaf is no plain server certificate: CA %v, usage %v", leaf.IsCA, leaf.ExtKeyUsage)
		}
		if life := leaf.NotAfter.Sub(leaf.NotBefore); life > 397*24*time.Hour {
			t.Errorf("the leaf lives %v", life)
		}
	}
	for _, name := range []string{"example.org", "127.0.0.2"} {
		if _, err := shake(t, ca, c, name); err == nil {
			t.Errorf("the server passes for %s", name)
		}
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	ca := open(t, t.TempDir(), newClock())
	left, right := net.Pipe()
	defer left.Close()
	defer right.Close()
	go tls.Server(left, ca.ServerConfig()).Handshake()
	err := tls.Client(right, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Handshake()
	if err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// The authority's key cannot make a certificate for anybody else.
func TestNameConstraints(t *testing.T) {
	t.Parallel()
	c := newClock()
	ca := open(t, t.TempDir(), c)
	pool := x509.NewCertPool()
	pool.AddCert(ca.ca.cert)
	for _, tt := range []struct {
		names   names
		allowed bool
	}{
		{names{dns: []string{"localhost"}}, true},
		{names{dns: []string{"bank.example"}}, false},
		{names{dns: []string{"pizza.localhost.evil.example"}}, false},
		{names{ips: []net.IP{net.IPv4(127, 0, 0, 1)}}, true},
		{names{ips: []net.IP{net.IPv4(10, 0, 0, 1)}}, false},
		{names{ips: []net.IP{net.ParseIP("::2")}}, false},
	} {
		forged := &CA{dir: t.TempDir(), names: tt.names, now: c.now, ca: ca.ca}
		if err := forged.issueLeaf(); err != nil {
			t.Fatal(err)
		}
		_, err := forged.leaf.cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: c.t})
		if (err == nil) != tt.allowed {
			t.Errorf("%v: %v, want allowed: %v", tt.names, err, tt.allowed)
		}
	}
	if !ca.ca.cert.PermittedDNSDomainsCritical {
		t.Error("the constraints are not critical")
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tls")
	open(t, dir, newClock())
	want := map[string]fs.FileMode{".": 0o700, "ca.pem": 0o644, "ca.key": 0o600, "leaf.pem": 0o600, "leaf.key": 0o600}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("%d files, want 4: %v (%v)", len(entries), entries, err)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	first := open(t, dir, c)
	c.t = c.t.Add(300 * 24 * time.Hour)
	second := open(t, dir, c)
	if first.Renewed() || second.Renewed() { // there was none before the first
		t.Errorf("Renewed: first %v, second %v", first.Renewed(), second.Renewed())
	}
	if first.Fingerprint() != second.Fingerprint() || first.LeafFingerprint() != second.LeafFingerprint() {
		t.Error("certificates changed without a reason")
	}
	if f := first.Fingerprint(); len(f) != 32*3-1 || strings.ToUpper(f) != f {
		t.Errorf("fingerprint %q", f)
	}
}

func TestRenewalOnTheSameKeyWhileRunning(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	ca := open(t, dir, c)
	before, err := shake(t, ca, c, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	c.t = before.NotAfter.Add(-renewBefore - time.Minute)
	same, err := shake(t, ca, c, "localhost")
	if err != nil || !same.Equal(before) {
		t.Fatalf("renewed with more than 30 days left (%v)", err)
	}
	c.t = before.NotAfter.Add(-renewBefore + time.Minute)
	after, err := shake(t, ca, c, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if after.Equal(before) || !after.NotAfter.After(before.NotAfter) {
		t.Fatal("not renewed with less than 30 days left")
	}
	if !after.PublicKey.(*ecdsa.PublicKey).Equal(before.PublicKey) {
		t.Error("the key changed")
	}
	again := open(t, dir, c)
	if again.LeafFingerprint() != ca.LeafFingerprint() {
		t.Error("the renewed certificate is not on disk")
	}
	c.t = c.t.Add(5 * 365 * 24 * time.Hour) // long after it ended
	if _, err := shake(t, ca, c, "localhost"); err != nil {
		t.Errorf("after years: %v", err)
	}
}

func TestNamesChange(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	first := open(t, dir, c, "a.example", "b.example")
	fewer := open(t, dir, c, "b.example")
	if fewer.Renewed() || fewer.Fingerprint() != first.Fingerprint() {
		t.Error("a new authority where the old one allows all names")
	}
	if _, err := shake(t, fewer, c, "a.example"); err == nil {
		t.Error("the leaf still has a name that was taken away")
	}
	more := open(t, dir, c, "b.example", "c.example")
	if !more.Renewed() {
		t.Error("the authority does not allow the new name, but was kept")
	}
	if _, err := shake(t, more, c, "c.example"); err != nil {
		t.Errorf("new name: %v", err)
	}
	if !more.leaf.key.Equal(first.leaf.key) {
		t.Error("the key changed with the names")
	}
}

func TestAuthorityIsReplacedBeforeItEnds(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	open(t, dir, c)
	c.t = c.t.Add(caLife - leafLife + 24*time.Hour)
	ca := open(t, dir, c)
	if !ca.Renewed() {
		t.Error("the leaf would outlive its authority")
	}
	if _, err := shake(t, ca, c, "localhost"); err != nil {
		t.Error(err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for _, file := range []string{caCertFile, caKeyFile, leafCertFile, leafKeyFile} {
		t.Run("damaged "+file, func(t *testing.T) {
			t.Parallel()
			dir, c := t.TempDir(), newClock()
			open(t, dir, c)
			if err := os.WriteFile(filepath.Join(dir, file), []byte("rubbish"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, nil, c.now)
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "remove the directory") {
				t.Errorf("error %v does not say what to do", err)
			}
		})
		t.Run("missing "+file, func(t *testing.T) {
			t.Parallel()
			dir, c := t.TempDir(), newClock()
			open(t, dir, c)
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			ca := open(t, dir, c)
			if _, err := shake(t, ca, c, "localhost"); err != nil {
				t.Error(err)
			}
			if want := file == caCertFile || file == caKeyFile; ca.Renewed() != want {
				t.Errorf("renewed %v", ca.Renewed())
			}
		})
	}
	t.Run("key of another", func(t *testing.T) {
		t.Parallel()
		dir, other, c := t.TempDir(), t.TempDir(), newClock()
		open(t, dir, c)
		open(t, other, c)
		key, err := os.ReadFile(filepath.Join(other, caKeyFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, caKeyFile), key, 0o600); err != nil {
			t.Fatal(err)
		}
		ca := open(t, dir, c)
		if _, err := shake(t, ca, c, "localhost"); err != nil || !ca.Renewed() {
			t.Errorf("renewed %v, %v", ca.Renewed(), err)
		}
	})
}

func TestBadHostnames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a b", "*.example", "-a", "a..b", "münchen.example", strings.Repeat("a", 64)} {
		if _, err := Open(t.TempDir(), []string{name}, newClock().now); err == nil {
			t.Errorf("%q was taken for a host name", name)
		}
	}
}

func TestUnwritableDirectoryServesTheOldLeaf(t *testing.T) {
	t.Parallel()
	dir, c := filepath.Join(t.TempDir(), "tls"), newClock()
	ca := open(t, dir, c)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	leaf := ca.leaf.cert
	c.t = leaf.NotAfter.Add(-time.Hour)
	if got, err := ca.certificate(); err != nil || !got.Leaf.Equal(leaf) {
		t.Errorf("%v", err)
	}
	c.t = leaf.NotAfter.Add(time.Hour)
	if _, err := ca.certificate(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an expired certificate is served (%v)", err)
	}
}

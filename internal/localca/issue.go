package localca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"slices"
)

// makeAuthority makes a new authority and the key of its leaves.
func (c *CA) makeAuthority() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	now := c.now()
	template := &x509.Certificate{
		SerialNumber: serial(),
		// The fingerprint in the name keeps two authorities apart in a program's list.
		Subject:   pkix.Name{Organization: []string{"Pizza Mail"}, CommonName: "Pizza Mail local CA " + now.UTC().Format("2006-01-02 15:04")},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(caLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         c.names.dns,
		PermittedIPRanges:           c.names.ranges(),
	}
	p, err := sign(template, template, key, key)
	if err != nil {
		return err
	}
	// The key first: a certificate without its key would be of no use.
	if err := c.write(p, caCertFile, 0o644, caKeyFile); err != nil {
		return err
	}
	c.ca = p
	return nil
}

// issueLeaf issues the servers' certificate, on the key it had before if there is one:
// programs that pinned the key go on.
func (c *CA) issueLeaf() error {
	key := c.leaf.key
	if key == nil {
		var err error
		if key, err = newKey(); err != nil {
			return err
		}
	}
	now := c.now()
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{Organization: []string{"Pizza Mail"}, CommonName: "localhost"},
		NotBefore:    now.Add(-backdate), NotAfter: now.Add(leafLife - backdate),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              c.names.dns,
		IPAddresses:           c.names.ips,
	}
	p, err := sign(template, c.ca.cert, key, c.ca.key)
	if err != nil {
		return err
	}
	if err := c.write(p, leafCertFile, 0o600, leafKeyFile); err != nil {
		return err
	}
	c.use(p)
	return nil
}

// sign makes the certificate of template for key, signed by the parent's key.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return pair{}, fmt.Errorf("localca: sign: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("localca: sign: %w", err)
	}
	return pair{cert, key}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("localca: key: %w", err)
	}
	return key, nil
}

// serial is a positive random number of at most 20 octets (RFC 5280 section 4.1.2.2).
func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:])
}

// ranges are the addresses as networks of one address each, as constraints have them.
func (n names) ranges() []*net.IPNet {
	var out []*net.IPNet
	for _, ip := range n.ips {
		bits := 8 * net.IPv6len
		if v4 := ip.To4(); v4 != nil {
			ip, bits = v4, 8*net.IPv4len
		}
		out = append(out, &net.IPNet{IP: ip, Mask: net.CIDRMask(bits, bits)})
	}
	return out
}

// allowedBy reports whether an authority is constrained, and to names that include n.
func (n names) allowedBy(ca *x509.Certificate) bool {
	for _, name := range n.dns {
		if !slices.Contains(ca.PermittedDNSDomains, name) {
			return false
		}
	}
	for _, ip := range n.ips {
		if !slices.ContainsFunc(ca.PermittedIPRanges, func(r *net.IPNet) bool { return r.Contains(ip) }) {
			return false
		}
	}
	return true
}

// equal reports whether a leaf is for exactly these names.
func (n names) equal(leaf *x509.Certificate) bool {
	dns := slices.Sorted(slices.Values(leaf.DNSNames))
	return slices.Equal(dns, n.dns) && slices.EqualFunc(n.ips, sortedIPs(leaf.IPAddresses), net.IP.Equal)
}

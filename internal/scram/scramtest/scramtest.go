// Package scramtest is the client's end of SCRAM-SHA-256, and verifiers, for tests.
package scramtest

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"pizza/mailbox"
)

// Iterations is few: tests log in often.
const Iterations = 4096

// Verifiers are those of who has password, under a fixed salt.
func Verifiers(id mailbox.Identity, password string) mailbox.Verifiers {
	salt := []byte("0123456789abcdef")
	client, server := keys(password, salt, Iterations)
	stored := sha256.Sum256(client)
	return mailbox.Verifiers{Salt: salt, Iterations: Iterations,
		Keys: []mailbox.Verifier{{Identity: id, Stored: stored[:], Server: server}}}
}

func keys(password string, salt []byte, rounds int) (client, server []byte) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		panic(err) // parameters of the test are wrong
	}
	return mac(salted, "Client Key"), mac(salted, "Server Key")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Client is one exchange.
type Client struct {
	User, Password, Authzid, Nonce string

	bare, message string
	server        []byte
}

// First is the first message.
func (c *Client) First() string {
	c.bare = "n=" + c.User + ",r=" + c.Nonce
	return c.header() + c.bare
}

func (c *Client) header() string {
	if c.Authzid != "" {
		return "n,a=" + c.Authzid + ","
	}
	return "n,,"
}

// Final answers the server's first message.
func (c *Client) Final(challenge string) (string, error) {
	var nonce, salt string
	var rounds int
	parts := strings.Split(challenge, ",")
	if len(parts) != 3 {
		return "", fmt.Errorf("server-first-message %q", challenge)
	}
	nonce, salt = strings.TrimPrefix(parts[0], "r="), strings.TrimPrefix(parts[1], "s=")
	if _, err := fmt.Sscanf(parts[2], "i=%d", &rounds); err != nil || !strings.HasPrefix(nonce, c.Nonce) || len(nonce) < len(c.Nonce)+16 {
		return "", fmt.Errorf("server-first-message %q", challenge)
	}
	raw, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		return "", err
	}
	unsigned := "c=" + base64.StdEncoding.EncodeToString([]byte(c.header())) + ",r=" + nonce
	c.message = c.bare + "," + challenge + "," + unsigned
	client, server := keys(c.Password, raw, rounds)
	c.server = server
	stored := sha256.Sum256(client)
	proof := make([]byte, sha256.Size)
	subtle.XORBytes(proof, client, mac(stored[:], c.message))
	return unsigned + ",p=" + base64.StdEncoding.EncodeToString(proof), nil
}

// Trusts reports whether the server's final message proves that it has the verifier.
func (c *Client) Trusts(final string) bool {
	return final == "v="+base64.StdEncoding.EncodeToString(mac(c.server, c.message))
}

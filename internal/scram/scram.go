// Package scram is the server's end of SCRAM-SHA-256 (RFC 5802, RFC 7677): a login by
// which the password does not cross the wire and the client, too, learns that it speaks
// to who has its verifier. Channel binding (SCRAM-SHA-256-PLUS) is not offered.
//
// A login may have several passwords under one salt, each with a verifier of its own;
// the proof tells which one was meant. An unknown login gets as far as a known one with
// a wrong password.
package scram

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"pizza/mailbox"
)

// Mechanism is the name of the mechanism.
const Mechanism = "SCRAM-SHA-256"

var (
	// ErrSyntax is returned for a message that is not one of SCRAM, or asks for what is
	// not offered.
	ErrSyntax = errors.New("scram: malformed message")
	// ErrProof is returned for a wrong password, and for an unknown login.
	ErrProof = errors.New("scram: wrong proof")
)

// Server is one exchange. It is not safe for concurrent use.
type Server struct {
	lookup func(login string) (mailbox.Verifiers, error)
	step   int

	user, authzid string
	header        string // gs2-header, which the client repeats
	bare, first   string // what is signed: client-first-message-bare, server-first-message
	nonce         string
	verifiers     mailbox.Verifiers
	identity      mailbox.Identity
}

// New begins an exchange. lookup is Accounts.Verifiers.
func New(lookup func(login string) (mailbox.Verifiers, error)) *Server {
	return &Server{lookup: lookup}
}

// Next takes a message of the client and returns the challenge that answers it; nil asks
// for the first message. done: the client is who it says, and no challenge is left. The
// error is ErrSyntax, ErrProof or one of lookup.
func (s *Server) Next(response []byte) (challenge []byte, done bool, err error) {
	if s.step == 0 && response == nil {
		return []byte{}, false, nil
	}
	s.step++
	switch s.step {
	case 1:
		challenge, err = s.begin(string(response))
	case 2:
		challenge, err = s.prove(string(response))
	case 3:
		if len(response) > 0 {
			return nil, false, ErrSyntax
		}
		return nil, true, nil
	default:
		err = ErrSyntax
	}
	if err != nil {
		s.step = 4
	}
	return challenge, false, err
}

// User is the login that the client named, and the identity it wants to act as ("": its
// own).
func (s *Server) User() (login, authzid string) { return s.user, s.authzid }

// Identity is who logged in, once Next was done.
func (s *Server) Identity() mailbox.Identity { return s.identity }

// begin reads the client's first message and answers with salt and nonce.
func (s *Server) begin(m string) ([]byte, error) {
	flag, rest, _ := strings.Cut(m, ",")
	authzid, bare, found := strings.Cut(rest, ",")
	if !found || flag != "n" && flag != "y" { // p=: channel binding, which is not offered
		return nil, ErrSyntax
	}
	s.header, s.bare = flag+","+authzid+",", bare
	var err error
	if authzid != "" {
		if s.authzid, err = name("a=", authzid); err != nil {
			return nil, err
		}
	}
	fields := strings.Split(bare, ",")
	if len(fields) < 2 { // the first may not be m=, an extension that must be understood
		return nil, ErrSyntax
	}
	if s.user, err = name("n=", fields[0]); err != nil {
		return nil, err
	}
	nonce, found := strings.CutPrefix(fields[1], "r=")
	if !found || !printable(nonce) {
		return nil, ErrSyntax
	}
	if s.verifiers, err = s.lookup(s.user); err != nil {
		return nil, err
	}
	s.nonce = nonce + rand.Text()
	s.first = fmt.Sprintf("r=%s,s=%s,i=%d", s.nonce, base64.StdEncoding.EncodeToString(s.verifiers.Salt), s.verifiers.Iterations)
	return []byte(s.first), nil
}

// name reads a saslname: "," and "=" are written as =2C and =3D.
func name(prefix, field string) (string, error) {
	coded, found := strings.CutPrefix(field, prefix)
	plain := strings.ReplaceAll(strings.ReplaceAll(coded, "=2C", ","), "=3D", "=")
	left := strings.ReplaceAll(strings.ReplaceAll(coded, "=2C", ""), "=3D", "")
	if !found || coded == "" || strings.ContainsAny(left, "=\x00") {
		return "", ErrSyntax
	}
	return plain, nil
}

// printable reports whether a nonce has the characters it may have.
func printable(nonce string) bool {
	return nonce != "" && strings.IndexFunc(nonce, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ',' }) < 0
}

// prove checks the client's proof and returns the server's.
func (s *Server) prove(m string) ([]byte, error) {
	at := strings.LastIndex(m, ",p=")
	if at < 0 {
		return nil, ErrSyntax
	}
	unsigned, coded := m[:at], m[at+len(",p="):]
	proof, err := base64.StdEncoding.DecodeString(coded)
	fields := strings.Split(unsigned, ",")
	if err != nil || len(proof) != sha256.Size || len(fields) < 2 ||
		fields[0] != "c="+base64.StdEncoding.EncodeToString([]byte(s.header)) || fields[1] != "r="+s.nonce {
		return nil, ErrSyntax
	}
	message := s.bare + "," + s.first + "," + unsigned
	match := -1
	for i, key := range s.verifiers.Keys { // all of them, whichever it is
		if proves(proof, key.Stored, message) {
			match = i
		}
	}
	if match < 0 {
		return nil, ErrProof
	}
	key := s.verifiers.Keys[match]
	s.identity = key.Identity
	return []byte("v=" + base64.StdEncoding.EncodeToString(mac(key.Server, message))), nil
}

// proves reports whether a proof was made with the password of a stored key.
func proves(proof, stored []byte, message string) bool {
	client := make([]byte, sha256.Size)
	subtle.XORBytes(client, proof, mac(stored, message))
	sum := sha256.Sum256(client)
	return subtle.ConstantTimeCompare(sum[:], stored) == 1
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

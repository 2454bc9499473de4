package scram_test

import (
	"errors"
	"strings"
	"testing"

	"pizza/internal/scram"
	"pizza/internal/scram/scramtest"
	"pizza/mailbox"
)

func lookup(login string) (mailbox.Verifiers, error) {
	if login == "broken" {
		return mailbox.Verifiers{}, errors.New("disk")
	}
	return scramtest.Verifiers(mailbox.Identity{Login: login, Credential: "default"}, "pencil"), nil
}

// run goes through an exchange; edit may spoil a message of the client.
func run(c *scramtest.Client, edit func(step int, m string) string) (*scram.Server, error) {
	s := scram.New(lookup)
	first, _, err := s.Next([]byte(edit(1, c.First())))
	if err != nil {
		return s, err
	}
	final, err := c.Final(string(first))
	if err != nil {
		return s, err
	}
	proof, done, err := s.Next([]byte(edit(2, final)))
	if err != nil {
		return s, err
	}
	if done || !c.Trusts(string(proof)) {
		return s, errors.New("the server proves nothing")
	}
	_, done, err = s.Next([]byte(edit(3, "")))
	if err == nil && !done {
		err = errors.New("not done")
	}
	return s, err
}

func asIs(_ int, m string) string { return m }

func TestLogin(t *testing.T) {
	t.Parallel()
	s, err := run(&scramtest.Client{User: "user", Password: "pencil", Nonce: "rOprNGfwEbeRWgbNEkqO", Authzid: "user"}, asIs)
	if err != nil || s.Identity().Login != "user" {
		t.Fatal(s.Identity(), err)
	}
	if user, authzid := s.User(); user != "user" || authzid != "user" {
		t.Error(user, authzid)
	}
	s, err = run(&scramtest.Client{User: "a=2Cb=3Dc", Password: "pencil", Nonce: "x"}, asIs)
	if err != nil || s.Identity().Login != "a,b=c" {
		t.Error(s.Identity(), err)
	}
	if _, err = run(&scramtest.Client{User: "user", Password: "pen", Nonce: "x"}, asIs); !errors.Is(err, scram.ErrProof) {
		t.Error("wrong password:", err)
	}
	if _, err = run(&scramtest.Client{User: "broken", Password: "pencil", Nonce: "x"}, asIs); err == nil || errors.Is(err, scram.ErrProof) {
		t.Error("fault of the store:", err)
	}
	if challenge, done, err := scram.New(lookup).Next(nil); challenge == nil || len(challenge) > 0 || done || err != nil {
		t.Error("no initial response:", challenge, done, err)
	}
}

// TestSeveral: of several passwords under one salt the proof tells which was meant.
func TestSeveral(t *testing.T) {
	t.Parallel()
	var both mailbox.Verifiers
	for _, password := range []string{"one", "two"} {
		v := scramtest.Verifiers(mailbox.Identity{Credential: password}, password)
		both.Salt, both.Iterations, both.Keys = v.Salt, v.Iterations, append(both.Keys, v.Keys...)
	}
	for _, password := range []string{"one", "two"} {
		c := &scramtest.Client{User: "me", Password: password, Nonce: "x"}
		s := scram.New(func(string) (mailbox.Verifiers, error) { return both, nil })
		first, _, err := s.Next([]byte(c.First()))
		if err != nil {
			t.Fatal(err)
		}
		final, err := c.Final(string(first))
		if err != nil {
			t.Fatal(err)
		}
		if proof, _, err := s.Next([]byte(final)); err != nil || !c.Trusts(string(proof)) || s.Identity().Credential != password {
			t.Errorf("%s: %s, %v", password, s.Identity().Credential, err)
		}
	}
}

// TestExample is the exchange of RFC 7677 section 3, as far as the server's nonce allows.
func TestExample(t *testing.T) {
	t.Parallel()
	s := scram.New(lookup)
	got, done, err := s.Next([]byte("n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))
	if err != nil || done || !strings.HasPrefix(string(got), "r=rOprNGfwEbeRWgbNEkqO") || !strings.HasSuffix(string(got), ",i=4096") {
		t.Fatalf("%s, %v, %v", got, done, err)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	replace := func(step int, from, to string) func(int, string) string {
		return func(at int, m string) string {
			if at == step {
				return strings.Replace(m, from, to, 1)
			}
			return m
		}
	}
	for name, edit := range map[string]func(int, string) string{
		"channel binding":      replace(1, "n,,", "p=tls-unique,,"),
		"bad flag":             replace(1, "n,,", "x,,"),
		"no header":            replace(1, "n,,", ""),
		"bad authzid":          replace(1, "n,,", "n,me,"),
		"extension":            replace(1, "n=user", "m=ext,n=user"),
		"no name":              replace(1, "n=user", "n="),
		"bad escape":           replace(1, "n=user", "n=us=2cer"),
		"no nonce":             replace(1, "r=x", "r="),
		"space in the nonce":   replace(1, "r=x", "r=x x"),
		"empty":                func(int, string) string { return "" },
		"other header":         replace(2, "c=biws", "c=eSws"),
		"other nonce":          replace(2, "r=x", "r=y"),
		"no proof":             replace(2, ",p=", ",q="),
		"short proof":          replace(2, ",p=", ",p=AAAA"),
		"text after the proof": replace(3, "", "x"),
	} {
		_, err := run(&scramtest.Client{User: "user", Password: "pencil", Nonce: "x"}, edit)
		if !errors.Is(err, scram.ErrSyntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A changed nonce or extension that is signed is a wrong proof, not a login.
	if _, err := run(&scramtest.Client{User: "user", Password: "pencil", Nonce: "x"}, replace(2, ",p=", ",ext=1,p=")); !errors.Is(err, scram.ErrProof) {
		t.Error("changed message:", err)
	}
	s, err := run(&scramtest.Client{User: "user", Password: "pen", Nonce: "x"}, asIs)
	if _, done, again := s.Next(nil); done || again == nil {
		t.Error("goes on after", err)
	}
}

func FuzzServer(f *testing.F) {
	f.Add("n,,n=user,r=x", "c=biws,r=x,p=AAAA")
	f.Add("y,a=b,n=a=2Cb,r=x,e=1", "")
	f.Fuzz(func(t *testing.T, first, second string) {
		s := scram.New(lookup)
		for _, m := range []string{first, second, ""} {
			_, done, err := s.Next([]byte(m))
			if done {
				t.Fatalf("%q, %q log in", first, second)
			}
			if err != nil && m == second {
				return
			}
		}
	})
}

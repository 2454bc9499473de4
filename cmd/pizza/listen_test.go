package main

import (
	"net"
	"strings"
	"testing"
)

func TestListen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct{ value, addr, err string }{
		{"off", "", ""},
		{"127.0.0.1:0", "127.0.0.1:", ""},
		{"0", "127.0.0.1:", ""},
		{taken.Addr().String(), "", "is taken by another program"},
		{"imap", "", `--imap: "imap" must be [host:]port, or off`},
		{"127.0.0.1:99999", "", "is not a port"},
		{"99999", "", `--imap: "99999" must be [host:]port, or off`},
	} {
		t.Run(tt.value, func(t *testing.T) {
			l, err := listen("imap", tt.value)
			if err != nil || tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || tt.err == "" {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			defer l.close()
			if !strings.HasPrefix(l.addr, tt.addr) || strings.HasSuffix(l.addr, ":0") || (l.addr == "") != (tt.addr == "") {
				t.Errorf("listens on %q, want %q", l.addr, tt.addr)
			}
		})
	}
}

// A bare port listens on both loopback addresses where the machine has IPv6.
func TestListenOnBothLoopbacks(t *testing.T) {
	t.Parallel()
	six, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 on this machine")
	}
	if err := six.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := listen("smtp", "0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	_, port, err := net.SplitHostPort(l.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		c.Close()
	}
}

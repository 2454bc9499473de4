package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"pizza/internal/config"
)

// listeners are the sockets of one service: on 127.0.0.1 and ::1 when only a port
// was given, else on the one address named.
type listeners struct {
	addr string // what endpoints.json says; empty: off
	all  []net.Listener
}

// listen opens the sockets for a value of the form "[host:]port". Port 0 picks a
// free one. A taken port is an error, never a silent other one.
func listen(service, value string) (listeners, error) {
	if value == "off" {
		return listeners{}, nil
	}
	host, port, err := config.SplitListen(value)
	if err != nil {
		return listeners{}, fmt.Errorf("--%s: %w", service, err)
	}
	both := host == ""
	if both {
		host = "127.0.0.1"
	}
	first, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return listeners{}, listenError(service, net.JoinHostPort(host, port), err)
	}
	l := listeners{addr: first.Addr().String(), all: []net.Listener{first}}
	if !both {
		return l, nil
	}
	return l.alsoIPv6(service)
}

// alsoIPv6 opens the same port on ::1; a machine without IPv6 does without.
func (l listeners) alsoIPv6(service string) (listeners, error) {
	_, port, err := net.SplitHostPort(l.addr)
	if err != nil {
		return l, err
	}
	second, err := net.Listen("tcp", net.JoinHostPort("::1", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return l, errors.Join(listenError(service, net.JoinHostPort("::1", port), err), l.close())
	}
	if err == nil {
		l.all = append(l.all, second)
	}
	return l, nil
}

func (l listeners) close() error {
	var err error
	for _, one := range l.all {
		if e := one.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func listenError(service, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program: stop it, or choose another port with --%s [host:]port (0 picks one, off leaves it out)", addr, service)
	}
	if errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%s may not be opened by this user: choose a port of 1024 or more with --%s", addr, service)
	}
	return fmt.Errorf("--%s: %w", service, err)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"pizza/imapserver"
	"pizza/internal/config"
	"pizza/internal/guesses"
	"pizza/mailbox"
	"pizza/smtpgate"
	"pizza/web"
)

// drainFor is how long connections and steps may take to end after SIGTERM; the
// promise is 10 s in all.
const drainFor = 7 * time.Second

func newServe(g *globals) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "run the servers: IMAP, SMTP submission and the web page", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := g.root()
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cmd.OutOrStdout(), root, f)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// serve runs until ctx ends, then drains.
func serve(ctx context.Context, w io.Writer, root string, f serveFlags) (err error) {
	set, err := loadSettings(root, f)
	if err != nil {
		return err
	}
	if err := set.checkModel(); err != nil {
		return err
	}
	log, closeLog, err := openLog(root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	a, err := openSoon(ctx, root, set, log)
	var busy *mailbox.Error
	if errors.As(err, &busy) && busy.Kind == mailbox.Transient {
		return fmt.Errorf("%s: stop that, or name another folder with --data-root", userText(err))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	s, err := newServers(a)
	if err != nil {
		return err
	}
	return s.run(ctx, w)
}

// servers are everything that listens, and the agent that works.
type servers struct {
	app     *app
	imap    *imapserver.Server
	smtp    *smtpgate.Server
	web     *http.Server
	control *http.Server

	sockets map[string]listeners // by service: imap, imaps, smtp, smtps, web
	unix    net.Listener
	ready   atomic.Bool
	busy    sync.WaitGroup
	failed  chan error
}

// newServers opens all sockets before anything is served: a taken port stops the
// start and leaves nothing half done.
func newServers(a *app) (*servers, error) {
	if err := a.openCA(); err != nil {
		return nil, err
	}
	s := &servers{app: a, sockets: map[string]listeners{}, failed: make(chan error, 1)}
	for _, name := range config.Services {
		l, err := listen(name, a.settings.Listen.Get(name))
		if err != nil {
			return nil, errors.Join(err, s.closeSockets())
		}
		s.sockets[name] = l
	}
	unix, err := listenControl(a.root)
	if err != nil {
		return nil, errors.Join(err, s.closeSockets())
	}
	s.unix = unix
	s.build()
	return s, nil
}

func (s *servers) build() {
	a := s.app
	tls := a.ca.ServerConfig()
	wrong := guesses.New(time.Second, nil) // of both servers: a guess by SMTP slows those by IMAP
	limits := a.settings.Limits
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	s.imap = imapserver.New(imapserver.Options{
		Store: a.store, Accounts: a.accounts, Guesses: wrong, TLS: tls, Log: a.log.With("server", "imap"),
		Name: "Pizza Mail", Version: version, Hidden: a.settings.hidden,
		MaxLiteral: a.settings.MaxMessage(), MaxCommand: limits.MaxCommandKB << 10,
		MaxConns: limits.IMAPConnections, MaxConnsPerAccount: limits.ConnectionsPerAccount,
		LoginTimeout: seconds(limits.LoginSeconds), IdleTimeout: 60 * seconds(limits.IdleMinutes),
		ReadTimeout: seconds(limits.ReadSeconds), WriteTimeout: seconds(limits.WriteSeconds),
	})
	s.smtp = smtpgate.New(smtpgate.Options{
		Accounts: a.accounts, Guesses: wrong, Handler: a.agent, Stager: a.store, TLS: tls, Domain: a.settings.Domain,
		MaxSize: a.settings.MaxMessage(), MaxConns: limits.SMTPConnections, Log: a.log.With("server", "smtp"),
	})
	s.web = &http.Server{Handler: web.New(s.webOptions()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	s.control = &http.Server{Handler: controlRoutes(a), ReadHeaderTimeout: 10 * time.Second}
}

func (s *servers) closeSockets() error {
	var err error
	for _, l := range s.sockets {
		err = errors.Join(err, l.close())
	}
	return err
}

// run serves until ctx ends or a server fails.
func (s *servers) run(ctx context.Context, w io.Writer) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	s.serveAll()
	if s.app.spans != nil {
		s.start("traces", func() error { s.app.spans.Run(work); return nil })
	}
	s.start("settings", func() error { return s.app.watchStrangers(work) })
	e := s.endpoints()
	if err := e.write(s.app.root); err != nil {
		return errors.Join(err, s.shutdown(stopWork))
	}
	s.ready.Store(true)
	s.start("agent", func() error { return s.app.agent.Run(work) }) // what earlier processes left waits until mail can come
	if err := s.app.printSetup(w, e); err != nil {
		s.app.log.Warn("print the set-up", "err", err)
	}
	if why := s.app.settings.keyless(); why != "" {
		s.app.log.Warn("tasks will wait", "why", why)
	}
	s.app.log.Info("ready", "imap", e.IMAP, "imaps", e.IMAPS, "smtp", e.SMTP, "smtps", e.SMTPS, "web", e.Web)
	var failure error
	select {
	case <-ctx.Done():
		fmt.Fprintln(w, "\nStopping.")
	case failure = <-s.failed:
	}
	return errors.Join(failure, removeEndpoints(s.app.root), s.shutdown(stopWork))
}

func (s *servers) serveAll() {
	each := func(name string, serve func(net.Listener) error) {
		for _, l := range s.sockets[name].all {
			s.start(name, func() error { return serve(l) })
		}
	}
	each("imap", s.imap.Serve)
	each("imaps", s.imap.ServeTLS)
	each("smtp", s.smtp.Serve)
	each("smtps", s.smtp.ServeTLS)
	each("web", s.web.Serve)
	s.start("control", func() error { return s.control.Serve(s.unix) })
}

// start runs one server; its failure ends all. Stopping is not a failure.
func (s *servers) start(name string, serve func() error) {
	s.busy.Go(func() {
		err := serve()
		if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled) {
			return
		}
		select {
		case s.failed <- fmt.Errorf("%s server: %w", name, err):
		default:
			s.app.log.Error("server", "server", name, "err", err)
		}
	})
}

// shutdown stops accepting, drains with a deadline, and waits for all to end.
func (s *servers) shutdown(stopWork context.CancelFunc) error {
	s.ready.Store(false)
	s.app.log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	stopWork()
	var wait sync.WaitGroup
	for _, stop := range []func(context.Context) error{s.smtp.Shutdown, s.imap.Shutdown, s.web.Shutdown, s.stopControl} {
		wait.Go(func() {
			if err := stop(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				s.app.log.Warn("shutdown", "err", err)
			}
		})
	}
	wait.Wait()
	ended := make(chan struct{})
	go func() { s.busy.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("not everything ended in time; what was accepted is on disk and goes on at the next start")
	}
}

// stopControl ends waiting commands at once: they may wait for hours.
func (s *servers) stopControl(context.Context) error {
	return errors.Join(s.control.Close(), removeControlDir(s.app.root, s.unix.Addr().String()))
}

func (s *servers) endpoints() endpoints {
	e := endpoints{
		IMAP: s.sockets["imap"].addr, IMAPS: s.sockets["imaps"].addr, SMTP: s.sockets["smtp"].addr, SMTPS: s.sockets["smtps"].addr,
		Control: s.unix.Addr().String(), Domain: s.app.settings.Domain, User: s.app.firstUser, PID: os.Getpid(),
	}
	if addr := s.sockets["web"].addr; addr != "" {
		e.Web = "http://" + addr
	}
	return e
}

// maxLog is the size at which a new log file is begun at the next start.
const maxLog = 10 << 20

// openLog logs to <root>/logs/pizza.log, and warnings to standard error too.
func openLog(root string) (*slog.Logger, func() error, error) {
	path := filepath.Join(root, "logs", "pizza.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	level := slog.LevelInfo
	if os.Getenv("PIZZA_LOG_LEVEL") == "debug" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewMultiHandler(
		slog.NewJSONHandler(file, &slog.HandlerOptions{Level: level}),
		slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}),
	)), file.Close, nil
}

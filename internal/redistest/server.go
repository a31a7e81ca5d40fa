package redistest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Patience bounds every wait for something that should happen at once. It is far beyond what a
// machine needs that is slow, loaded and stands still for seconds, so reaching it is a failure.
// A test that passes does not wait for it.
const Patience = time.Minute

// Server is a redis-server process of this test's own, or stands in for one: see StartVirtual.
type Server struct {
	tb       testing.TB
	virtual  *virtual // nil: a process
	addr     string
	bus      int // port of the cluster bus; 0: none
	password string
	bin      string
	major    int
	args     []string // complete and fixed: every restart uses the same
	dir      string
	logPath  string

	mu     sync.Mutex
	proc   *child        // guarded by mu; the latest process, perhaps dead
	paused bool          // guarded by mu
	admin  *redis.Client // guarded by mu; nil until first asked for
}

// Start starts a redis-server on a free loopback port, waits until it answers,
// and kills it when the test is over. If the test failed, the end of the
// server's log is logged. Start fails the test if there is no redis-server.
// With -short it skips the test. In a test that InWorlds runs in fake time it is StartVirtual.
func Start(tb testing.TB, opts ...ServerOption) *Server {
	tb.Helper()
	if inBubble(tb) {
		return StartVirtual(tb, opts...)
	}
	if testing.Short() {
		tb.Skip("-short: tests that need a server do not run")
	}
	bin, major, err := findRedis()
	if err != nil {
		tb.Fatalf("redistest: %v; `make redis` installs it", err)
	}
	cfg := serverConfig{password: rand.Text()}
	for _, opt := range opts {
		opt(&cfg)
	}
	s := &Server{tb: tb, password: cfg.password, bin: bin, major: major, dir: tb.TempDir()}
	s.logPath = filepath.Join(s.dir, "redis.log")
	tb.Cleanup(s.cleanup)

	const attempts = 5
	for try := 1; ; try++ {
		port, release, err := reservePort(0)
		if err != nil {
			tb.Fatalf("redistest: %v", err)
		}
		bus, releaseBus, err := reserveBus(cfg, major, port)
		s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		s.bus = bus
		if err == nil {
			s.args, err = serverArgs(port, bus, s.dir, major, cfg)
		} else {
			releaseBus = func() {}
		}
		if err == nil {
			s.mu.Lock()
			err = s.launchLocked()
			s.mu.Unlock()
		}
		if err == nil {
			err = s.awaitReady()
		}
		if err == nil {
			tb.Cleanup(release)
			tb.Cleanup(releaseBus)
			return s
		}
		s.Kill()
		release()
		releaseBus()
		if try == attempts || !strings.Contains(strings.ToLower(err.Error()), "address already in use") {
			tb.Fatalf("redistest: start %s: %v", bin, err)
		}
	}
}

// launchLocked starts the process without waiting for it.
func (s *Server) launchLocked() error {
	log, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(s.bin, s.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	proc, err := startChild(cmd)
	if err != nil {
		return err
	}
	s.proc, s.paused = proc, false
	return nil
}

// dial connects to the server, as go-redis does it or within Patience.
func (s *Server) dial(ctx context.Context) (duplex, error) {
	if s.virtual != nil {
		return s.virtual.dial(ctx)
	}
	conn, err := (&net.Dialer{Timeout: Patience}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// running reports whether the process can answer: it is neither dead nor paused.
func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.paused && !s.proc.exited()
}

// awaitReady polls until the server answers and has loaded its data. There is
// no event to wait for: a port that will listen soon cannot be watched.
func (s *Server) awaitReady() error {
	return s.poll(func() error {
		conn, err := dialRaw(s.addr, s.password, time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		info, err := conn.do("INFO")
		if err != nil {
			return err
		}
		if got, want := infoField(info.text(), "process_id"), strconv.Itoa(s.Pid()); got != want {
			return fmt.Errorf("%s is answered by process %s, not by our child %s", s.addr, got, want)
		}
		if infoField(info.text(), "loading") == "1" { // a sentinel has nothing to load
			return errors.New("still loading")
		}
		return nil
	})
}

// poll calls probe until it succeeds, the process has exited or Patience ends.
func (s *Server) poll(probe func() error) error {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(Patience)
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-proc.done:
			return fmt.Errorf("redis-server exited: %v; its log ends:\n%s", proc.err, logTail(s.logPath))
		case <-deadline:
			return fmt.Errorf("not ready after %v: %w", Patience, err)
		}
	}
}

// cleanup ends everything Start began.
func (s *Server) cleanup() {
	s.mu.Lock()
	died := s.proc != nil && s.proc.exited()
	admin := s.admin
	s.mu.Unlock()
	s.Kill()
	if admin != nil {
		_ = admin.Close()
	}
	if s.tb.Failed() && s.virtual == nil && (died || os.Getenv(logEnv) != "") {
		s.tb.Logf("redistest: log of redis-server %s ends:\n%s", s.addr, logTail(s.logPath))
	}
}

// Major returns the server's major version: 7 for Redis 7.0 and for what stands in for it, 9 for Valkey 9.1.
func (s *Server) Major() int { return s.major }

// Sharded reports whether the server knows sharded messages, as from Redis 7 on.
func (s *Server) Sharded() bool { return s.major >= shardedFrom }

// Rights returns the rules of ACL SETUSER without those that name a command of sharded messages, where the server knows none: it
// would refuse them.
func (s *Server) Rights(rules []string) (known []any) {
	for _, r := range rules {
		if s.Sharded() || !slices.Contains(shardedCommands, strings.TrimLeft(r, "+-")) {
			known = append(known, r)
		}
	}
	return known
}

// Addr returns the server's host:port. It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// Password returns the server's password, or "" with WithoutPassword.
func (s *Server) Password() string { return s.password }

// Pid returns the process id of the latest server process.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.pid()
}

// Pause stops the process with SIGSTOP and returns when it stands still. The
// kernel still accepts connections and bytes for it. The server runs again
// after Resume, and before any cleanup that was registered earlier.
func (s *Server) Pause() {
	s.tb.Helper()
	s.tb.Cleanup(s.Resume)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
	if s.virtual != nil {
		s.virtual.Freeze(greetings...)
		return
	}
	if err := s.proc.pause(); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
}

// Resume continues a paused server. It does nothing if the server is running
// or dead.
func (s *Server) Resume() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
	if s.virtual != nil {
		s.virtual.Thaw()
		return
	}
	if err := s.proc.resume(); err != nil {
		s.tb.Errorf("redistest: %v", err)
	}
}

// Kill ends the process with SIGKILL and waits until it is gone. It does
// nothing if the server is dead.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.virtual != nil:
		s.virtual.Stop()
	case s.proc != nil:
		s.proc.kill()
	}
}

// Restart kills the process if it lives and starts a new one on the same port
// with the same arguments and directory. It returns when that one serves.
// Without WithAOF the data is gone.
func (s *Server) Restart() {
	s.tb.Helper()
	if s.virtual != nil {
		s.virtual.restart()
		return
	}
	s.relaunch()
	if err := s.awaitReady(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// RestartEmpty is Restart of a server that has lost its disk: it knows nothing of its cluster either.
func (s *Server) RestartEmpty() {
	s.tb.Helper()
	s.Kill()
	if err := os.Remove(filepath.Join(s.dir, "nodes.conf")); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.Restart()
}

// RestartNoWait is Restart, but returns as soon as the new process accepts
// connections. Until it has loaded its data it answers with LOADING.
func (s *Server) RestartNoWait() {
	s.tb.Helper()
	if s.virtual != nil {
		s.tb.Fatal("redistest: a virtual server never loads by itself")
	}
	s.relaunch()
	err := s.poll(func() error {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

func (s *Server) relaunch() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
	if err := s.launchLocked(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

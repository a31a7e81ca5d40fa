package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// TB is what a Server needs of a test. *testing.T, *testing.B and *testing.F have it, and so have the T of other
// test frameworks.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Server is a Redis inside the process. Its methods may be called from any goroutine, but those that can fail the test
// only from the test's own, as [testing.T.FailNow].
type Server struct {
	tb    TB
	redis *vredis.Server
	look  *holdfast.Manager // for the Server's own questions; no option

	mu       sync.Mutex // guards the following; not held over calls of Managers or clients
	managers []*holdfast.Manager
	clients  []*redis.Client
	closed   bool
	down     bool // by Down
}

// NewServer starts a Redis that is empty, and closes it, with all that was made from it, at the end of the test.
func NewServer(tb TB) *Server {
	tb.Helper()
	s := start(tb)
	tb.Cleanup(s.Close)
	return s
}

// Start is NewServer without a test: for Examples, and for a TestMain whose tests share a Redis. The caller calls Close. What
// would fail a test panics.
func Start() *Server { return start(noTest{}) }

func start(tb TB) *Server {
	s := &Server{tb: tb, redis: vredis.New(vredis.Options{})}
	s.look = s.newManager(nil)
	return s
}

// Close ends faults, closes the Managers and clients that were made from s, and stops the server. Callers that still wait for a lock
// of these Managers get [holdfast.ErrClosed]. A test of NewServer need not call it. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	managers, clients, first := s.managers, s.clients, !s.closed
	s.managers, s.clients, s.closed = nil, nil, true
	s.mu.Unlock()
	if !first {
		return
	}
	s.Up()
	for _, m := range managers {
		_ = m.Close(context.Background()) // what it could not release ends with the server
	}
	for _, c := range clients {
		_ = c.Close() // an error says that the test has closed it
	}
	s.redis.Stop()
}

// NewManager returns a Manager with a client of its own: each is what another process has. Both are closed with the server. Options
// that holdfast.New refuses fail the test.
func (s *Server) NewManager(opts ...holdfast.Option) *holdfast.Manager {
	s.tb.Helper()
	return s.newManager(opts)
}

func (s *Server) newManager(opts []holdfast.Option) *holdfast.Manager {
	s.tb.Helper()
	m, err := holdfast.New(s.Client(), append([]holdfast.Option{holdfast.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...) // faults are the test's
	if err != nil {
		s.fatalf("NewManager: %v", err)
	}
	s.mu.Lock()
	s.managers = append(s.managers, m)
	s.mu.Unlock()
	return m
}

// Client returns a new client of the server, for code that makes its own Manager, and to look at data. It is closed with the server.
func (s *Server) Client() *redis.Client {
	s.tb.Helper()
	c := redis.NewClient(s.Options())
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.clients = append(s.clients, c)
	}
	s.mu.Unlock()
	if closed {
		_ = c.Close()
		s.fatalf("the server is closed")
	}
	return c
}

// Options returns new options of a client of the server, for code that makes its own client: the Dialer leads to the server,
// whatever Addr says. The caller may change them, and closes the client.
//
// MaxRetries is off. Between two tries go-redis rests, for which it may hold a mutex, and the clock of a [testing/synctest] bubble
// stands while a goroutine waits for a mutex.
//
// PoolSize is large, so that no caller waits for a connection. go-redis keeps the timers of such waits for all clients of the program, and a bubble
// that gets one of another bubble ends the program: "fatal error: select on synctest channel from outside bubble".
func (s *Server) Options() *redis.Options {
	return &redis.Options{Addr: s.redis.Addr(), Dialer: s.dial, MaxRetries: -1, PoolSize: poolSize}
}

// poolSize is for more callers at a time than tests have. A connection is made when it is needed.
const poolSize = 1000

// dial leaves it to the first Write to say that the server is down. go-redis repeats a dial that fails after a pause, for which it may hold a
// mutex, so that a bubble's clock would stand; and after some failures it lets no caller dial for a second.
func (s *Server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := s.redis.Dial(ctx, network, addr)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return refused{err}, nil
	}
	return conn, err
}

// fatalf fails the test. It does not return.
func (s *Server) fatalf(format string, args ...any) {
	s.tb.Helper()
	text := "holdfasttest: " + fmt.Sprintf(format, args...)
	s.tb.Fatalf("%s", text)
	panic(text) // of a TB whose Fatalf returns
}

// noTest is the TB of Start.
type noTest struct{}

func (noTest) Helper()               {}
func (noTest) Cleanup(func())        {}
func (noTest) Fatalf(string, ...any) {}

// refused is a connection that could not be made: each use of it returns err.
type refused struct{ err error }

func (r refused) Read([]byte) (int, error)       { return 0, r.err }
func (r refused) Write([]byte) (int, error)      { return 0, r.err }
func (refused) Close() error                     { return nil }
func (refused) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (refused) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (refused) SetDeadline(time.Time) error      { return nil }
func (refused) SetReadDeadline(time.Time) error  { return nil }
func (refused) SetWriteDeadline(time.Time) error { return nil }

package redistest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options returns fresh client options: go-redis's defaults, as users have
// them, with the address and password filled in. In fake time nothing is tried again, and no caller waits for a connection.
func (s *Server) Options() *redis.Options {
	opt := &redis.Options{Addr: s.addr, Password: s.password}
	if s.virtual != nil {
		opt.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) }
		// go-redis rests between two tries with PubSub's mutex held, and a bubble's clock stands while a PING waits for it.
		opt.DialerRetries, opt.MaxRetries = 1, -1
		opt.PoolSize = ample
	}
	return opt
}

// ample is more connections than a test has callers at a time. go-redis keeps the timers of callers that wait for a connection for all clients of the
// program, and a bubble that gets one of another bubble ends the program.
const ample = 1000

// Client returns a new client with default options, closed at tb's cleanup.
func (s *Server) Client(tb testing.TB) *redis.Client {
	return s.ClientWith(tb, nil)
}

// ClientWith is Client with options changed by change, which may be nil.
func (s *Server) ClientWith(tb testing.TB, change func(*redis.Options)) *redis.Client {
	return newClient(tb, s.Options(), change)
}

func newClient(tb testing.TB, opt *redis.Options, change func(*redis.Options)) *redis.Client {
	if change != nil {
		change(opt)
	}
	if opt.ReadTimeout < 0 || opt.ReadTimeout >= time.Minute {
		// Each new connection asks for maintenance notifications, and go-redis 9.23 waits for the reply with a lock held that WithTimeout
		// and Close want, if another connection has been refused meanwhile. A test with such a timeout may never give it that reply.
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	c := redis.NewClient(opt)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Admin returns the client that tests inspect the server with. It is shared,
// made at the first call, bypasses all proxies, and sends no handshake beyond
// HELLO, so that it disturbs command counts little.
func (s *Server) Admin() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil {
		opt := s.Options()
		opt.DisableIdentity = true
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		opt.ContextTimeoutEnabled = true
		opt.MaxRetries = 3 // a restart of the server breaks its connection
		s.admin = redis.NewClient(opt)
	}
	return s.admin
}

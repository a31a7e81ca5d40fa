package redistest

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// testConn is a raw connection that fails its test.
type testConn struct {
	*rawConn
	t *testing.T
}

func dial(t *testing.T, addr, password string) *testConn {
	t.Helper()
	c, err := dialRaw(addr, password, Patience)
	Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(Patience))
	return &testConn{c, t}
}

func (c *testConn) send(args ...string) {
	c.t.Helper()
	if _, err := c.Write(encodeCommand(args...)); err != nil {
		c.t.Fatalf("send %q: %v", args, err)
	}
}

// read returns the next value, its elements separated by spaces.
func (c *testConn) read() string {
	c.t.Helper()
	f, err := c.replies.reply()
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return strings.Join(f.elems, " ")
}

func (c *testConn) do(args ...string) string {
	c.t.Helper()
	c.send(args...)
	return c.read()
}

func (c *testConn) wantRead(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.read(); got != w {
			c.t.Fatalf("read %q, want %q", got, w)
		}
	}
}

func (c *testConn) wantEOF() {
	c.t.Helper()
	if f, err := c.replies.reply(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("read %q, %v, want the connection closed", f.raw, err)
	}
}

// wantSilence requires that nothing arrives for a moment, and no EOF either.
func (c *testConn) wantSilence() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	_, err := c.replies.br.Peek(1)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("read: %v, want silence", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(Patience))
}

// get reads a key behind all proxies.
func get(t *testing.T, s *Server, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	v, err := s.Admin().Get(ctx, key).Result()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return v
}

func needsServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: tests that need a server do not run")
	}
}

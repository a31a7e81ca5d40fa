package demo

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// server is a Redis inside this process, on a loopback port: nothing needs to be
// installed to see the demo.
type server struct{ redis *miniredis.Miniredis }

func startServer() (*server, error) {
	m := miniredis.NewMiniRedis()
	// Without it, time would stand still for TTLs: a lock whose holder died would
	// never be free again.
	m.ClockTTL(true)
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	return &server{m}, nil
}

func (s *server) url() string { return "redis://" + s.redis.Addr() }

// close ends the server and all its connections, and waits for them.
func (s *server) close() { s.redis.Close() }

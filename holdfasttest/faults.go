package holdfasttest

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/seam"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// Down makes Redis unreachable until Up: connections end, and new ones are refused. The data stays, and keys expire
// meanwhile. In a program whose Redis is down, holders lose their leases at the deadline, and callers wait or get
// [holdfast.ErrUnavailable].
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	s.redis.Stop()
}

// Hang makes Redis silent until Up: connections stay and can be made, but no command is executed. Only what a
// client sends when it connects, to subscribe, and as a PING is answered; see "In a bubble".
func (s *Server) Hang() { s.redis.Freeze(vredis.Handshake...) }

// Up ends Down and Hang. Commands that came during Hang are executed now, as a server does that was paused.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redis.Thaw()
	if s.down {
		s.down = false
		s.redis.Start(true)
	}
}

// Restart ends all connections and forgets all data, like a restart without persistence, or a fail-over to a replica that lacks
// the data. As with a real Redis, holders notice it at their next renewal, at most a third of the lease later, and others can
// take their locks before that. Restart does not end Down or Hang.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redis.Restart(false)
	if s.down {
		s.redis.Stop()
	}
}

// Lose takes the lock of that name away from its holders, as an operator does with [holdfast.Manager.ForceUnlock]. If the holders' Managers
// were made by NewManager, their leases, and contexts of these, have ended when Lose returns, with a [holdfast.LostError] whose Reason is
// [holdfast.LostDeleted]. Other Managers notice it at their next renewal, at most a third of the lease later. The lock goes to
// the next one that waits for it.
//
// It fails the test if the lock is free, or if Redis is away.
func (s *Server) Lose(name string) {
	s.tb.Helper()
	info, err := s.look.Inspect(context.Background(), name)
	if err != nil {
		s.fatalf("Lose: %v", err)
	}
	if !info.Held {
		s.fatalf("Lose: no Manager holds %q; held are %q", name, s.Held())
	}
	s.mu.Lock()
	managers := s.managers
	s.mu.Unlock()
	for _, m := range managers {
		seam.Lose(m, name) // before another one can have the lock
	}
	if _, err := s.look.ForceUnlock(context.Background(), name); err != nil {
		s.fatalf("Lose: %v", err)
	}
}

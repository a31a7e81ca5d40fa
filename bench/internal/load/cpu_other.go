//go:build !linux

package load

import "time"

// Elsewhere is not known.
func (s *Server) Elsewhere() (time.Duration, error) { return 0, nil }

func (s *Server) usedByIdle() (time.Duration, error) { return 0, nil }

// CPUTime is not known.
func CPUTime() time.Duration { return 0 }

//go:build !linux

package load

import "time"

// elsewhere is not known.
func (s *Server) elsewhere() (time.Duration, error) { return 0, nil }

// cpuTime is not known.
func cpuTime() time.Duration { return 0 }

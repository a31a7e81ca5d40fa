package vredis

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// greetings are the commands that DEBUG SLEEP spares, as Freeze should: clients begin a connection with them.
var greetings = []string{"hello", "auth", "client", "select"}

// asleepLocked reports whether DEBUG SLEEP leaves a command for later.
func (s *Server) asleepLocked(args []string) bool {
	return s.now().Before(s.asleep) && !slices.Contains(greetings, strings.ToLower(args[0]))
}

// goOnLocked executes what has come while commands were left for later.
func (s *Server) goOnLocked() {
	all := s.connsLocked()
	slices.SortStableFunc(all, func(a, b *conn) int { return int(a.order - b.order) })
	for _, c := range all {
		c.serveLocked()
	}
}

// cmdDebugSleep is answered when the server wakes up.
func cmdDebugSleep(s *Server, c *conn, a []string) any {
	seconds, err := strconv.ParseFloat(a[2], 64)
	if err != nil || seconds < 0 {
		return notDone("DEBUG SLEEP " + a[2])
	}
	if c.id == 0 {
		return notDone("DEBUG SLEEP without a connection")
	}
	d := time.Duration(seconds * float64(time.Second))
	c.waiting = time.NewTimer(d) // nothing that the client sends meanwhile is executed
	s.asleep = s.now().Add(d)
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !c.dead {
			c.waiting = nil
			c.sendLocked(statusOK)
		}
		s.goOnLocked()
	})
	return silent{}
}

// cmdReplicaof makes the server a replica that has lost its master, or a master again.
func cmdReplicaof(s *Server, _ *conn, a []string) any {
	s.faults.readonly = !strings.EqualFold(a[1]+" "+a[2], "no one")
	return statusOK
}

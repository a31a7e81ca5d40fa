package vredis

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// pause is what CLIENT PAUSE and DEBUG SLEEP begin; guarded by Server.mu. Commands are left for later until it ends, but for
// those that clients begin a connection with, as with Freeze.
type pause struct {
	until time.Time
	all   bool // not only what may write
}

// holds reports whether a command is left for later.
func (p *pause) holds(args []string, now time.Time) bool {
	if !now.Before(p.until) {
		return false
	}
	name := strings.ToLower(args[0])
	if p.all {
		return !slices.Contains(greetings, name)
	}
	d := commands[name]
	return d != nil && (d.has("write") || slices.Contains([]string{"eval", "evalsha", "publish", "spublish"}, name))
}

// greetings are what a pause of all commands spares.
var greetings = []string{"hello", "auth", "client", "select"}

// pauseLocked has commands left for later for d. The server goes on by itself.
func (s *Server) pauseLocked(d time.Duration, all bool, then func()) {
	s.pause = pause{until: s.now().Add(d), all: all}
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		then()
		s.goOnLocked()
	})
}

// goOnLocked executes what has come while commands were left for later.
func (s *Server) goOnLocked() {
	all := s.connsLocked()
	slices.SortStableFunc(all, func(a, b *conn) int { return int(a.order - b.order) })
	for _, c := range all {
		c.serveLocked()
	}
}

func cmdClientPause(s *Server, _ *conn, a []string) any {
	ms, ok := parseInt(a[2])
	switch {
	case !ok:
		return replyError("ERR timeout is not an integer or out of range")
	case ms < 0:
		return replyError("ERR timeout is negative")
	case len(a) > 4 || len(a) == 4 && !strings.EqualFold(a[3], "write") && !strings.EqualFold(a[3], "all"):
		return replyError("ERR syntax error")
	}
	s.pauseLocked(time.Duration(ms)*time.Millisecond, len(a) == 3 || strings.EqualFold(a[3], "all"), func() {})
	return statusOK
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
	s.pauseLocked(d, true, func() {
		if !c.dead {
			c.waiting = nil
			c.sendLocked(statusOK)
		}
	})
	return silent{}
}

// cmdReplicaof makes the server a replica that has lost its master, or a master again.
func cmdReplicaof(s *Server, _ *conn, a []string) any {
	s.faults.readonly = !strings.EqualFold(a[1]+" "+a[2], "no one")
	return statusOK
}

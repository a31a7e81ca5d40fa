package vredis

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// faults are what the server suffers from; guarded by Server.mu.
type faults struct {
	oom, readonly, loading, misconf bool
	frozen                          bool
	spared                          []string // commands that are answered while frozen
	attached, acking                int      // replicas
	wanted                          int      // of them, for a write to be accepted
}

// lacksReplicas reports whether there are fewer replicas than min-replicas-to-write wants.
func (f *faults) lacksReplicas() bool { return !f.readonly && f.attached < f.wanted }

const (
	oomError      = replyError("OOM command not allowed when used memory > 'maxmemory'.")
	readonlyError = replyError("READONLY You can't write against a read only replica.")
	noReplicas    = replyError("NOREPLICAS Not enough good replicas to write.")
	loadingError  = replyError("LOADING Redis is loading the dataset in memory")
	misconfError  = replyError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.")
)

// Handshake is what clients send before their first command, to subscribe, and to see that a connection lives. A server
// that is frozen in a synctest bubble spares them: see Freeze.
var Handshake = []string{"hello", "auth", "client", "select", "ping", "subscribe", "ssubscribe", "unsubscribe", "sunsubscribe"}

// refuses returns the error that a client's command is answered with because of a fault; nil: none. An EXEC is what it
// executes, and to queue a command takes memory.
func (s *Server) refuses(c *conn, d *command) any {
	f := s.faults
	grows, writes := d.has("denyoom"), d.has("write")
	if d.name == "exec" {
		for _, args := range c.multi {
			if queued, wrong := lookup(args); wrong == nil {
				grows, writes = grows || queued.has("denyoom"), writes || queued.has("write")
			}
		}
	} else if c.inMulti && !slices.Contains([]string{"discard", "quit", "reset"}, d.name) {
		grows = true
	}
	switch {
	case f.oom && grows:
		return oomError
	case f.misconf && (writes || d.name == "ping"):
		return misconfError
	case f.lacksReplicas() && writes:
		return noReplicas
	case f.readonly && writes:
		return readonlyError
	case f.loading && !d.has("loading"):
		return loadingError
	}
	return nil
}

// refusesInScript is refuses for a script's command. A script that has written goes on without memory.
func (s *Server) refusesInScript(d *command) any {
	if d.has("write") {
		switch {
		case s.faults.readonly:
			return readonlyError
		case s.faults.misconf:
			return misconfError
		case s.faults.lacksReplicas():
			return noReplicas
		}
	}
	if s.faults.oom && !s.call.wrote && d.has("denyoom") {
		return oomError
	}
	s.call.wrote = s.call.wrote || d.has("write")
	return nil
}

// holdsLocked reports whether the server, frozen or paused, leaves a command for later.
func (s *Server) holdsLocked(args []string) bool {
	return s.faults.frozen && !slices.Contains(s.faults.spared, strings.ToLower(args[0])) || s.pause.holds(args, s.now())
}

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// SetOOM says whether commands that need memory are refused.
func (s *Server) SetOOM(on bool) { s.change(func() { s.faults.oom = on }) }

// SetReadOnly says whether the server is a replica: it refuses writes, and ROLE says so.
func (s *Server) SetReadOnly(on bool) { s.change(func() { s.faults.readonly = on }) }

// SetLoading says whether the server is reading its data: it refuses nearly all.
func (s *Server) SetLoading(on bool) { s.change(func() { s.faults.loading = on }) }

// SetMisconf says whether the server cannot save: it refuses writes.
func (s *Server) SetMisconf(on bool) { s.change(func() { s.faults.misconf = on }) }

// SetReplicas says how many replicas there are, and how many of them acknowledge what WAIT asks for.
func (s *Server) SetReplicas(attached, acking int) {
	s.change(func() { s.faults.attached, s.faults.acking = attached, acking })
}

// Freeze has the server answer nothing until Thaw, but for the commands that are spared. Connections are accepted.
//
// go-redis holds a mutex of its PubSub over a handshake, and a synctest bubble's clock stands while a goroutine
// waits for a mutex: spare Handshake there.
func (s *Server) Freeze(spared ...string) {
	s.change(func() { s.faults.frozen, s.faults.spared = true, spared })
}

// Thaw ends Freeze: what has come meanwhile is executed, connection after connection, in the order of their first bytes.
func (s *Server) Thaw() {
	s.change(func() {
		s.faults.frozen, s.faults.spared = false, nil
		s.goOnLocked()
	})
}

// Holds returns on how many connections a command has come that is left for later.
func (s *Server) Holds() (n int) {
	s.change(func() {
		for _, c := range s.conns {
			if len(c.in) > 0 {
				n++
			}
		}
	})
	return n
}

// Stop ends all connections; none can be made until Start.
func (s *Server) Stop() {
	s.change(func() {
		s.running = false
		for _, c := range s.connsLocked() {
			c.endLocked(true)
		}
	})
}

// Start begins again after Stop: without scripts, and, unless keep says so, without data. Faults stay.
func (s *Server) Start(keep bool) {
	s.change(func() {
		s.running = true
		s.scripts = map[string]*script{}
		s.started = s.now()
		if !keep {
			s.db.keys, s.db.due = map[string]*entry{}, nil
		}
	})
}

// Restart is Stop and Start.
func (s *Server) Restart(keep bool) {
	s.Stop()
	s.Start(keep)
}

// State is a copy of a server's data, as a replica has it.
type State struct{ keys map[string]*entry }

// Snapshot copies the data.
func (s *Server) Snapshot() State {
	var st State
	s.change(func() { st = copyState(State{s.db.keys}) })
	return st
}

func copyState(from State) State {
	to := State{keys: make(map[string]*entry, len(from.keys))}
	for key, e := range from.keys {
		to.keys[key] = e.clone()
	}
	return to
}

// Restore replaces the data by a copy of st: of this server, or of another one for which this one stands in. What has
// expired since is gone. Connections stay.
func (s *Server) Restore(st State) {
	s.change(func() {
		s.db.keys = copyState(st).keys
		s.db.rebuild()
		s.db.advance(s.now().UnixMilli())
	})
}

// wait is WAIT for a client: it ends when the timeout does, without a mutex held meanwhile.
func (s *Server) wait(c *conn, timeout int64) any {
	if timeout == 0 {
		timeout = 1 << 40
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Duration(min(timeout, 1<<40))*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.dead || c.waiting != timer {
			return
		}
		c.waiting = nil
		c.sendLocked(integer(s.faults.acking))
		c.serveLocked()
	})
	c.waiting = timer
	return silent{}
}

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

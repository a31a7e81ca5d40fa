package vredis

import (
	"context"
	"net"
	"sort"
	"sync"
	"syscall"
	"time"
)

// Options are what a Server is made with. The zero value is a server without password that goes by time.Now.
type Options struct {
	// Now is the server's clock; nil: time.Now, which is the bubble's in a synctest bubble.
	Now func() time.Time
	// Password is that of the user default; "": none is needed.
	Password string
	// Addr is what the server calls itself; "": "127.0.0.1:6379". It must be an IP address: go-redis looks up the name of
	// a host, which is real I/O.
	Addr string
	// Log, if not nil, is called with each command that is executed, those of scripts included. It is called
	// with the server's mutex held, so it must not wait and must not use the server.
	Log func(Executed)
}

// Executed is one command that the server has executed.
type Executed struct {
	Client int64  // id of the connection
	Name   string // of the connection, see CLIENT SETNAME
	Lua    bool   // a script called it
	Args   []string
	Err    string // the error it was answered with; "": none
}

// Server is a Redis inside the process. Its methods may be called from any goroutine.
type Server struct {
	addr string
	now  func() time.Time
	log  func(Executed)

	mu       sync.Mutex
	db       keyspace
	pubsub   registry
	lua      *machine
	scripts  map[string]*script // by SHA-1: those that EVALSHA finds
	users    map[string]*user
	conns    map[int64]*conn
	nextID   int64
	arrivals int64
	calls    map[string]int64 // executed, by name
	faults   faults
	pause    pause
	started  time.Time
	running  bool
	call     *invocation // the script that runs; nil: none
}

// New starts a server. It has no goroutine and needs no Close.
func New(o Options) *Server {
	s := &Server{addr: o.Addr, now: o.Now, log: o.Log, conns: map[int64]*conn{}, scripts: map[string]*script{}, calls: map[string]int64{}, running: true}
	if s.addr == "" {
		s.addr = "127.0.0.1:6379"
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.started = s.now()
	s.db.keys = map[string]*entry{}
	s.pubsub = registry{map[string]map[*conn]bool{}, map[string]map[*conn]bool{}}
	s.users = map[string]*user{"default": newUser("default", o.Password)}
	s.lua = newMachine(s)
	return s
}

// Addr returns the address that the server calls itself by.
func (s *Server) Addr() string { return s.addr }

// Dial connects to the server: it is for redis.Options.Dialer. It takes no time, and fails at once while the
// server is stopped. The network and the address do not matter.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil, &net.OpError{Op: "dial", Net: "vredis", Addr: address(s.addr), Err: syscall.ECONNREFUSED}
	}
	s.nextID++
	c := &conn{srv: s, id: s.nextID, proto: 2}
	if u := s.users["default"]; u.enabled && u.nopass {
		c.user = u
	}
	s.conns[c.id] = c
	return c, nil
}

// connsLocked returns the connections in the order of their making.
func (s *Server) connsLocked() []*conn {
	all := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		all = append(all, c)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].id < all[j].id })
	return all
}

// Do executes one command as a client that may do everything, whatever the server's faults are, and returns its
// reply: nil, int64, float64, string, an error, or []any of these. It is for what tests set up and look at.
func (s *Server) Do(args ...string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.faults
	s.faults = faults{attached: held.attached, acking: held.acking}
	defer func() {
		s.faults = held
	}()
	c := &conn{srv: s, proto: 3, user: newUser("default", "")}
	return plain(s.serve(c, args))
}

func plain(v any) any {
	list := func(all []any) []any {
		out := make([]any, len(all))
		for i, x := range all {
			out[i] = plain(x)
		}
		return out
	}
	switch v := v.(type) {
	case status:
		return string(v)
	case replyError:
		return v
	case double:
		return float64(v)
	case mapReply:
		return list(v)
	case setReply:
		return list(v)
	case []any:
		return list(v)
	case nullArray:
		return nil
	}
	return v
}

// Error makes a reply that is an error an error of Go.
func (e replyError) Error() string { return string(e) }

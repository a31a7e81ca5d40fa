package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// An answer of a virtual server is on its way for latency and up to jitter more. Without any, callers in loops would keep a
// bubble's clock from moving; always the same, they would be in step for ever.
const (
	latency = 100 * time.Microsecond
	jitter  = 200 * time.Microsecond
)

// virtual is the Redis inside this process that a virtual server is.
type virtual struct {
	*vredis.Server
	tb    testing.TB
	keeps bool // its data over restarts

	mu       sync.Mutex
	monitors []*Monitor // guarded by mu
}

// ports numbers virtual servers, so that their addresses differ.
var ports atomic.Int64

// StartVirtual returns a Redis inside this process, see package vredis, as a Server: for tests inside a testing/synctest bubble,
// where no time passes but what the test waits for. Its clients dial in memory: they are made by Client, or with Options.
//
// What is different: no process can be started that uses it. A server or a proxy that does not answer, or late, still
// answers what a client sends at the start of a connection, see greetings; and Restart ends a Pause.
func StartVirtual(tb testing.TB, opts ...ServerOption) *Server {
	tb.Helper()
	cfg := serverConfig{password: "virtual"}
	for _, opt := range opts {
		opt(&cfg)
	}
	if len(cfg.extra) > 0 {
		tb.Fatalf("redistest: a virtual server has no arguments: %q", cfg.extra)
	}
	v := &virtual{tb: tb, keeps: cfg.aof}
	s := &Server{tb: tb, virtual: v, major: 7, password: cfg.password, addr: "127.0.0.1:" + strconv.FormatInt(10_000+ports.Add(1)%50_000, 10)}
	v.Server = vredis.New(vredis.Options{Addr: s.addr, Password: s.password, Log: v.executed})
	tb.Cleanup(s.cleanup)
	return s
}

// restart is what becomes of a server that is killed, paused or not, and started again.
func (v *virtual) restart() {
	v.Stop()
	v.Thaw()
	v.Start(v.keeps)
}

// executed passes a command on to all monitors. It is called with the server's mutex held. A command that is answered because the
// server is not real fails the test, which would prove nothing.
func (v *virtual) executed(x vredis.Executed) {
	if strings.Contains(x.Err, "vredis does not do") || strings.HasPrefix(x.Err, "ERR unknown ") && !strings.EqualFold(x.Args[min(1, len(x.Args)-1)], "maint_notifications") {
		v.tb.Errorf("redistest: %q needs a real server: %s", x.Args, x.Err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.monitors) == 0 {
		return
	}
	var line strings.Builder
	now, from := time.Now(), "client:"+strconv.FormatInt(x.Client, 10)
	if x.Lua {
		from = "lua"
	}
	fmt.Fprintf(&line, "%d.%06d [0 %s]", now.Unix(), now.Nanosecond()/1000, from)
	for _, arg := range x.Args {
		fmt.Fprintf(&line, " %q", arg)
	}
	for _, m := range v.monitors {
		m.log.add(line.String())
	}
}

// monitor is Monitor of a virtual server. It records until the server is gone.
func (v *virtual) monitor() *Monitor {
	m := &Monitor{log: newLineLog()}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.monitors = append(v.monitors, m)
	return m
}

func (v *virtual) dial(ctx context.Context) (duplex, error) {
	conn, err := v.Dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return &distant{duplex: conn.(duplex), closed: make(chan struct{})}, nil
}

// distant is a connection on which answers arrive after the latency, but for those to greetings.
type distant struct {
	duplex
	met    atomic.Bool   // there was something else than a greeting
	close  sync.Once     // closes closed
	closed chan struct{} // closed by Close
}

func (d *distant) Write(b []byte) (int, error) {
	if !d.met.Load() && !opensWithGreeting(b) {
		d.met.Store(true)
	}
	return d.duplex.Write(b)
}

func (d *distant) Read(b []byte) (int, error) {
	n, err := d.duplex.Read(b)
	if n > 0 && d.met.Load() {
		select {
		case <-time.After(latency + rand.N(jitter)):
		case <-d.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// Close ends the wait for an answer as well: when a bubble's test is over, no time passes that could end it.
func (d *distant) Close() error {
	d.close.Do(func() { close(d.closed) })
	return d.duplex.Close()
}

// greetings are what go-redis begins a connection with. It holds a mutex of its PubSub until they are answered, and a
// bubble's clock stands while a goroutine waits for a mutex: so no virtual time may pass over them.
var greetings = []string{"hello", "auth", "client", "select"}

// IsGreeting reports whether a command is one of them.
func IsGreeting(name string) bool { return slices.Contains(greetings, strings.ToLower(name)) }

// opensWithGreeting looks at the first command of b.
func opensWithGreeting(b []byte) bool {
	args, _, _ := vredis.ParseCommand(b)
	return len(args) > 0 && IsGreeting(args[0])
}

// greeter tells which frames of a link are greetings and the answers to them: the first ones of a connection to a virtual
// server.
type greeter struct {
	over atomic.Bool  // something else was asked, or there is nothing to spare
	open atomic.Int64 // greetings without an answer
}

// asks reports whether a request is a greeting.
func (g *greeter) asks(f frame) bool {
	if g.over.Load() {
		return false
	}
	if !IsGreeting(f.text()) {
		g.over.Store(true)
		return false
	}
	g.open.Add(1)
	return true
}

// answers reports whether a reply is one to a greeting.
func (g *greeter) answers(frame) bool {
	if g.open.Add(-1) >= 0 {
		return true
	}
	g.open.Add(1)
	return false
}

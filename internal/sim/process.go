package sim

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/seam"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// process is a client process: a manager for each server, each with a client of its own. One that is killed has a successor, which
// goes on with its workers' steps. What is not said to be otherwise is guarded by World.mu.
type process struct {
	w        *World
	slot     int // in the plan
	life     int // which of the processes of that slot it is
	ctx      context.Context
	die      context.CancelFunc
	clients  []*redis.Client     // not changed
	managers []*holdfast.Manager // not changed
	locks    []handle            // by their place in the plan; not changed

	links    []*link // that the server has
	dials    uint64
	apart    []int // by server: reasons for which nothing comes through
	slow     time.Duration
	slowest  time.Duration // that slow has ever been
	dead     bool
	closed   bool          // its managers are
	first    time.Duration // until then a question may wait for the first answer of all; 0: no call yet
	prefix   []string      // of its owner ids, by server; "": not seen yet
	losses   []*loss
	looks    []*look         // what servers had of locks that it asked about, of late
	closings []time.Duration // it closes when it is granted a lock, until a successor starts so long after
	late     int             // how many leases it renews too late
	trouble  time.Duration   // until then something can be wrong that has to do with it
	deafened time.Duration   // when a connection for messages ended
	grave    time.Duration   // until then a lease can be lost of what was wrong
	astray   time.Duration   // until then a request can be without an answer
	bereft   bool            // a lease of it has been lost

	pauses   []pause
	stalls   int           // reasons for which it stands still
	standing chan struct{} // closed when it goes on; nil: it runs
	stood    time.Duration // when it began to stand still the last time
	woke     time.Duration // when it went on the last time
	still    time.Duration // for how long it has stood still before
}

// loss is a request, or its reply, that is to be lost.
type loss struct {
	script  string // what the script's name begins or ends with
	request bool
	then    string // what becomes of the connection: "cut" or "hole"
}

func (p *process) String() string {
	if p.life == 0 {
		return fmt.Sprintf("p%d", p.slot)
	}
	return fmt.Sprintf("p%d.%d", p.slot, p.life)
}

// newProcess starts the process of a slot.
func (w *World) newProcessLocked(slot, life int) *process {
	n := len(w.servers)
	p := &process{w: w, slot: slot, life: life, apart: make([]int, n), prefix: make([]string, n)}
	p.ctx, p.die = context.WithCancel(context.Background())
	for _, s := range w.servers {
		client := redis.NewClient(&redis.Options{
			Addr: s.addr, PoolSize: ample,
			MinRetryBackoff: retryAfter, MaxRetryBackoff: retryAfter, // between two that are equal, go-redis draws none
			DialerRetries:            1, // go-redis rests between two, with PubSub's mutex held
			Dialer:                   func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, s) },
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		m, err := holdfast.New(client, w.plan.Options.list()...)
		if err != nil {
			panic(err)
		}
		p.clients, p.managers = append(p.clients, client), append(p.managers, m)
		seam.Engine(m).Chance = w.draws(slot, life, s.n)
		for _, part := range partsOf(m) {
			parts.Store(part, p)
		}
	}
	p.locks = p.handles(w.plan.Locks)
	w.all = append(w.all, p)
	p.observe()
	return p
}

// ample is more connections than a client needs, so that no request waits for one: go-redis keeps the timers of such waits for the clients of all
// bubbles, and those of an earlier world, or of one beside, end the process in this one.
const ample = 100

// givenUp is sooner than go-redis gives a connection up over which no answer comes.
const givenUp = 2900 * time.Millisecond

// retryAfter is go-redis's pause before it repeats a command.
const retryAfter = 8 * time.Millisecond

func (o *Options) list() []holdfast.Option {
	list := []holdfast.Option{
		holdfast.WithLease(o.Lease), holdfast.WithPollInterval(o.Poll), holdfast.WithFairPatience(o.Patience), holdfast.WithHandoffSlice(o.Slice),
		holdfast.WithPublishMode(holdfast.PublishClassic), holdfast.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if o.Replicas > 0 {
		list = append(list, holdfast.WithReplicas(o.Replicas, o.AckIn))
	}
	return list
}

// dial connects. For messages it takes no time, and fails at once if the server cannot be reached: go-redis has a mutex meanwhile,
// and a bubble's clock stands while another goroutine waits for that. The other connections take what a network takes, and
// are waited for in vain where nothing comes through.
func (p *process) dial(ctx context.Context, s *server) (net.Conn, error) {
	w := p.w
	messages := forMessages()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countLocked()
	n := p.dials
	p.dials++
	refused := &net.OpError{Op: "dial", Net: "sim", Err: syscall.ECONNREFUSED}
	if !messages {
		trip := 2 * w.chanceLocked(w.plan.Latency, uint64(p.slot)<<8|uint64(s.n), uint64(w.now()), 1)
		w.mu.Unlock()
		ended := !sleep(ctx, trip)
		w.mu.Lock()
		for !ended && !p.dead && p.apart[s.n] > 0 {
			w.mu.Unlock()
			ended = !sleep(ctx, 10*time.Millisecond)
			w.mu.Lock()
		}
		if ended {
			return nil, &net.OpError{Op: "dial", Net: "sim", Err: context.Cause(ctx)}
		}
	}
	if p.dead || s.down > 0 || p.apart[s.n] > 0 {
		return nil, refused
	}
	inner, err := s.redis.Dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	client, far := vredis.Pair()
	c := &link{End: client, far: far, w: w, p: p, s: s, n: n, messages: messages, greeting: messages, inner: inner.(vredis.Conn), inbox: -1}
	p.links = append(p.links, c)
	w.pumps.Add(1)
	go c.pump()
	return c, nil
}

// forMessages reports whether go-redis's PubSub dials.
func forMessages() bool {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "PubSub") {
			return true
		}
		if !more {
			return false
		}
	}
}

// sleep reports whether ctx has outlasted d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lossLocked takes what is to be lost of a script.
func (p *process) lossLocked(script string) *loss {
	for i, l := range p.losses {
		if strings.Contains(script, l.script) {
			p.losses = slices.Delete(p.losses, i, i+1)
			return l
		}
	}
	return nil
}

// troubleLocked says that something is wrong with p for d from now on, and with what it does for the time that it takes to recover.
func (p *process) troubleLocked(d time.Duration) {
	p.trouble = max(p.trouble, p.w.now()+d+recovery)
	p.astray = max(p.astray, p.trouble)
}

// graveLocked is troubleLocked for what can cost a lease.
func (p *process) graveLocked(d time.Duration) {
	p.troubleLocked(d)
	p.grave = p.trouble
}

// lateLocked is graveLocked for what only makes requests and answers late: when that ends, all have come. It is not waited for long enough for
// go-redis to give a connection up.
func (p *process) lateLocked(d time.Duration) {
	astray := max(p.astray, p.w.now()+d)
	p.graveLocked(d)
	p.astray = astray
}

// healthyLocked reports whether p can reach s now.
func (p *process) healthyLocked(s *server) bool {
	return !p.dead && !p.closed && p.stalls == 0 && p.apart[s.n] == 0 && p.slow == 0 && s.down == 0 && s.frozen == 0
}

// calmLocked reports whether nothing has been wrong for so long that all must be as if nothing had ever been.
func (p *process) calmLocked(s *server) bool {
	return p.healthyLocked(s) && p.w.now() > p.trouble && p.w.now() > s.trouble
}

// partLocked has nothing come through between p and s for d.
func (p *process) partLocked(s *server, d time.Duration, cut bool) {
	p.apart[s.n]++
	if cut || d > givenUp {
		p.graveLocked(d)
	} else {
		p.lateLocked(d)
	}
	p.w.afterLocked(d, func() {
		if cut {
			p.cutLocked(func(c *link) bool { return c.s == s })
		}
		p.apart[s.n]--
		p.w.flushLocked()
	})
}

// linksLocked returns those connections of which which says true, in an order that does not depend on which goroutine of go-redis has dialed first.
func (p *process) linksLocked(which func(*link) bool) (all []*link) {
	for _, c := range p.links {
		if which(c) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *link) int { return cmp.Compare(a.asked, b.asked) })
	return all
}

// cutLocked ends those connections of which which says true. The client hears of one after the other, a nanosecond apart.
func (p *process) cutLocked(which func(*link) bool) {
	for i, c := range p.linksLocked(which) {
		c.cutLocked(time.Duration(i))
	}
}

// killLocked ends p: nothing of it is sent or heard any more. What runs of it, in this process, is told to end.
func (p *process) killLocked() {
	p.dead = true
	p.wakeLocked()
	p.cutLocked(func(*link) bool { return true })
	p.w.judge.forgetLocked(p)
	p.die()
	p.w.running.Go(func() {
		for _, m := range p.managers {
			_ = m.Close(context.Background())
		}
		p.closeClients()
	})
}

func (p *process) closeClients() {
	for _, client := range p.clients {
		_ = client.Close()
	}
}

// replaceLocked starts the successor of p, after d.
func (p *process) replaceLocked(d time.Duration) {
	w := p.w
	w.afterLocked(d, func() {
		next := w.newProcessLocked(p.slot, p.life+1)
		w.processes[p.slot] = next
		w.noteLocked("%v starts", next)
		close(w.born[p.slot])
		w.born[p.slot] = make(chan struct{})
	})
}

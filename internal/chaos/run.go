package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Config is what a run is made of.
type Config struct {
	Duration time.Duration // from the first operation to the last
	Seed     uint64
	Clients  int           // processes
	Workers  int           // callers in each, beside the special ones
	Linger   time.Duration // the longest time for which processes keep locks
	Faults   string        // a pattern: only those of these names; none: none; empty: all
	Hasty    bool          // nothing is looked for at the end
	Overstay int           // percent of the operations that keep a lease beyond its end
}

// ttl is the lease of most locks: short, so that many end within a run; and slowTTL that of the slow
// ones: longer than what another's release gives, two seconds, so that the first renewal, 25 ms later,
// makes a lease of it.
const (
	ttl     = time.Second
	slowTTL = 3 * time.Second
)

// ttlOf is the lease of a lock.
func ttlOf(name string) time.Duration {
	if k := kindOf(name); k != nil && name == k.slow() {
		return slowTTL
	}
	return ttl
}

// none is Faults without any.
const none = "none"

// run is a run under way.
type run struct {
	testing.TB
	cfg     Config
	h       *History
	srv     *redistest.Server
	dir     string
	members []*member
	paths   []string // of the histories, by process

	ticksMu sync.Mutex
	ticks   []Tick  // guarded by ticksMu
	lapses  []Fault // guarded by ticksMu; writes of the clock key that took long

	residue Residue
}

// member is a client process that lives.
type member struct {
	*Process
	role  *redistest.Process
	proxy *redistest.Proxy
}

// Run makes a run and returns what is known of it.
func Run(tb testing.TB, cfg Config) (*History, Residue) {
	tb.Helper()
	r := &run{
		TB: tb, cfg: cfg, dir: tb.TempDir(),
		srv: startServer(tb),
		h:   &History{Seed: cfg.Seed, Healed: never},
	}
	r.h.Start = now()
	clock, stopClock := context.WithCancel(context.Background())
	var ticking sync.WaitGroup
	ticking.Go(func() { r.tick(clock) })
	defer ticking.Wait()
	defer stopClock()

	for range cfg.Clients {
		r.members = append(r.members, r.start())
	}
	r.phases()
	stopClock()
	ticking.Wait()
	r.collect()
	return r.h, r.residue
}

// startServer starts a server whose data survive SIGKILL: it hands every write to the
// kernel before it answers. It need not wait for the disk, which on a busy machine would
// be a fault of its own.
func startServer(tb testing.TB) *redistest.Server {
	return redistest.Start(tb, redistest.WithAOF(),
		redistest.WithArgs("--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"))
}

// phases: a quiet beginning, faults, healing and a fresh client, the end.
func (r *run) phases() {
	h, cfg := r.h, r.cfg
	begin := time.Now()
	quiet := min(max(cfg.Duration/12, 1500*time.Millisecond), 5*time.Second)
	heal := min(max(cfg.Duration/6, recovery(ttl)+3*ttl), 8*time.Second) // some of it is calm
	if cfg.Faults == none {
		quiet = cfg.Duration
	}
	<-time.After(quiet)
	h.Faulty = now()
	if cfg.Faults != none {
		r.nemesis(cfg.Seed).haunt(begin.Add(cfg.Duration - heal))
	}
	for _, c := range r.members {
		c.proxy.Heal()
		c.proxy.Cut() // what a black hole has left hanging: a network that is healed resets it
		c.role.Resume()
		c.role.Send("calm")
	}
	h.Healed = now()
	if !cfg.Hasty {
		r.probe()
	}
	<-time.After(time.Until(begin.Add(cfg.Duration)))
	h.Quiesced = now()
	if !cfg.Hasty {
		r.quiesce()
	}
	h.End = now()
}

func (r *run) nemesis(seed uint64) *nemesis {
	return &nemesis{run: r, rng: rand.New(rand.NewPCG(seed, 0))}
}

// stallBound is for how long the server or a process may be silent.
const stallBound = 150 * time.Millisecond

// tick writes the clock key, so that the server's file has times in it.
func (r *run) tick(ctx context.Context) {
	rdb := r.srv.ClientWith(r, func(o *redis.Options) {
		o.MaxRetries = -1
		o.ReadTimeout = 10 * time.Second
	})
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		sent := now()
		r.ticksMu.Lock()
		r.ticks = append(r.ticks, Tick{Sent: sent, Received: never})
		r.ticksMu.Unlock()
		err := rdb.Set(context.Background(), clockKey, n, time.Hour).Err()
		returned := now()
		r.ticksMu.Lock()
		if err == nil {
			r.ticks[n].Received = returned
		}
		if returned-sent > int64(stallBound) {
			r.lapses = append(r.lapses, Fault{Kind: "stall", Proc: -1, Start: sent, End: returned})
		}
		r.ticksMu.Unlock()
		<-pace.C
	}
}

// lingers is for how long a process keeps locks, each for another time; 0: it keeps none. Half of them do.
func (r *run) lingers(proc int) time.Duration {
	if (r.cfg.Seed+uint64(proc))%2 != 0 {
		return 0
	}
	return r.cfg.Linger / time.Duration(proc+1)
}

// start starts one more client process.
func (r *run) start() *member {
	r.Helper()
	p := &Process{ID: len(r.h.Processes), Born: now(), Died: never}
	p.Linger = r.lingers(p.ID)
	proxy := r.srv.Proxy(r)
	cfg := clientConfig{
		Addr: proxy.Addr(), Password: r.srv.Password(), Proc: p.ID, Seed: r.cfg.Seed, Workers: r.cfg.Workers,
		Overstay: r.cfg.Overstay, History: filepath.Join(r.dir, fmt.Sprintf("history-%d", p.ID)),
		Slice: holdfast.DefaultHandoffSlice, Linger: p.Linger,
	}
	if p.ID%3 == 2 {
		cfg.Slice = 0 // a fleet of both modes: this one passes nothing on by itself
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		r.Fatal(err)
	}
	m := &member{Process: p, proxy: proxy, role: redistest.StartProcess(r, clientRole, string(text))}
	var ready clientReady
	r.hear(m, &ready)
	p.Prefix = ready.Prefix
	r.h.Processes = append(r.h.Processes, p)
	r.paths = append(r.paths, cfg.History)
	return m
}

// hear reads what a client has to say.
func (r *run) hear(m *member, into any) {
	r.Helper()
	if err := json.Unmarshal([]byte(m.role.ReadLine(r, 60*time.Second)), into); err != nil {
		r.Fatalf("chaos: client %d: %v", m.ID, err)
	}
}

// replace kills a client and starts another.
func (r *run) replace(m *member) {
	r.Helper()
	m.role.Kill()
	m.Died = now()
	r.members[slices.Index(r.members, m)] = r.start()
}

// recovery is the longest that a lock may stay out of reach when everything works again: what holds it ends with its
// TTL, and a waiter that no message reaches asks at its next poll.
func recovery(ttl time.Duration) time.Duration { return ttl + holdfast.DefaultPollInterval }

// collect reads the histories and the server's file.
func (r *run) collect() {
	for id, path := range r.paths {
		ops, err := readHistory(path)
		if err != nil {
			r.Fatalf("chaos: history of client %d: %v", id, err)
		}
		r.h.Ops = append(r.h.Ops, ops...)
	}
	sortByCall(r.h.Ops)
	r.h.Writes, r.h.Ticks, r.h.Wall = r.srv.AOF(), r.ticks, epoch.at.UnixNano()-epoch.shared
	r.stalls()
}

// stalls turns moments at which the machine was too busy into faults: they are not planned,
// and hit like the planned ones.
func (r *run) stalls() {
	r.h.Stalls = append(r.h.Stalls, r.lapses...)
	for _, o := range r.h.Ops {
		if o.Do == stall {
			r.h.Stalls = append(r.h.Stalls, Fault{Kind: "stall", Proc: o.Proc, Start: o.Call, End: o.Return})
		}
	}
}

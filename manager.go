package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/internal/busiest"
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Manager is where the locks of a process meet. All of them share one pub/sub connection, one
// renewal schedule and one path for commands. In a cluster with sharded messages there is one more
// connection per master, while a caller waits there for a lock that Redisson holds or is about to
// receive.
//
// Make one Manager per process and Redis deployment. It is safe for concurrent use.
type Manager struct {
	epoch    time.Time   // just before it was made
	owners   string      // what all its owner ids begin with
	lock     *lockConfig // the default of all locks; not changed after New
	mapName  func(string) string
	log      *slog.Logger
	poll     time.Duration
	slice    time.Duration
	cluster  bool          // keys of one script must share a slot
	publish  any           // the command that announces a release, boxed; see tell in prelude/redisson.lua
	counted  string        // "1" if PUBSUB NUMSUB tells whether anybody hears an inbox, else "0"
	patience time.Duration // for how long a silent waiter keeps its place
	confirm  bool          // tests: no grant is trusted without asking
	aside    time.Duration // see aside.go; tests change it

	readmission time.Duration // see trouble.go; tests change it

	executor   *command.Executor
	scheduler  *renewal.Scheduler[*hold]
	subscriber *pubsub.Subscriber
	inbox      *inbox
	identity   *identity // nil: none
	telemetry  *telemetry.Telemetry
	classes    classes
	tokens     tokenMarks
	contended  busiest.Names // what callers wait for; but see entry.waits
	holds      atomic.Uint64 // numbers the owner ids
	oneSlot    atomic.Bool   // found out: keys of one script must share a slot
	warm       sync.Once     // the first hold to be renewed sees to spare connections
	ready      sync.Pool     // see newReady
	life       context.Context
	endLife    context.CancelFunc // by Close
	stats      counters
	journal    *journal.Journal

	mu      sync.Mutex // guards the following; a leaf in the lock order
	entries [families]registry
	pending int                   // requests and releases that Close waits for
	paused  map[*release]struct{} // which wait before they are sent again
	closed  bool
	empty   bool          // drained is closed
	denied  error         // of a release that was given up since closed was set; nil: none was
	trouble error         // why the latest request of a release brought no answer since then; nil: each has
	drained chan struct{} // closed when closed and nothing is pending
	stopped chan struct{} // closed when Close has stopped everything
	stopErr error         // the result of Close; set before stopped is closed
}

// New returns a Manager of locks on client. It does no I/O, and starts nothing before the first
// lock.
//
// client is a *redis.Client (one server, or Sentinel's fail-over client) or a *redis.ClusterClient,
// which may be built with default options: no call waits for the client's retries or time-outs. A
// *redis.Ring is refused: each process decides by itself which shards are up, so two processes
// could lock the same name on two shards.
//
// The caller keeps the client, and closes it after [Manager.Close]. If the client is closed before,
// calls return [ErrUnavailable] with redis.ErrClosed.
//
// New returns [ErrInvalidOption] for a bad option or a nil client.
func New(client redis.UniversalClient, opts ...Option) (*Manager, error) {
	cfg := defaultConfig()
	for i, o := range opts {
		if o == nil {
			return nil, &OptionError{"Option", nil, fmt.Sprintf("New: option %d is nil", i+1)}
		}
		o.apply(&cfg)
	}
	servers, err := deploymentOf(client)
	if err != nil {
		return nil, err
	}
	if err := cfg.settle(servers); err != nil {
		return nil, err
	}
	m := &Manager{
		epoch:       time.Now().Add(-1), // no time after it is 0, which has a meaning of its own
		owners:      wire.NewOwnerPrefix(),
		lock:        &cfg.lock,
		mapName:     cfg.mapName,
		log:         cfg.log,
		poll:        cfg.poll,
		slice:       cfg.slice,
		cluster:     servers.cluster != nil,
		publish:     "publish",
		counted:     "1",
		patience:    cfg.fairPatience,
		confirm:     cfg.confirm,
		aside:       cfg.aside,
		readmission: cfg.readmission,
		executor:    command.New(client),
		entries:     [families]registry{{}, {}, {}},
		drained:     make(chan struct{}),
		stopped:     make(chan struct{}),
	}
	m.life, m.endLife = context.WithCancel(context.Background())
	m.scheduler = renewal.New(renewal.Config[*hold]{Renew: m.renew, Expire: m.expire})
	if m.cluster {
		m.counted = "0" // a node knows only its own listeners
	}
	if cfg.publish != PublishClassic {
		m.publish = "spublish"
	}
	m.prepare(m.lock)
	m.journal = journal.New(m.log)
	m.subscriber = m.newSubscriber(client, servers, cfg.publish)
	m.executor.OnClosed(m.clientClosed)
	m.executor.OnReadOnly(m.subscriber.Moved)
	m.executor.OnStranded(func() { m.subscriber.Doubt(m.executor.RoundTrip()) })
	m.executor.OnOutage(m.unavailable, m.journal.AvailableAgain)
	m.inbox = newInbox(m)
	m.identity = newIdentity(m, cfg.identity)
	m.classes.of = cfg.metricName
	if m.telemetry, err = telemetry.New(cfg.tracer, cfg.meter, m.gauges, m.totals); err != nil {
		m.log.Warn("holdfast: some metrics are not available", "error", err)
	}
	return m, nil
}

// unavailable is called when requests bring no answer any more.
func (m *Manager) unavailable(cause error) {
	m.stats.outages.Add(1)
	m.journal.Unavailable(cause)
}

// deployment is what a client says about the servers behind it.
type deployment struct {
	cluster     pubsub.Cluster // nil: one server, or Sentinel's
	sharded     bool           // the cluster has slots, and may have sharded messages
	readTimeout time.Duration  // 0: none, or not known
}

// deploymentOf refuses a client that cannot keep locks.
func deploymentOf(client redis.UniversalClient) (deployment, error) {
	switch c := client.(type) {
	case nil:
		return deployment{}, &OptionError{"New", nil, "New: client is nil"}
	case *redis.Client:
		if c == nil {
			return deployment{}, &OptionError{"New", nil, "New: client is a nil *redis.Client"}
		}
		return deployment{readTimeout: c.Options().ReadTimeout}, nil
	case *redis.ClusterClient:
		if c == nil {
			return deployment{}, &OptionError{"New", nil, "New: client is a nil *redis.ClusterClient"}
		}
		o := c.Options() // with ClusterSlots its servers are no cluster, as NewFailoverClusterClient's
		return deployment{c, o.ClusterSlots == nil, o.ReadTimeout}, nil
	case *redis.Ring:
		return deployment{}, &OptionError{"New", "*redis.Ring", "a ring is not supported: processes may disagree about which shards are up, and lock one name on two of them"}
	}
	return deployment{}, nil
}

// registry has the entries of a family by name, after the name mapper. A mutex, a fair
// lock and a read-write lock of one name have an entry each: what they do to each other in
// Redis, they would do between processes as well.
type registry map[string]*entry

// entry returns the entry of a lock, a new one if there is none.
func (m *Manager) entry(n *named) (*entry, *verdict) {
	m.mu.Lock()
	e, over := m.entries[n.family][n.mapped], m.closed
	if e == nil && !over {
		e = &entry{m: m, keys: n.wireKeys(), name: n.name, kind: n.family}
		if n.family == fairKind {
			e.places = new(places)
		}
		m.entries[n.family][n.mapped] = e
	}
	m.mu.Unlock()
	if over {
		return nil, because(closed)
	}
	n.entry.Store(e)
	m.identity.begin()
	return e, nil
}

// existing returns the entry of a lock; nil if there is none.
func (m *Manager) existing(family kind, mapped string) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[family][mapped]
}

// disconnected is called by the subscriber.
func (m *Manager) disconnected() {
	m.stats.reconnects.Add(1)
	m.telemetry.Disconnected()
}

// newReady returns a channel on which a caller is to be told of its outcome, once. Who
// has received from it, or never will, puts it back into m.ready.
func (m *Manager) newReady() chan struct{} {
	if c, ok := m.ready.Get().(chan struct{}); ok {
		return c
	}
	return make(chan struct{}, 1)
}

// forget drops a dead entry. A later caller makes a new one.
func (m *Manager) forget(e *entry) {
	m.mu.Lock()
	if r := m.entries[e.kind]; r[e.mapped()] == e {
		delete(r, e.mapped())
	}
	m.mu.Unlock()
}

// begin and end count what Close waits for.
func (m *Manager) begin() {
	m.mu.Lock()
	m.pending++
	m.mu.Unlock()
}

func (m *Manager) end() {
	m.mu.Lock()
	m.pending--
	if m.closed && m.pending == 0 && !m.empty {
		m.empty = true // an Unlock after Close can begin something again
		close(m.drained)
	}
	m.mu.Unlock()
}

// pausing and resumed record that a release pauses before it is sent again, and does not any more.
func (m *Manager) pausing(r *release) {
	m.mu.Lock()
	if m.paused == nil {
		m.paused = make(map[*release]struct{})
	}
	m.paused[r] = struct{}{}
	m.mu.Unlock()
}

func (m *Manager) resumed(r *release) {
	m.mu.Lock()
	delete(m.paused, r)
	m.mu.Unlock()
}

// hasten has the releases that pause sent at once: Close waits for them.
func (m *Manager) hasten() {
	m.mu.Lock()
	paused := slices.Collect(maps.Keys(m.paused))
	m.mu.Unlock()
	for _, r := range paused {
		r.entry.mu.Lock()
		r.hastenLocked()
		r.entry.mu.Unlock()
	}
}

// gaveUp records why a release has ended that Redis has not confirmed.
func (m *Manager) gaveUp(err error) {
	m.mu.Lock()
	if m.closed {
		m.denied = err
	}
	m.mu.Unlock()
}

// troubled records why a request of a release has brought no answer.
func (m *Manager) troubled(cause error) {
	m.mu.Lock()
	if m.closed {
		m.trouble = cause
	}
	m.mu.Unlock()
}

// errClientClosed is why nobody is let in after that.
var errClientClosed = redis.ErrClosed

// clientClosed is called when the client turns out to be closed: nobody can be let in any more, but by
// re-entry. What is held ends with its deadline.
func (m *Manager) clientClosed() {
	m.mu.Lock()
	entries := m.entriesLocked()
	m.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		e.failLocked(unavailable, errClientClosed)
		e.stepLocked()
		e.mu.Unlock()
	}
}

var errClosing = errors.New("manager closed, but some locks may not have been released")

// closeGrace is how long Close waits at least: a program that ends by a signal closes under the
// context that has ended.
const closeGrace = 100 * time.Millisecond

// patienceFor is how long Redis has to answer a request for a lock of this TTL.
func (m *Manager) patienceFor(ttl time.Duration) time.Duration {
	return validity.Patience(ttl, m.executor.RoundTrip())
}

// askPatience is how long Redis has to answer what no caller's Lock or Unlock waits for: questions,
// renewals, the keeping of places. Close waits as long.
func (m *Manager) askPatience() time.Duration { return validity.AskPatience(m.executor.RoundTrip()) }

// Close ends the Manager's work. New and waiting calls return [ErrClosed], live leases end with
// ErrClosed, and the locks are released.
//
// Close waits until Redis has confirmed the releases and the Manager's goroutines have ended: for
// at most a second (twelve round trips where Redis is far away) and until ctx is done, but for up
// to 100 ms even if ctx is already done. A goroutine that is stuck inside go-redis, or in a handler
// of the logger, ends when that call returns.
//
// Close returns nil if everything was released, and [ErrUnavailable] otherwise: the locks that are
// left expire with their TTL. So does a lock whose lease [WithMaxHold] has ended and that was not
// unlocked.
//
// Close may be called more than once. Every call that waits for the end returns the same result. It
// does not close the client.
func (m *Manager) Close(ctx context.Context) error {
	if err := m.check(ctx, "Close"); err != nil {
		return err
	}
	m.mu.Lock()
	first := !m.closed
	var entries []*entry
	if first {
		m.closed = true
		entries = m.entriesLocked()
		m.pending++ // so that drained is not closed before all have begun
	}
	m.mu.Unlock()
	if first {
		for _, e := range entries {
			e.close()
		}
		m.hasten()
		m.identity.close()
		m.end()
		m.stopErr = m.stop(ctx)
		close(m.stopped)
		return m.stopErr
	}
	late, unhook := withGrace(ctx, closeGrace)
	defer unhook()
	select {
	case <-m.stopped:
		return m.stopErr
	case <-late.Done():
		return newLockError(ErrUnavailable, "", append([]error{errClosing}, contextCauses(ctx)...)...)
	}
}

// withGrace returns a context that ends with ctx, but not before d is over; and a function
// that ends it.
func withGrace(ctx context.Context, d time.Duration) (context.Context, func()) {
	began := time.Now()
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		time.AfterFunc(d-time.Since(began), func() { cancel(context.Cause(ctx)) })
	})
	return late, func() { unhook(); cancel(nil) }
}

// stop waits for the releases and stops the goroutines.
func (m *Manager) stop(ctx context.Context) error {
	ctx, unhook := withGrace(ctx, closeGrace)
	defer unhook()
	ctx, cancel := context.WithTimeout(ctx, m.askPatience())
	defer cancel()
	var err error
	select {
	case <-m.drained:
		m.identity.wait(ctx)
		m.mu.Lock()
		if m.denied != nil {
			err = newLockError(ErrUnavailable, "", errClosing, m.denied)
		}
		m.mu.Unlock()
	case <-ctx.Done():
		m.mu.Lock()
		err = newLockError(ErrUnavailable, "", errClosing, m.trouble, context.Cause(ctx))
		m.mu.Unlock()
	}
	m.endLife()
	var g errgroup.Group
	g.Go(func() error { return m.scheduler.Stop(ctx) })
	g.Go(func() error { return m.subscriber.Stop(ctx) })
	g.Go(func() error { return m.executor.Stop(ctx) })
	if stopErr := g.Wait(); stopErr != nil && err == nil {
		err = newLockError(ErrUnavailable, "", errClosing, stopErr)
	}
	if logErr := m.journal.Close(ctx); logErr != nil && err == nil {
		err = newLockError(ErrUnavailable, "", errClosing, logErr)
	}
	m.telemetry.Close()
	return err
}

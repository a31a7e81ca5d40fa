package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/seam"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Manager is where the locks of a process meet. All of them share one pub/sub connection, one
// renewal schedule and one path for commands. In a cluster with sharded messages there is one more
// connection per master, while a caller waits there for a lock that Redisson holds or is about to
// receive.
//
// Make one Manager per process and Redis deployment. It is safe for concurrent use.
type Manager struct {
	engine  *engine.Engine
	lock    *lockConfig // the default of all locks; not changed after New
	mapName func(string) string
	terms   sync.Map // string, the key of an election's lock -> *Term: in which this process leads
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
// New returns [ErrInvalidOption] for a bad option, a nil client, or a client whose ReadTimeout is
// disabled.
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
	executor, log := command.New(client), journal.New(cfg.log)
	m := &Manager{lock: &cfg.lock, mapName: cfg.mapName}
	settings := engine.Config{
		Executor: executor,
		Journal:  log,
		Subscriber: func(lost func(unheard bool)) *pubsub.Subscriber {
			return newSubscriber(client, servers, cfg.publish, log, lost, executor.CheckClosed)
		},
		ErrorOf: errorOf,
		Settings: lock.Settings{
			Poll: cfg.poll, Slice: cfg.slice, ReadSlice: cmp.Or(cfg.slice, DefaultHandoffSlice),
			Patience: cfg.fairPatience, Aside: lock.AsideFor, Readmission: lock.Readmission,
		},
		Cluster:    servers.cluster != nil,
		Sharded:    cfg.publish != PublishClassic,
		App:        cfg.identity,
		Page:       cfg.page,
		MetricName: cfg.metricName,
	}
	for _, tune := range cfg.tune {
		tune(&settings)
	}
	m.engine = engine.New(settings)
	m.engine.Process.Prepare(&m.lock.terms)
	if m.engine.Telemetry, err = telemetry.New(cfg.tracer, cfg.meter, m.gauges, m.totals); err != nil {
		log.Logger().Warn("holdfast: some metrics are not available", "error", err)
	}
	return m, nil
}

// config is what the options of New add up to.
type config struct {
	lock         lockConfig
	mapName      func(string) string
	log          *slog.Logger // nil: slog.Default, from Warn on
	tracer       trace.TracerProvider
	meter        metric.MeterProvider
	poll         time.Duration
	slice        time.Duration
	fairPatience time.Duration
	tune         []func(*engine.Config) // by tests
	publish      PublishMode
	identity     string              // app; empty: none
	page         string              // the address of the debug page; empty: none
	metricName   func(string) string // nil: none
	err          error               // the first bad option
}

func defaultConfig() config {
	return config{
		lock:         lockConfig{terms: engine.NewTerms(DefaultLease)},
		mapName:      func(name string) string { return name },
		poll:         DefaultPollInterval,
		slice:        DefaultHandoffSlice,
		fairPatience: DefaultFairPatience,
	}
}

// settle checks what New was given, and decides what depends on the servers.
func (c *config) settle(servers deployment) error {
	if c.err != nil {
		return c.err
	}
	if err := cmp.Or(c.lock.check(), c.lock.checkIdle()); err != nil {
		return err
	}
	if c.page != "" && c.identity == "" {
		return &OptionError{"WithDebugPage", c.page, "needs WithIdentity"}
	}
	if a := c.lock.terms.Acks; a != nil && servers.readTimeout > 0 && a.Timeout >= servers.readTimeout {
		return &OptionError{"WithReplicas", a.Timeout, fmt.Sprintf("must be below the client's ReadTimeout of %v", servers.readTimeout)}
	}
	switch {
	case servers.sharded:
	case c.publish == PublishSharded:
		return &OptionError{"WithPublishMode", c.publish, "sharded messages need a *redis.ClusterClient of a cluster"}
	default:
		c.publish = PublishClassic
	}
	return nil
}

// deployment is what a client says about the servers behind it.
type deployment struct {
	cluster     command.Cluster // nil: one server, or Sentinel's
	sharded     bool            // the cluster has slots, and may have sharded messages
	readTimeout time.Duration   // 0: none, or not known
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
		o := c.Options()
		return deployment{readTimeout: o.ReadTimeout}, endless(o.ReadTimeout)
	case *redis.ClusterClient:
		if c == nil {
			return deployment{}, &OptionError{"New", nil, "New: client is a nil *redis.ClusterClient"}
		}
		o := c.Options() // with ClusterSlots its servers are no cluster, as NewFailoverClusterClient's
		return deployment{c, o.ClusterSlots == nil, o.ReadTimeout}, endless(o.ReadTimeout)
	case *redis.Ring:
		return deployment{}, &OptionError{"New", "*redis.Ring", "a ring is not supported: processes may disagree about which shards are up, and lock one name on two of them"}
	}
	return deployment{}, nil
}

// endless refuses a client whose ReadTimeout is disabled: go-redis then keeps each dead connection, and the caller that waits on it, forever.
func endless(readTimeout time.Duration) error {
	if readTimeout > 0 {
		return nil
	}
	return &OptionError{"New", "ReadTimeout -1", "the client must have a ReadTimeout: without one a silently broken connection is never replaced"}
}

func init() {
	seam.Engine = func(m any) *engine.Engine { return m.(*Manager).engine }
	seam.Tune = func(tune func(*engine.Config)) any { return option(func(c *config) { c.tune = append(c.tune, tune) }) }
	seam.Lose = func(m any, key string) { m.(*Manager).engine.Lose(key) }
	seam.Events = func(m any) []journal.Event { return m.(*Manager).engine.Journal.Recent() }
}

// Close ends the Manager's work. New and waiting calls return [ErrClosed], live leases end with
// ErrClosed, and the locks are released.
//
// Close waits until Redis has confirmed the releases and the Manager's goroutines have ended: for
// at most a second (twelve round trips where Redis is far away) and until ctx is done, but for up
// to 100 ms even if ctx is already done. A goroutine that is stuck inside go-redis, or in a handler
// of the logger, ends when that call returns.
//
// Close returns nil if everything was released, and [ErrUnavailable] otherwise: the locks that are
// left expire with their TTL. Two sorts of locks expire in that way even if Close returns nil: those
// whose lease had ended at its deadline or by [WithMaxHold], and that were not unlocked, and those
// whose release was given up before Close, see [Lease.Unlock].
//
// Close may be called more than once. Every call that waits for the end returns the same result. It
// does not close the client.
func (m *Manager) Close(ctx context.Context) error {
	if err := m.check(ctx, "Close"); err != nil {
		return err
	}
	return m.engine.Close(ctx)
}

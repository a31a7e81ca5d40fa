package holdfast

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Defaults of the options.
const (
	DefaultLease        = 30 * time.Second
	DefaultPollInterval = time.Second
	DefaultHandoffSlice = 10 * time.Millisecond
	DefaultFairPatience = 5 * time.Second
)

// Option configures a Manager.
type Option interface{ apply(*config) }

// LockOption configures the locks of one handle. It is also an Option and is then
// the default of all locks of that Manager.
type LockOption interface {
	Option
	applyLock(*lockConfig)
}

// PublishMode says with which command a release is announced and heard.
type PublishMode uint8

const (
	// PublishAuto decides as Redisson does by default: PublishSharded with a
	// *redis.ClusterClient and a server that knows sharded messages (Redis 7), else
	// PublishClassic. What the server knows shows in its replies to ordinary requests:
	// nothing is sent to ask. A *redis.ClusterClient with ClusterSlots of its own, as
	// redis.NewFailoverClusterClient returns for Sentinel, does not count as one.
	PublishAuto PublishMode = iota
	// PublishClassic uses PUBLISH and SUBSCRIBE, as Redisson does before 3.22.0 and with
	// shardedSubscriptionMode OFF.
	PublishClassic
	// PublishSharded uses SPUBLISH and SSUBSCRIBE. New refuses it unless the client is
	// a *redis.ClusterClient of a cluster. With a server that does not know these commands, releases
	// by Redisson are found by polling.
	PublishSharded
)

func (m PublishMode) String() string {
	names := [...]string{"PublishAuto", "PublishClassic", "PublishSharded"}
	if int(m) >= len(names) {
		return fmt.Sprintf("PublishMode(%d)", uint8(m))
	}
	return names[m]
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

type lockOption func(*lockConfig)

func (o lockOption) apply(c *config)          { o(&c.lock) }
func (o lockOption) applyLock(lc *lockConfig) { o(lc) }

// fail keeps the first error.
func fail(to *error, option string, value any, reason string) {
	if *to == nil {
		*to = &OptionError{option, value, reason}
	}
}

// WithLease sets the TTL that a lock gets in Redis; it is renewed every d/3 until
// Unlock, so d is how long the lock outlives a holder that died. A lock that another release
// hands over has two seconds until its first renewal, 25 ms later, also if d is less. The
// default is DefaultLease; the least is 10 ms.
func WithLease(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		checkLease(&c.err, "WithLease", d)
		c.ttl, c.fixed = d, false
	})
}

// WithFixedLease sets a TTL that is never renewed: the lease ends d after it was
// asked for, less a safety margin, unless Lease.Extend prolongs it. That somebody has deleted
// the lock in Redis is what a renewal finds out; here Extend or Unlock do.
func WithFixedLease(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		checkLease(&c.err, "WithFixedLease", d)
		c.ttl, c.fixed = d, true
	})
}

func checkLease(err *error, option string, d time.Duration) {
	switch {
	case d < validity.MinTTL:
		fail(err, option, d, fmt.Sprintf("must be at least %v", validity.MinTTL))
	case d > validity.MaxTTL:
		fail(err, option, d, fmt.Sprintf("must be at most %v", validity.MaxTTL))
	}
}

// WithMaxHold ends a lease with ErrMaxHold once it has been held for d, and stops
// renewing the lock: a stuck holder cannot hold for ever. The lock stays taken in Redis until
// the holder calls Unlock or the TTL has run out: that is the time it has to stop. It has to unlock
// before Manager.Close, which leaves such a lock to its TTL. The default is no limit; d must not be
// shorter than the lease.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		if d <= 0 || d > validity.MaxTTL {
			fail(&c.err, "WithMaxHold", d, "must be positive and below 100 years")
		}
		c.maxHold = d
	})
}

// WithFencing gives each grant a fencing token, see Lease.Token. The counter is the
// one of Redisson's fenced lock; it is a key of its own without TTL.
func WithFencing() LockOption {
	return lockOption(func(c *lockConfig) { c.fencing = true })
}

// WithNameMapper renames every lock of the Manager, as Redisson's NameMapper does;
// keys and channels are built from the result. mapper must map a name always to the same one, no
// two names to one, and may be called by several goroutines at a time.
func WithNameMapper(mapper func(name string) string) Option {
	return option(func(c *config) {
		if mapper == nil {
			fail(&c.err, "WithNameMapper", nil, "WithNameMapper: mapper is nil")
			return
		}
		c.mapName = mapper
	})
}

// WithLogger sets where trouble is reported: each lost lease once, also one whose loss Unlock finds and
// returns; leases that WithMaxHold ended; releases that were given up; the beginning and the end of an
// outage; failed renewals; lost pub/sub connections. docs/OPERATIONS.md lists the lines, and how many
// of a kind become one. The default discards all. A handler that blocks delays the end of other leases, and renewals: it is called by the
// goroutines that see to them, for which Close waits, within its bounds.
func WithLogger(log *slog.Logger) Option {
	return option(func(c *config) {
		if log == nil {
			fail(&c.err, "WithLogger", nil, "WithLogger: logger is nil")
			return
		}
		c.log = log
	})
}

// WithTracerProvider sets where spans go. The default is OpenTelemetry's global
// provider, also if that is set after New.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) {
		if p == nil {
			fail(&c.err, "WithTracerProvider", nil, "WithTracerProvider: provider is nil")
		}
		c.tracer = p
	})
}

// WithMeterProvider sets where metrics go. The default is OpenTelemetry's global
// provider, also if that is set after New.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) {
		if p == nil {
			fail(&c.err, "WithMeterProvider", nil, "WithMeterProvider: provider is nil")
		}
		c.meter = p
	})
}

// WithPollInterval sets how often a process that waits for a lock asks Redis even if no message
// tells it to, which bounds how long a lost message can delay it. To keep its place in the queue it
// asks at least three times within WithFairPatience, and once in two minutes: a longer d has no effect.
// Up to a fifth is taken off at random. The default is DefaultPollInterval; the
// least is 10 ms.
func WithPollInterval(d time.Duration) Option {
	return option(func(c *config) {
		if d < 10*time.Millisecond || d > validity.MaxTTL {
			fail(&c.err, "WithPollInterval", d, "must be at least 10ms and below 100 years")
		}
		c.poll = d
	})
}

// WithHandoffSlice sets the longest time for which a process passes a Mutex, or the write
// side of an RWMutex, among its own goroutines before it lets other processes have it. Whether
// another one waits is asked when it is passed on, so a process whose sections are longer than the
// slice can let in one more of its own callers. 0 means that each Unlock gives it back to Redis. The
// default is DefaultHandoffSlice.
func WithHandoffSlice(d time.Duration) Option {
	return option(func(c *config) {
		if d < 0 || d > validity.MaxTTL {
			fail(&c.err, "WithHandoffSlice", d, "must be between 0 and 100 years")
		}
		c.slice = d
	})
}

// WithFairPatience sets for how long a waiter keeps its place in a lock's queue in Redis
// when its process is silent: each waiter of a FairMutex, and the one that stands for its
// process at the other locks. The default is DefaultFairPatience; the least is 100 ms.
func WithFairPatience(d time.Duration) Option {
	return option(func(c *config) {
		if d < 100*time.Millisecond || d > validity.MaxTTL {
			fail(&c.err, "WithFairPatience", d, "must be at least 100ms and below 100 years")
		}
		c.fairPatience = d
	})
}

// WithPublishMode sets how releases are announced to Redisson and heard from it. All programs
// that share a lock with Redisson must agree. If they do not, the lock still excludes, but
// Holdfast notices Redisson's releases only by polling, and Redisson ours only when the TTL ends.
// What Holdfast's own processes tell each other does not depend on it. The default is PublishAuto.
func WithPublishMode(mode PublishMode) Option {
	return option(func(c *config) {
		switch mode {
		case PublishAuto, PublishClassic, PublishSharded:
			c.publish = mode
		default:
			fail(&c.err, "WithPublishMode", mode, "no such mode")
		}
	})
}

// WithReplicas makes a grant wait until n replicas have acknowledged it, for at most
// timeout; the default is 0, not at all. If fewer acknowledge it, or there are fewer, the
// grant is undone: TryLock returns ErrUnavailable with a *ReplicaError, and Lock tries
// again until its context ends.
//
// It means fewer losses in fail-overs, and not safety: the promoted replica may be another
// than those that acknowledged, one may restart empty, and neither renewals nor releases
// wait for replicas. Each acquire pays a round trip to them and, while one is stalled, the
// whole timeout; a grant by another process's release is confirmed by a request of its
// own. In a cluster, locks cannot be taken while their slot moves.
//
// The timeout counts against the lease, so it must not exceed half of it, and it must be
// below the client's ReadTimeout. If the server has no WAIT, the first acquire fails.
func WithReplicas(n int, timeout time.Duration) Option {
	return option(func(c *config) {
		switch {
		case n < 0, n > 0 && timeout < time.Millisecond:
			fail(&c.err, "WithReplicas", fmt.Sprintf("%d, %v", n, timeout), "must not be negative, and needs a timeout of a millisecond or more")
		case n > 0:
			c.lock.acks = &command.Acks{Replicas: n, Timeout: timeout}
		default:
			c.lock.acks = nil
		}
	})
}

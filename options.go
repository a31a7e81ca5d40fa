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

// LockOption configures a lock. It is also an [Option]: passed to [New], it is the default of all
// locks of that Manager.
type LockOption interface {
	Option
	applyLock(*lockConfig)
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

// WithLease sets the TTL of the lock in Redis. The lease is renewed every d/3 until Unlock, so d is
// how long the lock stays held after a crash. A release that grants the lock to another process sets
// a TTL of two seconds, or the releaser's lease if that is shorter. The first renewal, 25 ms later,
// raises it to d, and does not shorten it. The default is [DefaultLease]. Minimum: 10 ms.
func WithLease(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		checkLease(&c.err, "WithLease", d)
		c.terms.TTL, c.terms.Fixed = d, false
	})
}

// WithFixedLease sets a TTL that is never renewed. The lease ends d after it was requested, less a
// safety margin, unless [Lease.Extend] prolongs it. If the key is deleted in Redis, the holder
// learns of it only from its next Extend or Unlock, because there are no renewals.
func WithFixedLease(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		checkLease(&c.err, "WithFixedLease", d)
		c.terms.TTL, c.terms.Fixed = d, true
	})
}

func checkLease(err *error, option string, d time.Duration) {
	if d < validity.MinTTL || d > validity.MaxTTL {
		fail(err, option, d, "must be between 10ms and 100 years")
	}
}

// WithMaxHold ends a lease with [ErrMaxHold] after d, and stops its renewal, so that a stuck holder
// cannot hold the lock forever. The lock itself stays held in Redis until the holder calls Unlock
// or the TTL expires, which gives the holder time to stop. [Manager.Close] does not release such a
// lock. The default is no limit. d must not be shorter than the lease.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		if d <= 0 || d > validity.MaxTTL {
			fail(&c.err, "WithMaxHold", d, "must be positive and at most 100 years")
		}
		c.terms.MaxHold = d
	})
}

// WithWait bounds how long Lock, LockAsync and [Do] wait: after d they return [ErrNotAcquired] with
// [context.DeadlineExceeded], or [ErrUnavailable] if Redis was the reason. ctx goes on, and so does the
// work under it. TryLock does not wait, and is not bounded. A [Multi] or [Redlock] waits for at most the
// smallest d of its locks, in all. The default is no limit. Minimum: 1 ms.
func WithWait(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		if d < time.Millisecond || d > validity.MaxTTL {
			fail(&c.err, "WithWait", d, "must be between 1ms and 100 years")
		}
		c.wait = d
	})
}

// WithHoldAtLeast keeps the lock taken in Redis until d after its grant, even if it is unlocked
// earlier. A job that several processes start at about the same time then runs once, however short it
// is. Closing the Manager does not free the lock either. For its caller the lease ends with Unlock. From
// then on the lock is not renewed, has a TTL of the rest, and an owner id that no process has. Waiters get it when that is over.
//
// Each caller takes such a lock from Redis, readers included, and no local hand-off shortens the time. If
// the process dies before Unlock, or the lease is lost, the lock is free when its lease ends: the job
// has not finished. A caller that gives up while the lock is being granted leaves nothing taken. Each
// lock of a [Multi] or [Redlock] stays taken by itself. If one of them is lost, the others are released
// at once. After a downgrade readers get in, and writers wait until d is over.
//
// The default is off. Minimum: 1 ms. d must not be longer than [WithFixedLease] or [WithMaxHold].
func WithHoldAtLeast(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		if d < time.Millisecond || d > validity.MaxTTL {
			fail(&c.err, "WithHoldAtLeast", d, "must be between 1ms and 100 years")
		}
		c.terms.AtLeast = d
	})
}

// WithLinger keeps a lock in the process for up to d after its last Unlock. The next caller of the process then gets the lock without
// waiting for Redis. If another process wants the lock, a script of Redis sends the holder's process a message. That process releases
// an idle lock at once, and the release grants it to the other process. Use WithLinger for locks that mostly one process takes, again
// and again. A lock that processes take in turns is seldom kept: when other processes have ended 16 idle times in a row, one Unlock in
// 32 keeps it, until a caller of the process finds it kept.
//
// What a lease promises stays as it is. Each grant has its own lease, limit ([WithMaxHold]) and larger token ([WithFencing]). An idle
// lock is renewed, and [Manager.Locks] shows it. A process that waits for a lock in use gets the lock with the Unlock of its caller, or
// when [WithHandoffSlice] is over if callers wait there too. If a message is lost, the next poll of the waiter sends another one.
//
// A TryLock of another process asks the holder, which grants the lock if it is idle, or answers that it is in use. The TryLock waits
// for the answer for 100 ms, or for eight round trips if those take longer, at most 1 s. Without an answer it is refused. It is refused
// at once if another caller waits before it, if Redis denies its process messages, or if it is for the FairMutex of that name.
//
// What changes:
//
//   - If the process dies or stands still, an idle lock stays taken until its lease ends. A process whose goroutines keep its
//     processors busy reads the message late.
//   - Redisson and older versions of Holdfast cannot ask, and their TryLock is refused. The holder looks for their waiters once a
//     slice while the lock is in use, and about once a second while it is idle. Each look is a command to Redis that no caller waits
//     for. Clients that neither queue nor listen get the lock only when it has been idle for d.
//   - Unlock of a lock that is kept does not report whether Redis answers. A lock that is lost while it is idle is dropped without an
//     error or a log line.
//   - The process keeps a pub/sub connection while it has such a lock. If Redis denies it messages, it keeps no lock.
//
// A Manager keeps at most 10,000 idle locks, and releases the one that has been idle for longest first. It also releases an idle lock
// if a caller of its own wants the lock with other options or its other side, if reserved tokens are used up, and with Close. A lease
// that [Lease.Extend] has prolonged is not kept, nor is a lock of a Manager with a [WithHandoffSlice] of 0.
//
// The default, 0, is off. FairMutex, [WithFixedLease], [WithHoldAtLeast] and [WithReplicas] exclude it: where WithLinger was passed to
// [New], they need WithLinger(0).
func WithLinger(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		if d < 0 || d > validity.MaxTTL {
			fail(&c.err, "WithLinger", d, "must be between 0 and 100 years")
		}
		c.terms.Linger = d
	})
}

// WithFencing gives each grant a fencing token: [Lease.FencingToken]. The counter is that of Redisson's
// fenced lock. It is a key of its own without TTL.
func WithFencing() LockOption {
	return lockOption(func(c *lockConfig) { c.terms.Fencing = true })
}

// WithNameMapper renames every lock of the Manager, as Redisson's NameMapper does. Keys and
// channels are built from the result. mapper must return the same result for a name each time, and
// different results for different names. Neither a name nor a result may be longer than 1 KiB.
// Several goroutines may call it at a time.
func WithNameMapper(mapper func(name string) string) Option {
	return option(func(c *config) {
		if mapper == nil {
			fail(&c.err, "WithNameMapper", nil, "WithNameMapper: mapper is nil")
			return
		}
		c.mapName = mapper
	})
}

// WithLogger sets where trouble is reported: lost leases, leases that WithMaxHold ended, releases
// that were given up, outages of Redis, failed renewals and lost pub/sub connections.
// docs/OPERATIONS.md lists the lines. A logger with [slog.DiscardHandler] turns them off.
//
// The default is [slog.Default], as it is when a line is written. It gets the lines from Warn on, and those that end what such a
// line has begun. So a program that cannot reach Redis says within seconds what it waits for, once per outage.
//
// Each lost lease has one line, even if Unlock finds the loss and returns it. Other errors that a
// call returns are not logged. The handler runs on the goroutines that renew and expire leases, so
// it must not block.
func WithLogger(log *slog.Logger) Option {
	return option(func(c *config) {
		if log == nil {
			fail(&c.err, "WithLogger", nil, "WithLogger: logger is nil")
			return
		}
		c.log = log
	})
}

// WithTracerProvider sets where spans go. The default is OpenTelemetry's global provider, even if
// that is set after New.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) {
		if p == nil {
			fail(&c.err, "WithTracerProvider", nil, "WithTracerProvider: provider is nil")
		}
		c.tracer = p
	})
}

// WithMeterProvider sets where metrics go. The default is OpenTelemetry's global provider, even if
// that is set after New.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) {
		if p == nil {
			fail(&c.err, "WithMeterProvider", nil, "WithMeterProvider: provider is nil")
		}
		c.meter = p
	})
}

// WithMetricName has metrics tell classes of locks apart. class gets the name of a lock, as given, and
// returns its class, such as "stock" for "stock:42": the attribute holdfast.class. The default is no
// attribute, because names would multiply time series. There are at most 100 classes: the locks of all
// others, and those for which class returns "", are in the class "other".
//
// class is called when a handle is made, and several goroutines may call it at a time.
func WithMetricName(class func(name string) string) Option {
	return option(func(c *config) {
		if class == nil {
			fail(&c.err, "WithMetricName", nil, "WithMetricName: function is nil")
			return
		}
		c.metricName = class
	})
}

// WithPollInterval sets how often a process with waiters sends a request although no message has
// arrived. It bounds how long a lost message can delay a waiter. A process asks at least three
// times within [WithFairPatience] and at least every two minutes, however large d is. Each interval
// is shortened by a random 0 to 20 %. The default is [DefaultPollInterval]. Minimum: 10 ms.
func WithPollInterval(d time.Duration) Option {
	return option(func(c *config) {
		if d < 10*time.Millisecond || d > validity.MaxTTL {
			fail(&c.err, "WithPollInterval", d, "must be between 10ms and 100 years")
		}
		c.poll = d
	})
}

// WithHandoffSlice sets the longest time for which a process passes a Mutex, or the write side of
// an RWMutex, among its own goroutines while another process waits. Holdfast checks for other
// processes when it passes the lock on, so a critical section that is longer than the slice may let
// in one more local caller. With 0, each Unlock releases the lock in Redis. The default is
// [DefaultHandoffSlice].
func WithHandoffSlice(d time.Duration) Option {
	return option(func(c *config) {
		if d < 0 || d > validity.MaxTTL {
			fail(&c.err, "WithHandoffSlice", d, "must be between 0 and 100 years")
		}
		c.slice = d
	})
}

// WithFairPatience sets how long a waiter keeps its place in a queue in Redis while its process is
// silent. Each waiter of a FairMutex has a place. At other locks one waiter represents its process.
// The default is [DefaultFairPatience]. Minimum: 100 ms.
func WithFairPatience(d time.Duration) Option {
	return option(func(c *config) {
		if d < 100*time.Millisecond || d > validity.MaxTTL {
			fail(&c.err, "WithFairPatience", d, "must be between 100ms and 100 years")
		}
		c.fairPatience = d
	})
}

// WithPublishMode sets how releases are announced to Redisson and heard from it. All programs that
// share a lock with Redisson must agree. If they do not, the lock still excludes, but Holdfast
// notices Redisson's releases only by polling, and Redisson notices Holdfast's only when the TTL
// ends. Messages between Holdfast's own processes do not depend on the mode. The default is
// [PublishAuto].
func WithPublishMode(mode PublishMode) Option {
	return option(func(c *config) {
		switch mode {
		case PublishAuto, PublishClassic, PublishSharded:
			c.publish = mode
		default:
			fail(&c.err, "WithPublishMode", mode, "must be PublishAuto, PublishClassic or PublishSharded")
		}
	})
}

// WithReplicas makes a grant wait until n replicas have acknowledged it, for at most timeout. The
// default, 0, disables it. If fewer replicas acknowledge the grant, it is undone: TryLock returns
// [ErrUnavailable] with a *[ReplicaError], and Lock tries again until its context ends.
//
// Fewer locks are then lost in fail-overs, but some still can be: another replica may be promoted
// than those that acknowledged, one may restart empty, and neither renewals nor releases wait for
// replicas. Each acquire pays a round trip to the replicas and, while one is stalled, the whole
// timeout. A grant by another process's release is confirmed by a request of its own. In a cluster,
// locks cannot be taken while their slot moves.
//
// The timeout counts against the lease, so it must not exceed half of the lease. It must be below
// the client's ReadTimeout. If the server has no WAIT, the first acquire fails.
func WithReplicas(n int, timeout time.Duration) Option {
	return option(func(c *config) {
		switch {
		case n < 0, n > 0 && timeout < time.Millisecond:
			fail(&c.err, "WithReplicas", fmt.Sprintf("%d, %v", n, timeout), "n must not be negative, and the timeout must be at least 1ms")
		case n > 0:
			c.lock.terms.Acks = &command.Acks{Replicas: n, Timeout: timeout}
		default:
			c.lock.terms.Acks = nil
		}
	})
}

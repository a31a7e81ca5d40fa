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

// config is what the options of New add up to.
type config struct {
	lock         lockConfig
	mapName      func(string) string
	log          *slog.Logger
	tracer       trace.TracerProvider
	meter        metric.MeterProvider
	poll         time.Duration
	slice        time.Duration
	fairPatience time.Duration
	confirm      bool          // tests: see Manager
	aside        time.Duration // likewise
	readmission  time.Duration // likewise
	publish      PublishMode
	identity     string              // app; empty: none
	metricName   func(string) string // nil: none
	err          error               // the first bad option
}

// lockConfig is what the options of a lock add up to. Its values are compared: two
// callers with equal lockConfigs can use one hold.
type lockConfig struct {
	ttl     time.Duration
	fixed   bool          // not renewed
	maxHold time.Duration // 0: none
	atLeast time.Duration // for how long the lock stays taken; 0: until it is given up
	fencing bool
	acks    *command.Acks // that a grant waits for; one for all locks of a Manager; nil: none
	err     error         // the first bad option

	// What scripts are told, boxed for argument lists; set by Manager.prepare.
	claim time.Duration // TTL of a grant to somebody else
	ms    any           // ttl in milliseconds
	waits [5]any        // how to wait, see lock_acquire.lua
	offer any           // how to hand over what was not itself handed over, see lock_release.lua
}

// Indices of lockConfig.waits. A deaf process hears no inbox.
const (
	waitNot = iota
	waitNew
	waitDeaf
	waitAgain
	waitAgainDeaf
)

// deafMark is what a deaf process adds to its patience.
const deafMark = 0.5

// prepare completes a checked lockConfig.
func (m *Manager) prepare(c *lockConfig) {
	c.claim = min(claimTTL, c.ttl)
	c.ms = validity.Milliseconds(c.ttl)
	claim, patience := validity.Milliseconds(c.claim), float64(validity.Milliseconds(m.patience))
	for i, p := range [...]float64{0, patience, patience + deafMark, -patience, -patience - deafMark} {
		c.waits[i] = fmt.Sprintf("%.1f %d %s %s", p, claim, m.counted, m.publish)
	}
	c.offer = fmt.Sprintf("%d 1 %s", claim, m.counted)
}

func defaultConfig() config {
	return config{
		lock:         lockConfig{ttl: DefaultLease},
		mapName:      func(name string) string { return name },
		log:          slog.New(slog.DiscardHandler),
		poll:         DefaultPollInterval,
		slice:        DefaultHandoffSlice,
		fairPatience: DefaultFairPatience,
		aside:        asideFor,
		readmission:  readmission,
	}
}

// check reports the first bad option, or values that exclude each other.
func (c *lockConfig) check() error {
	if c.err != nil {
		return c.err
	}
	if c.maxHold != 0 && c.maxHold < c.ttl {
		return &OptionError{"WithMaxHold", c.maxHold, fmt.Sprintf("must not be shorter than the lease of %v", c.ttl)}
	}
	if c.atLeast != 0 && c.maxHold != 0 && c.atLeast > c.maxHold {
		return &OptionError{"WithHoldAtLeast", c.atLeast, fmt.Sprintf("must not be longer than the maximum hold of %v", c.maxHold)}
	}
	if c.fixed && c.atLeast > c.ttl {
		return &OptionError{"WithHoldAtLeast", c.atLeast, fmt.Sprintf("must not be longer than the fixed lease of %v", c.ttl)}
	}
	if c.acks != nil && c.acks.Timeout > c.ttl/2 {
		return &OptionError{"WithReplicas", c.acks.Timeout, fmt.Sprintf("must not be more than half of the lease of %v", c.ttl)}
	}
	return nil
}

// patience is how long an acquire request may stay unanswered. Callers that ask once wait for the first answer of all
// for longer; others ask again.
func (c *lockConfig) patience(x *command.Executor, once bool) time.Duration {
	d := validity.Patience(c.ttl, x.RoundTrip())
	if once {
		d = max(d, min(x.FirstWithin(), c.ttl/4))
	}
	if c.acks != nil {
		d += c.acks.Timeout
	}
	return d
}

// settle checks what New was given, and decides what depends on the servers.
func (c *config) settle(servers deployment) error {
	if c.err != nil {
		return c.err
	}
	if err := c.lock.check(); err != nil {
		return err
	}
	if a := c.lock.acks; a != nil && servers.readTimeout > 0 && a.Timeout >= servers.readTimeout {
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

package holdfast

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
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
	confirm      bool          // tests: see engine.Config
	aside        time.Duration // likewise
	readmission  time.Duration // likewise
	publish      PublishMode
	identity     string              // app; empty: none
	metricName   func(string) string // nil: none
	err          error               // the first bad option
}

// lockConfig is what the options of a lock add up to.
type lockConfig struct {
	terms terms
	err   error // the first bad option
}

func defaultConfig() config {
	return config{
		lock:         lockConfig{terms: terms{ttl: DefaultLease}},
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
	if c.terms.maxHold != 0 && c.terms.maxHold < c.terms.ttl {
		return &OptionError{"WithMaxHold", c.terms.maxHold, fmt.Sprintf("must not be shorter than the lease of %v", c.terms.ttl)}
	}
	if c.terms.atLeast != 0 && c.terms.maxHold != 0 && c.terms.atLeast > c.terms.maxHold {
		return &OptionError{"WithHoldAtLeast", c.terms.atLeast, fmt.Sprintf("must not be longer than the maximum hold of %v", c.terms.maxHold)}
	}
	if c.terms.fixed && c.terms.atLeast > c.terms.ttl {
		return &OptionError{"WithHoldAtLeast", c.terms.atLeast, fmt.Sprintf("must not be longer than the fixed lease of %v", c.terms.ttl)}
	}
	if c.terms.acks != nil && c.terms.acks.Timeout > c.terms.ttl/2 {
		return &OptionError{"WithReplicas", c.terms.acks.Timeout, fmt.Sprintf("must not be more than half of the lease of %v", c.terms.ttl)}
	}
	return nil
}

// settle checks what New was given, and decides what depends on the servers.
func (c *config) settle(servers deployment) error {
	if c.err != nil {
		return c.err
	}
	if err := c.lock.check(); err != nil {
		return err
	}
	if a := c.lock.terms.acks; a != nil && servers.readTimeout > 0 && a.Timeout >= servers.readTimeout {
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

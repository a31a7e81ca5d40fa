package holdfast

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/engine"
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
	tune         []func(*engine.Config) // by tests
	publish      PublishMode
	identity     string              // app; empty: none
	page         string              // the address of the debug page; empty: none
	metricName   func(string) string // nil: none
	err          error               // the first bad option
}

// lockConfig is what the options of a lock add up to.
type lockConfig struct {
	terms engine.Terms
	err   error // the first bad option
}

func defaultConfig() config {
	return config{
		lock:         lockConfig{terms: engine.Terms{TTL: DefaultLease}},
		mapName:      func(name string) string { return name },
		log:          slog.New(slog.DiscardHandler),
		poll:         DefaultPollInterval,
		slice:        DefaultHandoffSlice,
		fairPatience: DefaultFairPatience,
	}
}

// check reports the first bad option, or values that exclude each other.
func (c *lockConfig) check() error {
	if c.err != nil {
		return c.err
	}
	if c.terms.MaxHold != 0 && c.terms.MaxHold < c.terms.TTL {
		return &OptionError{"WithMaxHold", c.terms.MaxHold, fmt.Sprintf("must not be shorter than the lease of %v", c.terms.TTL)}
	}
	if c.terms.AtLeast != 0 && c.terms.MaxHold != 0 && c.terms.AtLeast > c.terms.MaxHold {
		return &OptionError{"WithHoldAtLeast", c.terms.AtLeast, fmt.Sprintf("must not be longer than the maximum hold of %v", c.terms.MaxHold)}
	}
	if c.terms.Fixed && c.terms.AtLeast > c.terms.TTL {
		return &OptionError{"WithHoldAtLeast", c.terms.AtLeast, fmt.Sprintf("must not be longer than the fixed lease of %v", c.terms.TTL)}
	}
	if c.terms.Acks != nil && c.terms.Acks.Timeout > c.terms.TTL/2 {
		return &OptionError{"WithReplicas", c.terms.Acks.Timeout, fmt.Sprintf("must not be more than half of the lease of %v", c.terms.TTL)}
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

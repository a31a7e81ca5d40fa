package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says what is sold, to whom and where.
type Config struct {
	Buyers    int
	Stock     int           // phones
	Processes int           // that the buyers are spread over
	Hold      time.Duration // how long a purchase takes between reading and writing the stock
	Unsafe    bool          // sell without the lock
	Redis     string        // URL; "": a server inside this process
	Spawn     Spawn
}

// Spawn returns the command of a process that calls Work for s on the Redis at
// redisURL. It is made with exec.CommandContext and not started; its standard
// streams are the sale's.
type Spawn func(ctx context.Context, redisURL string, s Shift) *exec.Cmd

// Validate reports the first value that makes no sense, in the words of the flags.
func (c Config) Validate() error {
	switch {
	case c.Buyers < 1:
		return fmt.Errorf("--buyers must be at least 1, not %d", c.Buyers)
	case c.Stock < 0:
		return fmt.Errorf("--stock must not be negative, as %d is", c.Stock)
	case c.Processes < 1 || c.Processes > c.Buyers:
		return fmt.Errorf("--processes must be from 1 to the number of buyers, %d, not %d", c.Buyers, c.Processes)
	case c.Hold < 0:
		return fmt.Errorf("--hold must not be negative, as %v is", c.Hold)
	}
	if c.Redis != "" {
		if _, err := parseURL(c.Redis); err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
	}
	return nil
}

// parseURL is redis.ParseURL with an error that repeats no part of the URL: what cannot be read can be a part of a password.
func parseURL(s string) (*redis.Options, error) {
	opt, err := redis.ParseURL(s)
	if err != nil {
		return nil, errors.New("cannot be read as a URL: it begins with redis://, rediss:// or unix://, and special characters of the password are escaped")
	}
	return opt, nil
}

// Shift is the work of one process: Count buyers, numbered from First on.
type Shift struct {
	Sale    string // the sale's id
	Process int    // from 1 on
	First   int
	Count   int
	Stock   int // phones at the beginning
	Hold    time.Duration
	Unsafe  bool
}

// shifts spreads the buyers over the processes, as evenly as they go.
func (c Config) shifts(sale string) []Shift {
	all := make([]Shift, 0, c.Processes)
	first := 1
	for i := range c.Processes {
		count := c.Buyers / c.Processes
		if i < c.Buyers%c.Processes {
			count++
		}
		all = append(all, Shift{sale, i + 1, first, count, c.Stock, c.Hold, c.Unsafe})
		first += count
	}
	return all
}

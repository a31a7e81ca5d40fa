package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// class is what WithMetricName says of a lock's name, and what is counted for the locks of that class. Without it, all
// locks are of one class that has no name. A nil one counts nothing.
type class struct {
	name   string
	grants [lock.Families + 1][lock.Modes]atomic.Uint64 // by kind and mode
}

// Label is the class's name.
func (c *class) Label() string {
	if c == nil {
		return ""
	}
	return c.name
}

func (c *class) granted(k lock.Kind, how lock.Mode) {
	if c != nil {
		c.grants[k][how].Add(1)
	}
}

// classes are those of a manager.
type classes struct {
	of   func(name string) string // nil: there is one class
	only class                    // that one

	mu  sync.Mutex // guards all; a leaf in the lock order
	all map[string]*class
}

// maxClasses bounds the time series that a mistake in WithMetricName makes; otherClass has the rest.
const (
	maxClasses = 100
	otherClass = "other"
)

// get returns the class of a lock's name. No lock may be held: of is code of the user.
func (c *classes) get(name string) *class {
	if c.of == nil {
		return &c.only
	}
	label := strings.ToValidUTF8(c.of(name), "\uFFFD")
	if label == "" {
		label = otherClass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.all[label]; known != nil {
		return known
	}
	if len(c.all) >= maxClasses && label != otherClass {
		if c.all[otherClass] != nil {
			return c.all[otherClass]
		}
		label = otherClass
	}
	if c.all == nil {
		c.all = make(map[string]*class)
	}
	made := &class{name: label}
	c.all[label] = made
	return made
}

// Count counts the leases that came about in this way.
func (c *classes) Count(how lock.Mode) (n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.eachLocked() {
		for k := range one.grants {
			n += one.grants[k][how].Load()
		}
	}
	return n
}

func (c *classes) eachLocked() []*class { return append(slices.Collect(maps.Values(c.all)), &c.only) }

// Grants returns what has been counted.
func (c *classes) Grants() (counts []telemetry.Grants) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.eachLocked() {
		for k := range one.grants {
			for how := range one.grants[k] {
				if n := one.grants[k][how].Load(); n > 0 {
					counts = append(counts, telemetry.Grants{
						Key:   telemetry.GrantKey{Type: lock.Kind(k).String(), WaitMode: lock.Mode(how).String(), Class: one.name},
						Count: n,
					})
				}
			}
		}
	}
	return counts
}

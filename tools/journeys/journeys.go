package main

import (
	"fmt"
	"strings"
)

// journey is what one value passes: steps of a world, separated by commas.
type journey struct{ name, steps string }

// warmUp is before each journey: connections are there, and the scripts are loaded.
const warmUp = "lock x, unlock x, lock x, unlock x, quiet, "

var journeys = []journey{
	{"an uncontended Lock and its answer", "start, lock x"},
	{"a grant message", "hold x, begin lock x, quiet, start, give x, told"},
	{"the answer to a release", "lock x, quiet, shut, begin unlock x, held 1, start, open, told"},
	{"a renewal", "lock x, quiet, start, traffic, quiet"},
	{"a lost subscription, until each waiter has asked", "hold x, hold y, begin lock x, begin lock y, quiet, shut, start, cut, held 2"},
	{"a lingering Unlock", "lock lingering, quiet, start, unlock lingering"},
}

// take lets the journey happen in a world of its own, and returns its visits in their order.
func (j journey) take(binary string) (visits []string, err error) {
	w, err := newWorld(binary)
	if err != nil {
		return nil, err
	}
	var said string
	for _, line := range strings.Split(warmUp+j.steps+", stop", ", ") {
		if said, err = w.step(line); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return strings.Fields(said), w.end()
}

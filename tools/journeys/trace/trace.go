// Package trace records which files a program passes: the files that [tools/journeys] has put a call of In into.
package trace

import (
	"slices"
	"strings"
	"sync"
)

var (
	mu     sync.Mutex // guards the following
	on     bool
	visits []string // each a file, and the functions that were called in it: file:f,g
)

// In records that a function of file begins to run.
func In(file, function string) {
	mu.Lock()
	defer mu.Unlock()
	if !on {
		return
	}
	if last := len(visits) - 1; last >= 0 && strings.HasPrefix(visits[last], file+":") {
		visits[last] += "," + function
	} else {
		visits = append(visits, file+":"+function)
	}
}

// Start forgets what was recorded, and records from now on.
func Start() {
	mu.Lock()
	defer mu.Unlock()
	on, visits = true, nil
}

// Stop ends that, and returns the visits in their order. More calls return the same.
func Stop() []string {
	mu.Lock()
	defer mu.Unlock()
	on = false
	return slices.Clone(visits)
}

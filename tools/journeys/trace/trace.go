// Package trace records which files a program passes: the files that [tools/journeys] has put a call of In into.
package trace

import (
	"slices"
	"sync"
)

var (
	mu    sync.Mutex // guards the following
	on    bool
	stays []string
)

// In records that a function of file begins to run. What it returns is deferred, for the end of the function.
func In(file string) {
	mu.Lock()
	defer mu.Unlock()
	if on && (len(stays) == 0 || stays[len(stays)-1] != file) {
		stays = append(stays, file)
	}
}

// Start forgets what was recorded, and records from now on.
func Start() {
	mu.Lock()
	defer mu.Unlock()
	on, stays = true, nil
}

// Stop ends that, and returns the files in the order of their visits. More calls return the same.
func Stop() []string {
	mu.Lock()
	defer mu.Unlock()
	on = false
	return slices.Clone(stays)
}

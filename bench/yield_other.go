//go:build !linux

package bench

import "runtime"

// yield lets other goroutines run.
func yield() { runtime.Gosched() }

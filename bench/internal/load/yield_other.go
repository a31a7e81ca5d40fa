//go:build !linux

package load

import "runtime"

// yield lets other goroutines run.
func yield() { runtime.Gosched() }

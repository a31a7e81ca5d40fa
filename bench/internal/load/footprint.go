package load

import (
	"runtime"
	"sync"
	"time"
)

// Footprint is what the process takes.
type Footprint struct {
	Heap, Stack uint64 // bytes
	Goroutines  int
}

// FootprintNow collects garbage first. It waits a moment for goroutines that are about
// to end, and collects twice: pools keep what they hold for one cycle.
func FootprintNow() Footprint {
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Footprint{m.HeapAlloc, m.StackInuse, runtime.NumGoroutine()}
}

// GrowGoroutines has the runtime make n goroutines. It keeps their descriptors, some
// 450 bytes each, when they have ended, so without this the first scenario that needs
// many would pay for all others.
func GrowGoroutines(n int) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { <-end })
	}
	close(end)
	wg.Wait()
}

// Until returns what has come to f when there is g.
func (f Footprint) Until(g Footprint) Growth {
	return Growth{
		Heap:       float64(int64(g.Heap - f.Heap)),
		Stack:      float64(int64(g.Stack - f.Stack)),
		Goroutines: float64(g.Goroutines - f.Goroutines),
	}
}

// Growth is the difference of two footprints.
type Growth struct{ Heap, Stack, Goroutines float64 }

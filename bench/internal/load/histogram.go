package load

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets whose width is about 3% of their value. It
// is shared by all goroutines of a scenario: with thousands of them, private ones
// would cost more in cache misses than this does in contention.
type Histogram struct {
	buckets [(64 - subBits + 1) << subBits]atomic.Uint64
	longest atomic.Int64
}

const subBits = 5

// Record counts d.
func (h *Histogram) Record(d time.Duration) {
	v := uint64(max(d, 0))
	h.buckets[bucket(v)].Add(1)
	for {
		longest := h.longest.Load()
		if int64(d) <= longest || h.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// bucket returns the index of v: its leading bit and the subBits that follow.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-1-subBits, 0)
	return shift<<subBits + int(v>>shift)
}

// middle returns the middle of bucket i.
func middle(i int) time.Duration {
	if i < 2<<subBits {
		return time.Duration(i)
	}
	shift := i>>subBits - 1
	low := uint64(i-shift<<subBits) << shift
	return time.Duration(low + 1<<shift/2)
}

// Count is how many there are.
func (h *Histogram) Count() uint64 {
	var n uint64
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

// Quantile returns the duration that a share q of all is not above; 0 if there is none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, uint64(math.Ceil(q*float64(h.Count()))))
	var seen uint64
	for i := range h.buckets {
		n := h.buckets[i].Load()
		if seen += n; n > 0 && seen >= rank {
			return min(middle(i), h.Max())
		}
	}
	return 0
}

// counts are the buckets that are not empty, by index: how a histogram travels.
type counts map[int]uint64

func (h *Histogram) counts() counts {
	c := make(counts)
	for i := range h.buckets {
		if n := h.buckets[i].Load(); n > 0 {
			c[i] = n
		}
	}
	return c
}

// add puts what another process counted on top.
func (h *Histogram) add(c counts) {
	for i, n := range c {
		if i < 0 || i >= len(h.buckets) {
			continue // no duration has that bucket
		}
		h.buckets[i].Add(n)
		h.longest.Store(max(h.longest.Load(), int64(middle(i))))
	}
}

// Max is the longest.
func (h *Histogram) Max() time.Duration { return time.Duration(h.longest.Load()) }

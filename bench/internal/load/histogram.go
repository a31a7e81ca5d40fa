package load

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets whose width is about 3% of their value. It
// is shared by all goroutines of a scenario: with thousands of them, private ones
// would cost more in cache misses than this does in contention.
type histogram struct {
	buckets [(64 - subBits + 1) << subBits]atomic.Uint64
	longest atomic.Int64
}

const subBits = 5

func (h *histogram) record(d time.Duration) {
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

func (h *histogram) count() uint64 {
	var n uint64
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

// quantile returns the duration that a share q of all is not above; 0 if there is none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count()))
	var seen uint64
	for i := range h.buckets {
		n := h.buckets[i].Load()
		if seen += n; n > 0 && seen >= rank {
			return min(middle(i), h.max())
		}
	}
	return 0
}

// counts are the buckets that are not empty, by index: how a histogram travels.
type counts map[int]uint64

func (h *histogram) counts() counts {
	c := make(counts)
	for i := range h.buckets {
		if n := h.buckets[i].Load(); n > 0 {
			c[i] = n
		}
	}
	return c
}

// add puts what another process counted on top.
func (h *histogram) add(c counts) {
	for i, n := range c {
		if i < 0 || i >= len(h.buckets) {
			continue // no duration has that bucket
		}
		h.buckets[i].Add(n)
		h.longest.Store(max(h.longest.Load(), int64(middle(i))))
	}
}

func (h *histogram) max() time.Duration { return time.Duration(h.longest.Load()) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// jain is Jain's fairness index of shares: 1 if all are equal, 1/n if one has all.
func jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

package load

import (
	"math"
	"testing"
	"time"
)

func TestBucketsAreNarrowAndInOrder(t *testing.T) {
	last := -1
	for v := uint64(1); v < math.MaxInt64/2; v += v/50 + 1 {
		i := bucket(v)
		if i < last {
			t.Fatalf("bucket of %d is %d, below that of a smaller value", v, i)
		}
		last = i
		if m := float64(middle(i)); math.Abs(m-float64(v)) > .02*float64(v) {
			t.Fatalf("%d counts as %v", v, m)
		}
	}
	if i := bucket(math.MaxInt64); i >= len(Histogram{}.buckets) {
		t.Fatalf("bucket %d does not exist", i)
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{.5: 500 * time.Microsecond, .99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := h.Quantile(q); math.Abs(float64(got-want)) > .03*float64(want) {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if h.Max() != time.Millisecond {
		t.Errorf("max is %v", h.Max())
	}
	if got := new(Histogram).Quantile(.5); got != 0 {
		t.Errorf("median of nothing is %v", got)
	}
}

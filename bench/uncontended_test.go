package bench

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// BenchmarkUncontended is one goroutine with one lock without contention.
func BenchmarkUncontended(b *testing.B) {
	each(b, uncontended, func(b *testing.B, t trial) {
		ctx := context.Background()
		if t.library.Open == nil {
			m, err := uncontended.measure(ctx, t)
			if err != nil {
				b.Fatal(err)
			}
			reportMetrics(b, m)
			return
		}
		c, u, err := t.open(ctx, "uncontended", holdfast.DefaultLease)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		if err := settle(ctx, c, u); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		lat, err := pairs(ctx, "uncontended", only(c), b.Loop)
		if err != nil {
			b.Fatal(err)
		}
		m, err := lat.metrics(ctx, u)
		if err != nil {
			b.Fatal(err)
		}
		reportMetrics(b, m)
	})
}

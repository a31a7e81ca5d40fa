package bench

import (
	"context"
	"testing"
)

// BenchmarkUncontended is one goroutine with one lock that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	each(b, uncontended, func(b *testing.B, t trial) {
		ctx := context.Background()
		if t.library.open == nil {
			m, err := uncontended.measure(ctx, t)
			if err != nil {
				b.Fatal(err)
			}
			report(b, m)
			return
		}
		c, u, err := t.open(ctx, "uncontended", lease)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		if err := settle(ctx, c, u); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		lat, err := pairs(ctx, c, b.Loop)
		if err != nil {
			b.Fatal(err)
		}
		m, err := lat.metrics(ctx, u)
		if err != nil {
			b.Fatal(err)
		}
		report(b, m)
	})
}

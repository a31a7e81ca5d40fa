package bench

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// BenchmarkReentry is an owner that locks again what it holds.
func BenchmarkReentry(b *testing.B) {
	each(b, reentry, func(b *testing.B, t trial) {
		ctx := context.Background()
		c, u, err := t.open(ctx, "reentry", holdfast.DefaultLease)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		if err := settle(ctx, c, u); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		if err := reenter(ctx, c, b.Loop); err != nil {
			b.Fatal(err)
		}
		sent, err := u.SoFar(ctx)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(sent.Commands-2)/float64(b.N), unitCommands) // without the lock itself
	})
}

package load

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// All of these libraries take a free lock, and give it back, with one command each.
func TestCommandsOfAPair(t *testing.T) {
	for _, l := range contender.InGo() {
		t.Run(l.Name, func(t *testing.T) {
			const n = 20
			ctx := t.Context()
			if err := testServer.Reset(ctx); err != nil {
				t.Fatal(err)
			}
			c, err := l.Open(testServer.Address(), holdfast.DefaultLease)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			pairs := func(n int) {
				for range n {
					if err := contender.Pair(ctx, c, "commands"); err != nil {
						t.Fatal(err)
					}
				}
			}
			pairs(100) // until connections have been opened and tried
			u, err := testServer.Usage(ctx, l.Direct)
			if err != nil {
				t.Fatal(err)
			}
			pairs(n)
			sent, err := u.SoFar(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want := int64(2 * n)
			if l.Name == contender.Lingering {
				return // its pairs are no commands, but for a question now and then: see the scenario linger
			}
			if sent.Commands != want {
				t.Errorf("%d commands for %d pairs, want %d", sent.Commands, n, want)
			}
			if h, ok := c.(*contender.Holdfast); ok {
				// Its own count has the warm-up in it.
				if own := h.Manager.Stats().Commands; own < uint64(sent.Commands) {
					t.Errorf("Redis counts %d commands, Stats %d", sent.Commands, own)
				}
			}
		})
	}
}

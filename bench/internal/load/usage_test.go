package load

import "testing"

// All of these libraries take a free lock, and give it back, with one command each, but
// for the recipe that forgets the expiry in the first.
func TestCommandsOfAPair(t *testing.T) {
	for _, l := range inGo() {
		t.Run(l.name, func(t *testing.T) {
			const n = 20
			ctx := t.Context()
			c, u, err := trial{server: testServer, library: l}.open(ctx, "commands", lease)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			// Until connections have been opened and tried.
			if err := settle(ctx, c, u); err != nil {
				t.Fatal(err)
			}
			for range n {
				if err := pair(ctx, c, "commands"); err != nil {
					t.Fatal(err)
				}
			}
			sent, err := u.soFar(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want := int64(2 * n)
			if l.name == "r2-expire" {
				want = 3 * n
			}
			if sent.commands != want {
				t.Errorf("%d commands for %d pairs, want %d", sent.commands, n, want)
			}
			if h, ok := c.(*holdfastContender); ok {
				// Its own count has the warm-up in it.
				if own := h.manager.Stats().Commands; own < uint64(sent.commands) {
					t.Errorf("Redis counts %d commands, Stats %d", sent.commands, own)
				}
			}
		})
	}
}

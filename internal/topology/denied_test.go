package topology

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A channel that is denied is asked for again after pauses. Others of the same master are heard meanwhile, and no
// connection ends because of it.
func TestPublish_OneChannelIsForbidden(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	f := newForeigner(t, c, holdfast.PublishAuto)
	permit(t, c.Nodes(), "some", strings.Fields("resetchannels on >secret ~* +@all &holdfast_* &redisson_*{fine*"))
	client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "some", "secret" })
	pauses := make(pausesLogged, 1000)
	m := manager(t, client, append(unpolled, holdfast.WithLogger(slog.New(pauses)))...)
	var fine []string
	for i := 0; len(fine) < 5; i++ {
		if n := fmt.Sprint("fine", i); c.Owner(n) == c.Owner(name) {
			fine = append(fine, n)
		}
	}
	got := make(map[string]<-chan *holdfast.Lease)
	for _, n := range append(fine, name) {
		f.lock(n)
		got[n] = wait(t, m, n)
	}
	for most := time.Duration(0); most < time.Second/2; {
		select {
		case d := <-pauses:
			most = max(most, d)
		case <-time.After(patience):
			t.Fatalf("no pause was longer than %v", most)
		}
	}
	for _, n := range fine {
		f.awaitListeners(n, 1)
		f.unlock(n)
		locktest.MustUnlock(t, <-got[n])
		delete(got, n)
	}
	redistest.WantMost(t, m.Stats().Reconnects, 0, "%d reconnections")
	f.unlock(name)
	permit(t, c.Nodes(), "some", strings.Fields("on >secret ~* +@all &*"))
	for _, g := range got {
		locktest.MustUnlock(t, <-g)
	}
}

// pausesLogged is a log handler that passes on how long the subscriber waits.
type pausesLogged chan time.Duration

func (pausesLogged) Enabled(context.Context, slog.Level) bool { return true }
func (p pausesLogged) WithAttrs([]slog.Attr) slog.Handler     { return p }
func (p pausesLogged) WithGroup(string) slog.Handler          { return p }

func (p pausesLogged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "retry_in" {
			p <- a.Value.Duration()
		}
		return true
	})
	return nil
}

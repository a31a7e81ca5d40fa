package command

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestLag(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		takes, quick := time.Duration(0), make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			if takes < 0 {
				<-quick
			}
			time.Sleep(takes)
			echo(ctx, cmd)
		}
		want := func(when string, lag time.Duration) {
			t.Helper()
			synctest.Wait()
			if got := x.Lag("k"); got != lag {
				t.Errorf("%s: %v, want %v", when, got, lag)
			}
		}
		ask := func() chan Reply { return submit(t, x, "k", time.Hour).replies }
		want("nothing was asked", 0)
		takes = 20 * time.Millisecond
		<-ask()
		want("the answer took its time", takes)
		takes = -1
		silent := ask()
		time.Sleep(10 * time.Millisecond)
		want("not silent for longer than the answer before took", 20*time.Millisecond)
		time.Sleep(90 * time.Millisecond)
		want("silent", 100*time.Millisecond)
		takes = time.Millisecond
		<-ask()
		want("one sent later was answered: the connection was dead", time.Millisecond)
		close(quick)
		<-silent
		want("what was sent before ends late", time.Millisecond)
	})
}

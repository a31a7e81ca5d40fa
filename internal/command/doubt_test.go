package command

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A server that stands still while many calls are outstanding is asked by one new connection whether it lives, and
// then again after pauses that grow. No call is sent twice, and no handler is told that connections are dead.
func TestDoubt_SilentServerIsNotFlooded(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	x := New(p.Client(t))
	defer stop(t, x)
	<-call(t, x, countScript, "first")[0].replies
	p.Freeze(true)
	var keys []string
	for i := range 300 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	outcomes := call(t, x, countScript, keys...)
	last := submit(t, x, "overdue", 2*time.Second)
	<-last.overdue
	for i, o := range append(outcomes, last) {
		if len(o.stranded) > 0 {
			t.Errorf("call %d was stranded, although the server answers nobody", i)
		}
	}
	p.Freeze(false)
	for i, o := range append(outcomes, last) {
		if r := <-o.replies; r.Outcome != lock.Answered || i < len(outcomes) && r.Value != int64(1) {
			t.Errorf("call %d: %v, %v, %v", i, r.Value, r.Outcome, r.Err)
		}
	}
	redistest.WantMost(t, p.Count(redistest.Command("ping")), 8, "%d PINGs in two seconds of silence")
}

// warms calls Warm when its call is answered, and goes on when the first connection is being made.
type warms struct {
	*outcome
	x     *Executor
	opens func()
}

func (w warms) Replied(c *Call, r Reply) {
	w.x.Warm(context.Background())
	w.opens()
	w.outcome.Replied(c, r)
}

// Warm knows the round trip, which the first answer has shown: where Redis is far away, it does not close the
// connections that it opens because they take long.
func TestWarm_FarAway(t *testing.T) {
	p := redistest.Start(t).Proxy(t)
	client := p.Client(t)
	x := New(client)
	defer stop(t, x)
	hello := redistest.Command("hello")
	p.Delay(350*time.Millisecond, 0)
	o := newOutcome()
	x.Submit(time.Now(), &Call{Script: countScript, Args: countScript.Args(1, "k"), Patience: time.Minute, Handler: warms{o, x, func() {
		before := p.Count(hello)
		redistest.Eventually(t, redistest.Patience, "a connection is made", func() bool { return p.Count(hello) > before })
	}}})
	<-o.replies
	redistest.Eventually(t, redistest.Patience, "all are there", func() bool { return client.PoolStats().PipelineStats.IdleConns >= spares })
	if s := client.PoolStats(); s.TotalConns > 0 {
		t.Errorf("%d connections of the pool for single commands", s.TotalConns)
	}
}

// One dead connection among others: the others are not closed.
func TestDoubt_LivingConnectionsStay(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	client := p.Client(t)
	x := New(client)
	defer stop(t, x)
	for range 3 {
		x.Warm(t.Context())
	}
	<-call(t, x, countScript, "first")[0].replies
	stats := client.PoolStats().PipelineStats
	p.SwallowReply(redistest.Containing("swallowed"), 1)
	o := call(t, x, countScript, "swallowed")[0]
	<-o.stranded
	if r := <-call(t, x, countScript, "next")[0].replies; r.Outcome != lock.Answered {
		t.Errorf("%v, %v", r.Outcome, r.Err)
	}
	if now := client.PoolStats().PipelineStats; now.StaleConns != stats.StaleConns {
		t.Errorf("%d connections were closed", now.StaleConns-stats.StaleConns)
	}
}

// The least of the latest batches is the round trip: one that took long, since it dialled or the server stood still,
// does not count.
func TestTrips_LeastOfTheLatest(t *testing.T) {
	var trips trips
	redistest.Want(t, trips.least(), 0, "%v before the first")
	for i, tc := range []struct{ took, want time.Duration }{
		{6250, 6250}, {1250, 1250}, {5000, 1250}, {1300, 1250}, {1400, 1250},
		{1500, 1300}, {1600, 1300}, {1700, 1400}, // the server has moved away
		{2, 2}, {5000, 2}, {5000, 2}, {5000, 2},
	} {
		trips.add(tc.took)
		if d := trips.least(); d != tc.want {
			t.Errorf("%d: after %d the round trip is %d, want %d", i, tc.took, d, tc.want)
		}
	}
}

package command

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// one gives a client one connection for all requests.
func one(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 1, -1 }

// known returns an executor that knows how far away its server is.
func known(t *testing.T, p *redistest.Proxy, change func(*redis.Options)) *Executor {
	t.Helper()
	x := New(p.ClientWith(t, change))
	for range len(trips{}.latest) {
		<-call(t, x, countScript, "first")[0].replies
	}
	return x
}

// repeated submits a call, and another one each time that it is stranded. It returns the first answer.
func repeated(t *testing.T, x *Executor, key string) Reply {
	t.Helper()
	for range 20 {
		o := submit(t, x, key, time.Minute)
		select {
		case <-o.stranded:
		case <-o.overdue:
			t.Fatal("it gets no turn")
		case r := <-o.replies:
			select {
			case <-o.stranded: // before that
			default:
				return r
			}
		}
	}
	t.Fatal("always stranded")
	return Reply{}
}

// The requests that wait for as long as the client's read timeout do not take all turns of its pools.
func TestTurns_HalfAreForTheHurried(t *testing.T) {
	for _, tc := range []struct {
		client              Client
		turns               int
		busy, stuck, silent int // silent: of the stuck ones, those that are not stranded
		hurried             bool
	}{
		{redis.NewClient(&redis.Options{PoolSize: 1, PipelinePoolSize: -1}), 1, 1, 0, 0, true},
		{redis.NewClient(&redis.Options{PoolSize: 1, PipelinePoolSize: 1}), 2, 1, 0, 0, false},
		{redis.NewClient(&redis.Options{PoolSize: 1, PipelinePoolSize: 1}), 2, 2, 0, 0, true},
		{redis.NewClient(&redis.Options{PoolSize: 1, PipelinePoolSize: 1}), 2, 2, 1, 1, true},
		{redis.NewClient(&redis.Options{PoolSize: 1, PipelinePoolSize: 1}), 2, 2, 1, 0, true},
		{redis.NewClient(&redis.Options{PoolSize: 1}), 11, 5, 1, 0, false},
		{redis.NewClient(&redis.Options{PoolSize: 1}), 11, 6, 2, 0, true},
		{redis.NewClient(&redis.Options{PoolSize: 1}), 11, 10, 9, 9, false},
		{redis.NewClient(&redis.Options{PoolSize: 1}), 11, 11, 10, 10, true},
		{redis.NewClient(&redis.Options{PoolSize: 50}), 60, 12, 8, 0, false},
		{redis.NewClient(&redis.Options{PoolSize: 50}), 60, 13, 9, 0, true},
		{redis.NewClient(&redis.Options{PoolSize: 50}), 60, 16, 12, 12, false},
		{redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}), maxStranded, 4, 0, 0, false},
	} {
		x := New(tc.client)
		redistest.Want(t, x.turns, tc.turns, "%d turns, want %d")
		s := &shard{x: x, busy: make(map[*lane]struct{}), stuck: tc.stuck, stranded: tc.stuck - tc.silent}
		for range tc.busy {
			s.busy[&lane{}] = struct{}{}
		}
		if got := s.withinLocked() > 0; got != tc.hurried {
			t.Errorf("%+v: hurried: %v", tc, got)
		}
	}
}

// A server that stands still is not flooded by a client that has one connection: it gets a request again after
// pauses that double.
func TestTurns_SilentServerIsNotFlooded(t *testing.T) {
	t.Parallel()
	p := redistest.Start(t).Proxy(t)
	x := known(t, p, one)
	defer stop(t, x)
	p.Freeze(true)
	for want := turnAtMost; want <= 4*turnAtMost; want *= 2 {
		began := time.Now()
		<-submit(t, x, "k", time.Minute).stranded
		if d := time.Since(began); d < want {
			t.Errorf("stranded after %v, want %v", d, want)
		}
	}
	p.Freeze(false)
	if r := repeated(t, x, "k"); r.Outcome != lock.Answered {
		t.Errorf("%v, %v", r.Outcome, r.Err)
	}
}

// A server that is farther away than it was, as after a fail-over to another region, is given the time that it takes.
func TestTurns_ServerThatHasMovedAway(t *testing.T) {
	t.Parallel()
	p := redistest.Start(t).Proxy(t)
	x := known(t, p, one)
	defer stop(t, x)
	p.Delay(turnAtMost*2/3, 0)
	if r := repeated(t, x, "k"); r.Outcome != lock.Answered {
		t.Fatalf("%v, %v", r.Outcome, r.Err)
	}
	// Then it is known. A repetition that begins before the lane with the dead connection has let go of its batch says nothing of that.
	for n := 0; x.RoundTrip() < turnAtMost*2/3 && n < 10*len(trips{}.latest); n++ {
		repeated(t, x, "k")
	}
	o := submit(t, x, "k", time.Minute)
	if r := <-o.replies; r.Outcome != lock.Answered || len(o.stranded) > 0 {
		t.Errorf("%v, %v", r.Outcome, r.Err)
	}
}

// How long a request waits for a turn says nothing of how far away the server is.
func TestTurns_WaitIsNoRoundTrip(t *testing.T) {
	t.Parallel()
	p := redistest.Start(t).Proxy(t)
	x := known(t, p, one)
	defer stop(t, x)
	for range 2 * len(trips{}.latest) {
		p.Forget()
		repeated(t, x, "k")
	}
	redistest.WantMost(t, x.RoundTrip(), turnAtMost/2, "the round trip is %v")
}

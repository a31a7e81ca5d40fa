package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// `make soak` sets the sizes of AC-97 and AC-98: 100,000 and 1,000,000.
var (
	soakCycles = flag.Int("cycles", 4_000, "lock and cancel cycles of TestSoak, per kind")
	soakNames  = flag.Int("names", 20_000, "distinct names of TestSoak, per kind")
)

// mostHeap is what may be left on the heap, whatever the number of cycles or names.
const mostHeap = 1 << 20

// soakTTL is the lease of all locks, and for how long Redis keeps a semaphore that is not used.
const soakTTL = time.Minute

// patience is how long anything of it may take.
const patience = 30 * time.Second

// election is the kind of a seat, whose lock is taken by Campaign and given back by Resign, and record begins the key of what the leader says.
var election = Kind{Name: "election", Fenced: true}

const record = "holdfast_leader:"

// soak is two managers that are used a lot, stand in each other's way, and must forget
// all of it.
type soak struct {
	*testing.T
	srv      *redistest.Server
	clients  [2]*redis.Client
	managers [2]*holdfast.Manager
	kind     *Kind
	idle     goleak.Option // the goroutines from before there was a manager
	rows     *[]string     // of the table in docs/internals/VERIFICATION.md
}

// Every way into a lock and out of it, many times: nothing stays.
func TestSoak_CyclesLeaveNothing(t *testing.T) {
	forKinds(t, "soak-cycles", append(slices.Clone(Kinds), election), func(s *soak) {
		cycle := func(rng *rand.Rand, n int) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(3*time.Millisecond))))
			defer cancel()
			give, err := s.take(ctx, s.managers[n%2], rng)
			if err == nil {
				err = unlock(give)
			}
			if err != nil && !errors.Is(err, holdfast.ErrNotAcquired) && !errors.Is(err, context.DeadlineExceeded) {
				s.Error(err)
			}
		}
		s.leavesNothing(8, *soakCycles/10, *soakCycles, cycle)
	})
}

// A name that is not in use costs nothing, but for the few thousand that a manager keeps. The first round fills that room.
func TestSoak_NamesAreForgotten(t *testing.T) {
	forKinds(t, "soak-names", Kinds, func(s *soak) {
		s.leavesNothing(64, *soakNames, *soakNames, func(_ *rand.Rand, n int) {
			lease, err := s.lock(s.managers[n%2], n, 1).Lock(context.Background())
			if err == nil {
				err = unlock(lease.Unlock)
			}
			redistest.Check(s, err)
		})
	})
}

// lock returns the n-th lock, or of a semaphore so many permits.
func (s *soak) lock(m *holdfast.Manager, n, many int) holdfast.Locker {
	name := fmt.Sprintf("soak:%d", n)
	if s.kind.Permits > 0 {
		return permits(many)(m, name, holdfast.WithIdleTTL(soakTTL))
	}
	return s.kind.Exclusive(m, name)
}

// take takes one of three locks, some permits of a semaphore, or a seat, and returns what gives that back.
func (s *soak) take(ctx context.Context, m *holdfast.Manager, rng *rand.Rand) (give func(context.Context) error, err error) {
	n := rng.IntN(3)
	if s.kind.Name == election.Name {
		term, err := m.Election(fmt.Sprintf("soak:%d", n)).Campaign(ctx, "soak")
		if errors.Is(err, holdfast.ErrUnavailable) && ctx.Err() != nil {
			err = ctx.Err() // Redis has not confirmed the value in time
		}
		return term.Resign, err
	}
	l := s.lock(m, n, 1+rng.IntN(allPermits))
	if s.kind.Shared != nil && rng.IntN(2) == 0 {
		l = s.kind.Shared(m, fmt.Sprintf("soak:%d", n))
	}
	ask := l.Lock
	if rng.IntN(3) == 0 {
		ask = l.TryLock
	}
	lease, err := ask(ctx)
	return lease.Unlock, err
}

// unlock returns how the release ended, on a slow machine not in the second that Unlock, or Resign,
// waits for that.
func unlock(give func(context.Context) error) error {
	err := give(context.Background())
	for end := time.Now().Add(patience); errors.Is(err, holdfast.ErrUnavailable) && time.Now().Before(end); {
		err = give(context.Background())
	}
	return err
}

// forKinds runs one kind after the other, since figures of the heap bear no company, and
// writes what came of it into the table.
func forKinds(t *testing.T, table string, kinds []Kind, run func(*soak)) {
	rows := []string{"| kind | times | took | growth of the heap |", "|---|---|---|---|"}
	defer func() {
		if !t.Failed() {
			publish(t, table, strings.Join(rows, "\n"))
		}
	}()
	for i := range kinds {
		t.Run(kinds[i].Name, func(t *testing.T) {
			srv := redistest.Start(t)
			srv.Keys() // its connection is the test's own
			idle := goleak.IgnoreCurrent()
			s := &soak{T: t, srv: srv, kind: &kinds[i], idle: idle, rows: &rows}
			for i := range s.managers {
				// How many connections are open depends on the machine; they are not what is looked for.
				s.clients[i] = srv.ClientWith(t, func(o *redis.Options) {
					o.ReadBufferSize, o.WriteBufferSize = 4096, 4096
					o.PipelineReadBufferSize, o.PipelineWriteBufferSize = 4096, 4096 // else 256 KB each
				})
				// Nothing is over by itself, and a release has a second to be answered.
				m, err := holdfast.New(s.clients[i], holdfast.WithLease(soakTTL))
				redistest.Must(t, err)
				s.managers[i] = m
			}
			run(s)
		})
	}
}

// leavesNothing runs f in so many goroutines, first for what is made once (pools, buffers, the scripts), then so often, and looks.
func (s *soak) leavesNothing(goroutines, first, times int, f func(rng *rand.Rand, n int)) {
	round := func(from, to int) {
		var wg sync.WaitGroup
		for g := range goroutines {
			rng := rand.New(rand.NewPCG(uint64(g), uint64(from)))
			wg.Go(func() {
				for n := from + g; n < to; n += goroutines {
					f(rng, n)
				}
			})
		}
		wg.Wait()
		s.quiet()
	}
	round(0, first)
	before := heap()
	begin := time.Now()
	round(first, first+times)
	took := time.Since(begin)
	grown := heap() - before
	s.Logf("%d times in %v: the heap has grown by %d bytes", times, took.Round(time.Millisecond), grown)
	s.Attr("H6:bytes", fmt.Sprint(grown))
	*s.rows = append(*s.rows, fmt.Sprintf("| %s | %d | %v | %d bytes |", s.kind.Name, times, took.Round(100*time.Millisecond), grown))
	redistest.WantMost(s, grown, mostHeap, "the heap has grown by %d bytes, want at most %d")
	for i, m := range s.managers {
		redistest.Check(s, m.Close(context.Background()))
		redistest.Check(s, s.clients[i].Close())
	}
	redistest.Check(s, redistest.Leaked(s.idle))
	s.nothingOnTheServer()
}

// quiet waits until the managers know of nothing any more.
func (s *soak) quiet() {
	s.Helper()
	redistest.Eventually(s, patience, "the managers know of nothing", func() bool {
		left := 0
		for _, m := range s.managers {
			st := m.Stats()
			left += st.Held + st.Waiting + st.Locks
		}
		return left == 0
	})
}

// nothingOnTheServer looks for keys, subscriptions and connections.
func (s *soak) nothingOnTheServer() {
	s.Helper()
	ctx, admin := context.Background(), s.srv.Admin()
	if s.kind.Permits > 0 { // their numbers are left, for a minute: no permit is lost or made
		redistest.Check(s, admin.Eval(ctx, takeNumbers, nil, s.kind.Permits).Err())
	}
	keys := slices.DeleteFunc(s.srv.Keys(), func(k string) bool {
		return strings.HasPrefix(k, locktest.Tokens) || strings.HasPrefix(k, locktest.Tombstones) || strings.HasPrefix(k, record)
	})
	if len(keys) > 0 {
		s.Errorf("%d keys are left, such as %q", len(keys), keys[0])
	}
	s.srv.RequireTTLs(s, locktest.Tokens)
	if channels := admin.PubSubChannels(ctx, "*").Val(); len(channels) > 0 {
		s.Errorf("subscribed: %q", channels)
	}
	if list := admin.ClientList(ctx).Val(); strings.Count(list, "\n") > 1 {
		s.Errorf("connections are left beside the test's own:\n%s", list)
	}
}

// takeNumbers deletes the numbers of semaphores of which all permits are available.
const takeNumbers = `for _, k in ipairs(redis.call('keys', 'soak:*')) do
  if redis.call('get', k) ~= ARGV[1] or redis.call('pttl', k) < 0 then
    return redis.error_reply('of ' .. k .. ' are available: ' .. redis.call('get', k) .. ', for ms: ' .. redis.call('pttl', k))
  end
  redis.call('del', k)
end
return 1`

// heap is what is in use when the collector has been through.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

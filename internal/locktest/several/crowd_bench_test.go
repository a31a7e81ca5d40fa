package several

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// BenchmarkRedlock_Contended shows what a dead minority costs callers who all want the lock: how many
// grants a second they get while all members are well, how many with a member down, after the two
// seconds that they have to find out, and how many of those the caller with the fewest gets.
func BenchmarkRedlock_Contended(b *testing.B) {
	for name, o := range outages {
		for _, r := range []rush{
			{members: 3, dead: []int{0}, callers: 5, work: 5 * time.Millisecond},
			{members: 3, dead: []int{1}, callers: 5, work: 5 * time.Millisecond},
			{members: 3, dead: []int{2}, callers: 2, work: 20 * time.Millisecond, pause: 20 * time.Millisecond},
			{members: 5, dead: []int{0, 2}, callers: 20, work: 5 * time.Millisecond},
			{members: 3, dead: []int{0}, callers: 5, work: 5 * time.Millisecond, together: true},
		} {
			b.Run(fmt.Sprintf("%s/%v", name, r), func(b *testing.B) { r.run(b, o.down, o.up) })
		}
	}
}

// rush is callers who want one Redlock at the same time.
type rush struct {
	members     int
	dead        []int
	callers     int
	work, pause time.Duration
	together    bool // in one process, with the same managers
}

func (r rush) String() string {
	s := fmt.Sprintf("members=%d/dead=%v/callers=%d/work=%v", r.members, r.dead, r.callers, r.work)
	if r.pause > 0 {
		s += fmt.Sprintf("/pause=%v", r.pause)
	}
	if r.together {
		s += "/together"
	}
	return s
}

func (r rush) run(b *testing.B, down, up func(*redistest.Server, *redistest.Proxy)) {
	all := Servers(b, r.members)
	var proxies []*redistest.Proxy
	for _, srv := range all {
		proxies = append(proxies, srv.Proxy(b))
	}
	newCandidate := func() Candidate {
		var clients []*redis.Client
		for _, p := range proxies {
			clients = append(clients, p.Client(b))
		}
		return CandidateOn(b, clients, Mutexes)
	}
	grants := make([]atomic.Int64, r.callers)
	var inside atomic.Int32
	ctx, cancel := context.WithCancel(b.Context())
	var callers sync.WaitGroup
	shared := newCandidate()
	for i := range r.callers {
		c := shared
		if !r.together && i > 0 {
			c = newCandidate()
		}
		callers.Go(func() {
			for ctx.Err() == nil {
				lease, err := c.Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						b.Errorf("Lock: %v", err)
					}
					return
				}
				if inside.Add(1) != 1 {
					b.Error("two are inside")
				}
				time.Sleep(r.work)
				inside.Add(-1)
				grants[i].Add(1)
				_ = lease.Unlock(b.Context()) // a release that is not confirmed goes on
				time.Sleep(r.pause)
			}
		})
	}
	rate := func(d time.Duration) (all, least float64) {
		d = brief(d)
		before := make([]int64, len(grants))
		for i := range grants {
			before[i] = grants[i].Load()
		}
		begun := time.Now()
		time.Sleep(d)
		took := time.Since(begun).Seconds()
		least = -1
		for i := range grants {
			n := float64(grants[i].Load()-before[i]) / took
			if all += n; least < 0 || n < least {
				least = n
			}
		}
		return all, least
	}
	var healthy, faulty, least float64
	for b.Loop() {
		rate(200 * time.Millisecond) // connections are made
		healthy, _ = rate(time.Second)
		for _, i := range r.dead {
			down(all[i], proxies[i])
		}
		rate(2 * time.Second)
		faulty, least = rate(2 * time.Second)
		for _, i := range r.dead {
			up(all[i], proxies[i])
		}
	}
	cancel()
	callers.Wait()
	b.ReportMetric(healthy, "healthy-grants/s")
	b.ReportMetric(faulty, "faulty-grants/s")
	b.ReportMetric(faulty/healthy, "faulty/healthy")
	b.ReportMetric(least, "least-grants/s")
}

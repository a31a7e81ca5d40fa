package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Many waiters of a fair lock in several processes, which end together.

// crowdRole is a process with callers that wait for the fair lock a. Its arguments are the address and the password of
// the server and how many callers there are. Told "leave" it ends their context, told "close" it closes the manager;
// it says when it has done so.
const crowdRole = "fair-crowd"

func crowdProcess(args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := must(holdfast.New(redis.NewClient(&redis.Options{Addr: args[0], Password: args[1]})))
	var all []<-chan holdfast.Result
	for range must(strconv.Atoi(args[2])) {
		all = append(all, m.FairMutex("a").LockAsync(ctx))
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		granted := 0
		switch lines.Text() {
		case "leave":
			cancel()
			for _, r := range all {
				if got := <-r; got.Err == nil {
					granted++
				}
			}
			fmt.Println("left", granted)
		case "close":
			fmt.Println("closed", m.Close(context.Background()))
		}
	}
}

// leavers are the waiters, who stand in the queue while others hold that lock and another one.
type leavers struct {
	srv       *redistest.Server
	held      *holdfast.Lease // of the lock that they wait for
	other     *holdfast.Lease
	processes []*redistest.Process
}

// startLeavers starts processes with n waiters in all.
func startLeavers(tb testing.TB, processes, n int, lease time.Duration) *leavers {
	tb.Helper()
	srv := redistest.Start(tb)
	m := locktest.ManagerOn(tb, srv)
	c := &leavers{srv: srv, held: locktest.MustLock(tb, m.FairMutex("a")), other: locktest.MustLock(tb, m.Mutex("other", holdfast.WithLease(lease)))}
	for range processes {
		c.processes = append(c.processes, redistest.StartProcess(tb, crowdRole, srv.Addr(), srv.Password(), strconv.Itoa(n/processes)))
	}
	redistest.Eventually(tb, time.Minute, "all stand in the queue", func() bool { return c.standing() == n })
	return c
}

func (c *leavers) standing() int {
	return int(c.srv.Admin().LLen(context.Background(), queueOfA).Val())
}

// leave has all leave and close, and returns how long the queue took to become empty.
func (c *leavers) leave(tb testing.TB) (empty time.Duration) {
	tb.Helper()
	began := time.Now()
	for _, p := range c.processes {
		p.Send("leave")
	}
	redistest.Eventually(tb, time.Minute, "all have left", func() bool { return c.standing() == 0 })
	empty = time.Since(began)
	for _, p := range c.processes {
		p.Send("close")
		if granted := p.Expect(tb, "left "); granted != "0" {
			tb.Errorf("%s were granted a lock that another one held", granted)
		}
		if err := p.Expect(tb, "closed "); err != "<nil>" {
			tb.Errorf("Close: %s", err)
		}
	}
	return empty
}

// None of them stays in the queue, each manager can be closed, and the holder of a lock keeps it.
func TestFair_ProcessesLeaveTogether(t *testing.T) {
	c := startLeavers(t, 4, 4000, 10*time.Second)
	c.leave(t)
	if n := c.srv.Admin().Exists(t.Context(), queueOfA, timesOfA).Val(); n != 0 {
		t.Errorf("%d keys of the queue are left", n)
	}
	locktest.MustUnlock(t, c.other)
	locktest.MustUnlock(t, c.held)
}

// BenchmarkFair_ProcessesLeaveTogether shows for how long 16,000 waiters who leave together keep the server from
// others. A PING is sent every millisecond, as far as this process gets the CPU. Another lock has a lease of a second:
// other-lost is 1 if that lease ended. It can, because the holder is in this process, and a busy machine keeps the CPU from it too.
func BenchmarkFair_ProcessesLeaveTogether(b *testing.B) {
	for _, processes := range []int{1, 2, 4} {
		b.Run(strconv.Itoa(processes), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := startLeavers(b, processes, multitude(), time.Second)
				report := watched(b, c.srv)
				stop := pings(c.srv)
				b.StartTimer()
				b.ReportMetric(c.leave(b).Seconds()*1e3, "empty-ms")
				b.ReportMetric(quantile(stop(), 1)*1e3, "longest-ping-ms")
				report()
				b.StopTimer()
				lost := 0.0
				if err := c.other.Unlock(b.Context()); errors.Is(err, holdfast.ErrLeaseLost) {
					lost = 1
				} else if err != nil {
					b.Error(err)
				}
				b.ReportMetric(lost, "other-lost")
				locktest.MustUnlock(b, c.held)
				b.StartTimer()
			}
		})
	}
}

// pings sends a PING every millisecond until stop is called, which returns how long each took.
func pings(srv *redistest.Server) (stop func() []time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	took := make(chan []time.Duration)
	go func() {
		var all []time.Duration
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			begun := time.Now()
			srv.Admin().Ping(context.Background())
			all = append(all, time.Since(begun))
		}
		took <- all
	}()
	return func() []time.Duration {
		cancel()
		return <-took
	}
}

// must returns v, in a process that a test started.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// quantile is in seconds.
func quantile(all []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds()
}

// multitude is how many wait in the largest queues. That each benchmark still works shows with fewer.
func multitude() int {
	if redistest.Quick() {
		return 2000
	}
	return 16_000
}

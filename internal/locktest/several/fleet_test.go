package several

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Callers of one Redlock in several processes. Another Redis server, the register, counts their grants
// and finds two that are inside at the same time.

// callersRole is a process with some callers who lock and unlock until its input ends. Its arguments
// are its name, the number of callers, how long they stay inside, the address of the register and those
// of the members.
const callersRole = "redlock-callers"

const (
	grantsKey   = "grants"   // of the register: a hash, by caller
	insideKey   = "inside"   // of the register: the caller that is inside
	overlapsKey = "overlaps" // of the register: who came in while another caller was inside
)

func redlockCallers(args []string) {
	n, work := must(strconv.Atoi(args[1])), must(time.ParseDuration(args[2]))
	register := redis.NewClient(&redis.Options{Addr: args[3]})
	var members []holdfast.Locker
	for _, addr := range args[4:] {
		m := must(holdfast.New(redis.NewClient(&redis.Options{Addr: addr})))
		members = append(members, m.Mutex(Vote))
	}
	l := must(holdfast.NewRedlock(members...))
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			for ctx.Err() == nil {
				visit(ctx, l, register, args[0]+"/"+strconv.Itoa(i), work)
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	callers.Wait()
}

// visit has a caller lock, stay inside and unlock. The process dies of what must not happen.
func visit(ctx context.Context, l holdfast.Locker, register *redis.Client, caller string, work time.Duration) {
	lease, err := l.Lock(ctx)
	if err != nil {
		if ctx.Err() == nil {
			log.Fatalf("%s: %v", caller, err)
		}
		return
	}
	alone := must(register.SetNX(context.Background(), insideKey, caller, 0).Result())
	if !alone && lease.Valid() {
		must(register.HIncrBy(context.Background(), overlapsKey, caller, 1).Result())
	}
	time.Sleep(work)
	pipe := register.Pipeline()
	if alone {
		pipe.Del(context.Background(), insideKey)
	}
	pipe.HIncrBy(context.Background(), grantsKey, caller, 1)
	must(pipe.Exec(context.Background()))
	_ = lease.Unlock(context.Background()) // a release that is not confirmed goes on
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// fleet is callers in several processes.
type fleet struct {
	tb        testing.TB
	register  *redistest.Server
	processes []*redistest.Process
	callers   int // of all processes
}

// fleetOf is how many processes with how many callers each.
type fleetOf struct{ processes, each int }

// launch starts processes whose members are at addrs.
func (of fleetOf) launch(tb testing.TB, work time.Duration, addrs []string) *fleet {
	tb.Helper()
	f := &fleet{tb: tb, register: redistest.Start(tb, redistest.WithoutPassword()), callers: of.processes * of.each}
	for i := range of.processes {
		args := append([]string{strconv.Itoa(i), strconv.Itoa(of.each), work.String(), f.register.Addr()}, addrs...)
		f.processes = append(f.processes, redistest.StartProcess(tb, callersRole, args...))
	}
	return f
}

// grants returns how many grants each caller has had, of those who have had any.
func (f *fleet) grants() map[string]int {
	f.tb.Helper()
	all := make(map[string]int)
	for caller, n := range f.register.Admin().HGetAll(f.tb.Context(), grantsKey).Val() {
		all[caller], _ = strconv.Atoi(n)
	}
	return all
}

// getOn waits until each caller has been granted the lock some more times.
func (f *fleet) getOn(when string) {
	f.tb.Helper()
	before, began := f.grants(), time.Now()
	var gained map[string]int
	defer func() { // it names those who starve
		f.tb.Logf("%s, in %v: %v", when, time.Since(began).Round(time.Millisecond), gained)
	}()
	redistest.Eventually(f.tb, limit(f.callers), fmt.Sprintf("all %d callers get on %s", f.callers, when), func() bool {
		gained = f.grants()
		n := 0
		for caller := range gained {
			if gained[caller] -= before[caller]; gained[caller] >= more {
				n++
			}
		}
		return n == f.callers
	})
}

// end ends the processes, and checks that no two callers were inside at the same time.
func (f *fleet) end() {
	f.tb.Helper()
	for _, p := range f.processes {
		if err := p.Wait(); err != nil {
			f.tb.Error(err)
		}
	}
	if overlaps := f.register.Admin().HGetAll(f.tb.Context(), overlapsKey).Val(); len(overlaps) > 0 {
		f.tb.Errorf("inside beside another caller: %v", overlaps)
	}
}

// processOutages are what can become of a member while callers of other processes want the lock.
var processOutages = map[string]struct {
	down, up func(*redistest.Server, *redistest.Proxy)
}{
	"stopped":    outages["stopped"],
	"killed":     outages["killed"],
	"silent":     outages["silent"],
	"refusing":   outages["refusing"],
	"slow":       {func(_ *redistest.Server, p *redistest.Proxy) { p.Delay(150*time.Millisecond, 0) }, heal},
	"restarting": {func(srv *redistest.Server, _ *redistest.Proxy) { srv.Kill(); srv.Restart() }, func(*redistest.Server, *redistest.Proxy) {}},
}

// ward is the members of a Redlock, each behind a proxy.
type ward struct {
	servers Electorate
	proxies []*redistest.Proxy
	addrs   []string
}

func newWard(tb testing.TB, members int) ward {
	// Without a password; and what a member has granted survives its death.
	w := ward{servers: Servers(tb, members, redistest.WithAOF(), redistest.WithoutPassword())}
	for _, srv := range w.servers {
		p := srv.Proxy(tb)
		w.proxies, w.addrs = append(w.proxies, p), append(w.addrs, p.Addr())
	}
	return w
}

// each calls change for some members.
func (w ward) each(members []int, change func(*redistest.Server, *redistest.Proxy)) {
	for _, m := range members {
		change(w.servers[m], w.proxies[m])
	}
}

// AC-81: a minority that goes away, from the beginning or in the middle, keeps no caller of any process
// from getting on, and lets no two of them in.
func TestRedlock_ProcessesGetOnWithoutAMinority(t *testing.T) {
	t.Parallel()
	for name, o := range processOutages {
		for _, tc := range []struct {
			of      fleetOf
			members int
			dead    []int
		}{
			{fleetOf{3, 2}, 3, []int{0}},
			{fleetOf{2, 5}, 5, []int{0, 2}},
		} {
			t.Run(fmt.Sprintf("%s, %d of %d", name, len(tc.dead), tc.members), func(t *testing.T) { // one at a time: a fleet keeps a machine busy
				if name != "killed" || tc.members != 3 {
					redistest.Long(t)
				}
				w := newWard(t, tc.members)
				w.each(tc.dead, o.down)
				f := tc.of.launch(t, locktest.Visit, w.addrs)
				f.getOn("without a minority from the beginning")
				w.each(tc.dead, o.up)
				f.getOn("with all members")
				w.each(tc.dead, o.down)
				f.getOn("without a minority in the middle")
				w.each(tc.dead, o.up)
				f.getOn("with all members again")
				f.end()
			})
		}
	}
}

// Twenty callers in two processes.
func TestRedlock_CrowdedProcessesGetOnWithoutAMinority(t *testing.T) {
	redistest.Long(t)
	w := newWard(t, 3)
	f := fleetOf{2, 10}.launch(t, locktest.Visit, w.addrs)
	f.getOn("with all members")
	w.servers[1].Pause()
	f.getOn("without a minority")
	w.servers[1].Resume()
	f.end()
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// redlock asks what a lock on a majority of several servers costs, and what one that answers nothing.
var redlock = scenario{
	name:      "redlock",
	question:  "How often is a lock on a majority of 3 and 5 servers granted to 1 and 5 callers, a client each, with 5 ms of work under it, and what if one server answers nothing?",
	rows:      electorates(),
	libraries: contender.Redlocks,
	us:        contender.Redlocks[0].Name,
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitStarved},
	stretch:   2,
	measure:   measureElectorate,
}

func electorates() (rows []row) {
	for _, silent := range []bool{false, true} {
		for _, members := range []int{3, 5} {
			for _, n := range []int{1, 5} {
				name := fmt.Sprintf("servers=%d/callers=%d", members, n)
				if silent {
					name += "/silent=1"
				}
				rows = append(rows, row{name: name, n: n, members: members, silent: silent, hold: 5 * time.Millisecond})
			}
		}
	}
	return rows
}

// findOut is how long callers have to find out that a server is silent before they are watched.
const findOut = 2 * time.Second

// measureElectorate has callers lock and unlock on servers of their own, of which one may be silent.
func measureElectorate(ctx context.Context, t trial) (metrics, error) {
	var addresses []string
	var servers []*load.Server
	defer func() {
		for _, s := range servers {
			s.Stop()
		}
	}()
	for range t.members {
		s, err := t.server.Another()
		if err != nil {
			return nil, err
		}
		servers, addresses = append(servers, s), append(addresses, s.Address())
	}
	v := &voters{t: t, waits: new(load.Histogram), grants: make([]atomic.Int64, t.n)}
	callers, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var closing []contender.Contender
	end := sync.OnceFunc(func() {
		stop()
		for _, s := range servers { // callers that wait for the silent one are let go
			s.Stop()
		}
		wg.Wait()
		for _, c := range closing {
			c.Close()
		}
	})
	defer end()
	for range t.n {
		c, err := t.library.Open(strings.Join(addresses, ","), holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		closing = append(closing, c)
		if err := contender.Pair(ctx, c, "lock"); err != nil {
			return nil, err
		}
	}
	if t.silent {
		if err := servers[0].Silence(ctx); err != nil {
			return nil, err
		}
	}
	for i, c := range closing {
		wg.Go(func() { v.work(callers, i, c) })
	}
	settle := t.window / 5
	if t.silent && !t.brief() {
		settle = findOut
	}
	time.Sleep(settle)
	begun := time.Now()
	v.measuring.Store(true)
	time.Sleep(t.window)
	v.measuring.Store(false)
	elapsed := time.Since(begun)
	end()
	if v.overlaps.Load() > 0 {
		return nil, load.Violated(v.overlaps.Load())
	}
	if f := v.fault.Load(); f != nil {
		return nil, *f
	}
	return v.metrics(elapsed), nil
}

// voters are the callers of one measurement.
type voters struct {
	t         trial
	measuring atomic.Bool
	inside    atomic.Int32
	overlaps  atomic.Int64
	waits     *load.Histogram
	grants    []atomic.Int64 // in the window, by caller
	fault     atomic.Pointer[error]
}

func (v *voters) work(ctx context.Context, i int, c contender.Contender) {
	for ctx.Err() == nil {
		begun := time.Now()
		unlock, err := c.Lock(ctx, "lock")
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			v.fails(fmt.Errorf("lock: %w", err))
			return
		}
		if v.inside.Add(1) > 1 {
			v.overlaps.Add(1)
		}
		if v.measuring.Load() {
			v.waits.Record(time.Since(begun))
			v.grants[i].Add(1)
		}
		time.Sleep(v.t.hold)
		v.inside.Add(-1)
		if err := unlock(context.WithoutCancel(ctx)); err != nil && ctx.Err() == nil && !v.t.silent && !errors.Is(err, holdfast.ErrUnavailable) {
			v.fails(fmt.Errorf("unlock: %w", err))
			return
		}
	}
}

func (v *voters) fails(err error) { v.fault.CompareAndSwap(nil, &err) }

func (v *voters) metrics(elapsed time.Duration) metrics {
	grants, starved := make([]int64, len(v.grants)), 0
	for i := range v.grants {
		if grants[i] = v.grants[i].Load(); grants[i] == 0 {
			starved++
		}
	}
	m := metrics{
		unitRate:           float64(v.waits.Count()) / elapsed.Seconds(),
		unitWait + unitMax: milliseconds(v.waits.Max()),
		unitStarved:        float64(starved),
		unitOverlaps:       0,
	}
	if v.waits.Count() > 0 {
		m[unitJain] = jain(grants)
	}
	m.quantiles(unitWait, v.waits)
	return m
}

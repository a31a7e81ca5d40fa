package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// Some scenarios ask of semaphores, elections and tickets what others ask of locks. Holdfast's Mutex is there to compare with.
var (
	permitFree     = uncontended.asks("permit_free", "What does a permit cost one goroutine without contention?", contender.OfKind(contender.Permit))
	permitHandover = handover.asks("permit_handover", "How long does it take from the return of the only permit in one process to its grant in the other, which waits for it?", contender.OfKind(contender.Permit))
	permitWeights  = readers.asks("permit_weights", "How many sections of a millisecond do 16 callers in 2 processes get through, when most take one of 8 permits and a few take all 8?", contender.OfKind(contender.Weighed))
	permitParked   = parked.asks("permit_parked", "What do 1,000 and 10,000 goroutines cost that wait for a permit while another client has it?", contender.Pick("holdfast-permit", "redisson-permit"))
	election       = handover.asks("election", "How long does it take from Resign in one process to the return of Campaign in the other, which waits for it?", contender.Pick("holdfast-election"))
	ticket         = uncontended.asks("ticket", "What does it cost to leave a lock with a ticket and to take it over, Detach and Attach?", contender.Pick("holdfast-ticket"))
)

// permitRefusal asks what it costs to be turned away.
var permitRefusal = scenario{
	name:      "permit_refusal",
	question:  "What does TryAcquire cost while another client has the only permit?",
	rows:      []row{{name: "goroutines=1", n: 1}},
	libraries: contender.Pick("holdfast-permit", "asynq-rate", contender.Ours, "redsync"),
	us:        "holdfast-permit",
	headline:  unitRate,
	shown:     []string{unitRate, unitP50, unitP99, unitCommands, unitServer, unitAllocs},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		c, u, err := t.open(ctx, "refusal", holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		other, err := t.library.Open(t.server.Address(), holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer other.Close()
		unlock, err := other.Lock(ctx, "refusal")
		if err != nil {
			return nil, err
		}
		m, err := t.steady(ctx, u, "refusal", only(refused{c.(contender.Trier)}))
		return m, errors.Join(err, unlock(ctx))
	},
}

// refused is a Contender whose locks are in use: a pair is an attempt.
type refused struct{ contender.Trier }

func (r refused) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, r.Refused(ctx, name)
}

// asks is the question of s about other libraries, of which the first is Holdfast.
func (s scenario) asks(name, question string, libraries []contender.Library) scenario {
	s.name, s.question, s.floor, s.us = name, question, "", libraries[0].Name
	s.libraries = append(libraries, contender.Pick(contender.Ours)...)
	return s
}

// permitCrowd asks how permits go round.
var permitCrowd = scenario{
	name:     "permit_crowd",
	question: "How often, how evenly and at what price do 8 permits change hands among 64 callers that all want one all the time?",
	rows: []row{
		{name: "goroutines=64", n: 64, reads: 1},
		{name: "procs=4/goroutines=16", n: 16, procs: 4, reads: 1},
	},
	libraries: append(contender.Pick("x-sync"), contender.OfKind(contender.Permit)...),
	us:        "holdfast-permit",
	floor:     "x-sync",
	headline:  unitRate,
	shown:     []string{unitRate, "read-" + unitWait + unitP50, "read-" + unitWait + unitP99, unitWait + unitMax, unitJain, unitStarved, unitCommands, unitServer, unitClient, unitConns},
	measure:   measureCrowds,
}

// permitCrash asks how soon what a dead process had is used again.
var permitCrash = scenario{
	name:      "permit_crash",
	question:  "How long after a process with the only permit is cut off does a caller in another process have it, with a TTL of a second?",
	rows:      []row{{name: "procs=2/waiters=1", n: 1}},
	libraries: contender.Pick("holdfast-permit", "asynq-rate", "redsync-names", contender.Ours),
	us:        "holdfast-permit",
	headline:  unitCrash,
	smaller:   true,
	shown:     []string{unitCrash},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		heir, _, err := t.open(ctx, "crash", crashLease)
		if err != nil {
			return nil, err
		}
		defer heir.Close()
		var all []float64
		for begun := time.Now(); len(all) == 0 || time.Since(begun) < t.window; {
			d, err := t.crash(ctx, heir)
			if err != nil {
				return nil, err
			}
			all = append(all, milliseconds(d))
		}
		slices.Sort(all)
		return metrics{unitCrash: all[len(all)/2]}, nil
	},
}

const (
	unitCrash  = "crash-ms" // from the end of the holder's connections to the next grant
	crashLease = time.Second
)

// crash cuts off a process that has just got the lock, and returns when heir has it.
func (t trial) crash(ctx context.Context, heir contender.Contender) (after time.Duration, err error) {
	relay, err := load.StartRelay(t.server.Address(), 0)
	if err != nil {
		return 0, err
	}
	dies, err := t.library.Open(relay.Address(), crashLease)
	if err != nil {
		return 0, errors.Join(err, relay.Close())
	}
	defer dies.Close()
	_, err = dies.Lock(ctx, "crash")
	if err := errors.Join(err, relay.Close()); err != nil {
		return 0, err
	}
	begun := time.Now()
	unlock, err := heir.Lock(ctx, "crash")
	if err != nil {
		return 0, err
	}
	after = time.Since(begun)
	return after, unlock(ctx)
}

// wanted asks how soon a holder learns of a waiter.
var wanted = scenario{
	name:      "wanted",
	question:  "How long does it take from the call of Lock in one process until Wanted is closed in the other, which has the lock (`WithWanted`)?",
	rows:      []row{{name: "procs=2/waiters=1", n: 1}},
	libraries: contender.Pick(contender.Ours),
	headline:  unitP50,
	smaller:   true,
	shown:     []string{unitP50, unitP99, unitCommands, unitServer},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		c, u, err := t.open(ctx, "wanted", holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		other, err := t.library.Open(t.server.Address(), holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer other.Close()
		holder := c.(*contender.Holdfast).Manager.Mutex("wanted", holdfast.WithWanted())
		waiter := other.(*contender.Holdfast).Manager.Mutex("wanted", holdfast.WithWanted())
		lat := new(latencies)
		for begun := time.Now(); time.Since(begun) < t.window; {
			if err := lat.wanted(ctx, holder, waiter); err != nil {
				return nil, err
			}
		}
		return lat.metrics(ctx, u)
	},
}

// wanted has one process hold a lock until it learns that another waits for it.
func (l *latencies) wanted(ctx context.Context, holder, waiter *holdfast.Mutex) error {
	lease, err := holder.Lock(ctx)
	if err != nil {
		return err
	}
	asked, over := time.Now(), make(chan error, 1)
	go func() {
		lease, err := waiter.Lock(ctx)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		over <- err
	}()
	select {
	case <-lease.Wanted():
		l.Record(time.Since(asked))
	case err := <-over:
		return errors.Join(errParkedGrant, err)
	}
	return errors.Join(lease.Unlock(ctx), <-over)
}

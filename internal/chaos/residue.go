package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Residue is what is left when all callers have stopped, and when all processes have gone.
type Residue struct {
	Locks         int      // that a manager knows of although no caller uses it
	Belongings    []string // in Redis, of managers that no caller uses: holds and places
	Subscriptions []string // likewise
	Keys          []string
	Connections   int // subscribed ones
	Goroutines    []string
	// Unconfirmed are the managers whose Close had to leave before every request was
	// answered: some die with a connection that only go-redis's time-outs end. What
	// they leave in Redis, if anything, is in Keys.
	Unconfirmed int
	Probe       time.Duration // longest time in which a fresh client got a lock after healing
	ProbeFailed []string
}

// probe lets a fresh client take every lock.
func (r *run) probe() {
	m, err := holdfast.New(r.srv.Client(r), holdfast.WithLease(ttl))
	if err != nil {
		r.Fatal(err)
	}
	rec, err := newRecorder(filepath.Join(r.dir, "history-probe"))
	if err != nil {
		r.Fatal(err)
	}
	p := &Process{ID: len(r.h.Processes), Born: now(), Died: never}
	r.h.Processes = append(r.h.Processes, p)
	r.paths = append(r.paths, rec.file.Name())
	w := &worker{client: &client{clientConfig: clientConfig{Proc: p.ID}, m: m, rec: rec}}
	w.client.stop = context.Background()
	bound := recovery(ttl)
	within := func(do func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*bound)
		defer cancel()
		if err := do(ctx); err != nil {
			r.residue.ProbeFailed = append(r.residue.ProbeFailed, err.Error())
		}
	}
	within(func(ctx context.Context) (err error) { p.Prefix, err = w.prefix(ctx); return err })
	for i := range Kinds {
		k := &Kinds[i]
		for _, name := range []string{k.busy(), k.quiet()} {
			begin := time.Now()
			within(func(ctx context.Context) error {
				t := target{name: name, make: k.Exclusive}
				if k.Permits > 0 { // all of them: none is lost
					t.n, t.make = k.Permits, permits(k.Permits)
				}
				h := w.acquire(ctx, Lock, t, 0)
				if h == nil {
					return fmt.Errorf("%s was not granted", name)
				}
				w.release(h)
				return nil
			})
			r.residue.Probe = max(r.residue.Probe, time.Since(begin))
		}
	}
	within(m.Close)
}

// quiesce stops the workers and looks for what they leave behind.
func (r *run) quiesce() {
	for _, c := range r.members {
		c.role.Send("quiesce")
	}
	res := &r.residue
	for _, c := range r.members {
		var rest clientRest
		r.hear(c, &rest)
		s := rest.Stats
		res.Locks += s.Held + s.Waiting + s.Locks
	}
	// All managers are open, and no caller waits. A release may still be on its way, of an Unlock
	// that was not answered.
	r.await(ttl/2, func() bool {
		res.Belongings = nil
		for _, c := range r.members {
			res.Belongings = append(res.Belongings, r.belongings(c.Prefix)...)
		}
		return len(res.Belongings) == 0
	})
	r.await(cleanup, func() bool {
		res.Subscriptions = r.subscriptions()
		return len(res.Subscriptions) == 0
	})
	for _, c := range r.members {
		c.role.Send("leave")
	}
	for _, c := range r.members {
		var report clientReport
		r.hear(c, &report)
		if report.Goroutines != "" {
			res.Goroutines = append(res.Goroutines, report.Goroutines)
		}
		if report.Close != "" {
			res.Unconfirmed++
		}
		if err := c.role.Wait(); err != nil {
			r.Errorf("chaos: client %d: %v", c.ID, err)
		}
	}
	// What a killed client held may stay for a lease, its place in a queue for as long
	// as the others are patient with it.
	r.await(slowTTL+holdfast.DefaultFairPatience+time.Second, func() bool {
		r.look(res)
		return len(res.Keys)+res.Connections == 0
	})
}

// await asks until it is so, or has been given the time for it.
func (r *run) await(bound time.Duration, so func() bool) {
	for deadline := time.Now().Add(bound); !so() && time.Now().Before(deadline); {
		<-time.After(20 * time.Millisecond)
	}
}

// belongings are the holds, readers' rights and places in queues whose owner ids begin with prefix.
func (r *run) belongings(prefix string) (all []string) {
	ctx, rdb := context.Background(), r.srv.Admin()
	for _, key := range r.srv.Keys() {
		if strings.HasPrefix(key, locktest.Tombstones) {
			continue
		}
		if strings.Contains(key, prefix+":") {
			all = append(all, key)
		}
		// Of a hash, a list or a zset; a key of another type has none.
		ids := slices.Concat(rdb.HKeys(ctx, key).Val(), rdb.LRange(ctx, key, 0, -1).Val(), rdb.ZRange(ctx, key, 0, -1).Val())
		for _, id := range ids {
			if len(id) == wire.PermitBytes {
				id = judge.PermitID(id)
			}
			if strings.HasPrefix(id, prefix+":") {
				all = append(all, key+": "+id)
			}
		}
	}
	return all
}

// subscriptions are the channels that a client is subscribed to.
func (r *run) subscriptions() []string {
	all, err := r.srv.Admin().PubSubChannels(context.Background(), "*").Result()
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// look asks the server what there is when all processes have gone.
func (r *run) look(res *Residue) {
	res.Keys = slices.DeleteFunc(r.srv.Keys(), func(k string) bool {
		return k == clockKey || strings.HasPrefix(k, locktest.Tokens) || strings.HasPrefix(k, locktest.Tombstones)
	})
	res.Connections = 0
	list, err := r.srv.Admin().ClientList(context.Background()).Result()
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(list) {
		if strings.Contains(line, " sub=") && !strings.Contains(line, " sub=0 ") {
			res.Connections++
		}
	}
}

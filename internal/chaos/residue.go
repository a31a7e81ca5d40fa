package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Residue is what is left when everybody has gone.
type Residue struct {
	Keys          []string
	Subscriptions []string
	Connections   int
	Goroutines    []string
	Locks         int // that a manager still knows of
	// Unconfirmed are the managers whose Close had to leave before every request was
	// answered: some die with a connection that only go-redis's time-outs end. What
	// they leave in Redis, if anything, is in Keys.
	Unconfirmed int
	Probe       time.Duration // longest time in which a fresh client got a lock after healing
	ProbeFailed []string
}

// probe lets a fresh client take every lock.
func (r *run) probe() {
	m, err := holdfast.New(r.srv.Client(r), holdfast.WithLease(r.ttl))
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
	w := &worker{client: &client{clientConfig: clientConfig{Proc: p.ID, Lease: r.ttl}, m: m, rec: rec}}
	w.client.stop = context.Background()
	bound := recovery(r.ttl)
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
				h := w.acquire(ctx, Lock, target{name: name, make: k.Exclusive}, 0)
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
		var report clientReport
		r.hear(c, &report)
		s := report.Stats
		res.Locks += s.Held + s.Waiting + s.Locks
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
	deadline := time.Now().Add(r.ttl + holdfast.DefaultFairPatience + time.Second)
	for {
		r.look(res)
		if len(res.Keys)+len(res.Subscriptions)+res.Connections == 0 || time.Now().After(deadline) {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// look asks the server what there is.
func (r *run) look(res *Residue) {
	ctx, rdb := context.Background(), r.srv.Admin()
	res.Keys = slices.DeleteFunc(r.srv.Keys(), func(k string) bool {
		return k == clockKey || strings.HasPrefix(k, locktest.Tokens) || strings.HasPrefix(k, locktest.Tombstones)
	})
	var err error
	if res.Subscriptions, err = rdb.PubSubChannels(ctx, "*").Result(); err != nil {
		r.Fatal(err)
	}
	res.Connections = 0
	list, err := rdb.ClientList(ctx).Result()
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(list) {
		if strings.Contains(line, " sub=") && !strings.Contains(line, " sub=0 ") {
			res.Connections++
		}
	}
}

package interop

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Waiters of both sides are served in the order in which they came.
func order(e *env) {
	const rounds, waiters = 5, 12
	queue := queueKey(e.key)
	for range rounds {
		e.lock(e.golang[1], 0, -1)
		var calls []*call
		for i := range waiters {
			p := []*peer{e.java[0], e.golang[0], e.java[1], e.golang[1]}[i%4]
			calls = append(calls, p.start(e, e.thread(1+i), "lock", e.kind.name, e.key, -1))
			p.start(e, e.thread(1+i), "unlock", e.kind.name, e.key) // as soon as it has it
			e.eventually(fmt.Sprintf("%d waiters are queued", i+1), patience, func() bool {
				return e.admin.LLen(context.Background(), queue).Val() == int64(i+1)
			})
		}
		e.unlock(e.golang[1], 0)
		var granted []time.Time
		for _, c := range calls {
			granted = append(granted, c.want("ok").ended)
		}
		if !slices.IsSortedFunc(granted, time.Time.Compare) {
			e.Errorf("not served in order: %v", granted)
		}
		e.eventually("all have unlocked", patience, func() bool {
			return e.exists(e.key) == 0
		})
	}
	e.free()
	redistest.Want(e, e.exists(queue, timeoutKey(e.key)), 0, "the queue has been left behind")
}

// A waiter of one side gets its turn again and again, however many callers of the other want the
// lock as well, who go on until it has had all its turns. With slices our processes pass it on inside, without them each grant is Redis's,
// so that the sections of others can be counted as grants.
func turn(e *env) {
	const rounds, threads = 30, 4
	unsliced := [2]*peer{e.startGo(e, "--slice", "0"), e.startGo(e, "--slice", "0")}
	for _, c := range []struct {
		name   string
		crowd  [2]*peer
		lone   *peer
		others int // sections that may pass while it waits, as a rule; 0: no bound
	}{
		{"Redisson's waiter, our crowd", e.golang, e.java[0], 0},
		{"Redisson's waiter, our crowd without slices", unsliced, e.java[0], bounds.grants},
		{"our waiter, Redisson's crowd", e.java, e.golang[0], bounds.grants},
	} {
		file := newSectionFile(e)
		enough := func() {
			redistest.Check(e, os.WriteFile(file+overSuffix, nil, 0o600))
		}
		e.Cleanup(enough) // also of a scenario that has failed: others use the processes
		var crowd []*call
		for i, p := range c.crowd {
			for n := range threads {
				crowd = append(crowd, p.start(e, e.thread(n), "hammer", e.kind.name, e.key, -1, 1+i*threads+n, file))
			}
		}
		lone := c.lone.start(e, e.thread(100), "hammer", e.kind.name, e.key, rounds, 100, file)
		sections, others, wait := hammered(lone)
		enough()
		total := sections
		for _, other := range crowd {
			n, _, _ := hammered(other)
			total += n
		}
		e.Logf("%s: %d of %d sections, %d sections of others in the median and at most %v between asking and entering",
			c.name, sections, total, others, wait)
		if wait > bounds.woken || c.others > 0 && others > c.others {
			e.Errorf("%s: starved", c.name)
		}
	}
	e.free()
}

// hammered reads the answer to the command hammer.
func hammered(c *call) (sections, others int, wait time.Duration) {
	c.t.Helper()
	var violations, ms int
	a := c.answerWithin(4 * patience)
	if _, err := fmt.Sscan(a.value, &sections, &others, &violations, &ms); err != nil {
		c.t.Fatalf("%s answers %q with %q %s", c.peer.side, c.text, a.value, a.failure)
	}
	if violations > 0 {
		c.t.Errorf("%s saw %d violations in %d sections", c.peer.side, violations, sections)
	}
	return sections, others, time.Duration(ms) * time.Millisecond
}

func queueKey(name string) string   { return "redisson_lock_queue:{" + name + "}" }
func timeoutKey(name string) string { return "redisson_lock_timeout:{" + name + "}" }

// A waiter of one side is woken by the release of the other's, not by its own poll.
func wakeUp(e *env) {
	const rounds = 100
	for _, d := range e.directions() {
		var waits []time.Duration
		for range rounds {
			e.lockAgainst(d.from, 1, -1)
			waiter := e.waiter(d.to, 2)
			released := e.unlockAgainst(d.from, 1)
			granted := waiter.want("ok")
			waits = append(waits, granted.ended.Sub(released.began))
			e.unlock(d.to, 2)
			e.eventually("nobody listens", patience, func() bool {
				return d.to.side == "go" || e.subscribers(e.kind.channel(e.key)) == 0
			})
		}
		slices.Sort(waits)
		p50, p99, most := waits[rounds/2], waits[rounds*99/100], waits[rounds-1]
		e.Logf("%v: p50 %v, p99 %v, longest %v", d, p50.Round(time.Microsecond), p99.Round(time.Microsecond), most.Round(time.Microsecond))
		if most > bounds.woken {
			e.Errorf("%v: woken by something else than the message", d)
		}
	}
}

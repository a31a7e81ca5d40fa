package holdfast_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// baton is two processes that give one lock to each other. The first books.
type baton struct {
	*testing.T
	srv   *redistest.Server
	proxy *redistest.Proxy // of the first
	other *redistest.Proxy // of the second
	a, b  *holdfast.Manager
	name  string
	opts  []holdfast.LockOption
	still func() // the first has no reason any more to hear its inbox
}

const (
	learned = 3           // comebacks
	never   = time.Hour   // nobody has to be back
	soon    = time.Second // before a grant that nobody answers ends by itself
)

// newBaton returns processes that find out nothing by themselves. A place that the first
// books is kept for within. The first hears its inbox all the time, for the sake of another
// lock.
func newBaton(t *testing.T, within time.Duration, opts ...holdfast.LockOption) *baton {
	t.Helper()
	srv := redistest.Start(t)
	slow := []holdfast.Option{holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(2 * time.Minute), holdfast.WithLease(time.Hour)}
	a, proxy := managerVia(t, srv, append(slow, holdfast.Comebacks(learned, within))...)
	b, other := managerVia(t, srv, append(slow, holdfast.Comebacks(1000, never))...)
	mustLock(t, b.Mutex("other"))
	p := &baton{T: t, srv: srv, proxy: proxy, other: other, a: a, b: b, name: "a", opts: opts}
	p.still = p.hears(a)
	return p
}

// hears makes m hear its inbox until still is called.
func (p *baton) hears(m *holdfast.Manager) (still func()) {
	p.Helper()
	heard := func() int { return len(p.srv.Admin().PubSubChannels(p.Context(), "holdfast_inbox:*").Val()) }
	before := heard()
	ctx, cancel := context.WithCancel(p.Context())
	m.Mutex("other").LockAsync(ctx)
	redistest.Eventually(p.T, patience, "the inbox is heard", func() bool { return heard() > before })
	return cancel
}

func (p *baton) lockOf(m *holdfast.Manager) *holdfast.Mutex { return m.Mutex(p.name, p.opts...) }

func (p *baton) queued() []string {
	return p.srv.Admin().LRange(p.Context(), "redisson_lock_queue:{"+p.name+"}", 0, -1).Val()
}

// asks makes m wait for the lock, and returns when it stands in the queue.
func (p *baton) asks(m *holdfast.Manager) <-chan holdfast.Result {
	p.Helper()
	n := len(p.queued())
	got := p.lockOf(m).LockAsync(p.Context())
	redistest.Eventually(p.T, patience, "it stands in the queue", func() bool { return len(p.queued()) == n+1 })
	return got
}

func (p *baton) granted(got <-chan holdfast.Result) *holdfast.Lease {
	p.Helper()
	select {
	case r := <-got:
		if r.Err != nil {
			p.Fatal(r.Err)
		}
		return r.Lease
	case <-time.After(patience):
		p.Fatal("not granted")
	}
	return nil
}

// learns passes the lock to and fro until the next release by a, which holds it then, books.
func (p *baton) learns() *holdfast.Lease {
	p.Helper()
	redistest.Eventually(p.T, patience, "a knows nothing of the lock", func() bool { return p.a.Stats().Locks == 1 })
	lease := mustLock(p.T, p.lockOf(p.a))
	for range learned {
		other := p.asks(p.b)
		mustUnlock(p.T, lease)
		others := p.granted(other)
		back := p.asks(p.a)
		mustUnlock(p.T, others)
		lease = p.granted(back)
	}
	return lease
}

// books makes a's release book, and returns b's lease.
func (p *baton) books() *holdfast.Lease {
	p.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		lease := p.learns()
		other := p.asks(p.b)
		mustUnlock(p.T, lease)
		held := p.granted(other)
		if len(p.queued()) == 1 {
			return held
		}
		mustUnlock(p.T, held) // the machine stood still for longer than habits last
	}
	p.Fatal("no place is booked")
	return nil
}

// offered waits until a has been granted what it booked.
func (p *baton) offered(held *holdfast.Lease) {
	p.Helper()
	before := p.a.Stats().Wakeups
	mustUnlock(p.T, held)
	redistest.Eventually(p.T, patience, "the message is there", func() bool { return p.a.Stats().Wakeups > before })
}

// free fails unless nothing of the lock is left.
func (p *baton) free() {
	p.Helper()
	redistest.Eventually(p.T, patience, "nothing is left", func() bool {
		keys := p.srv.Admin().Keys(context.Background(), "*").Val()
		return !slices.ContainsFunc(keys, func(key string) bool { return !strings.Contains(key, "other") })
	})
}

// releases matches a's releases that book.
func (p *baton) releases() redistest.Match {
	return func(cmd []string) bool {
		return scriptOn(p.name, "3")(cmd) && len(cmd) == 9 && strings.Count(cmd[8], " ") == 5
	}
}

// unanswered makes a's release book, and holds its reply back until answer is called, which
// returns the outcome of the Unlock. b has been granted the lock then.
func (p *baton) unanswered() (held *holdfast.Lease, answer func() error) {
	p.Helper()
	lease := p.learns()
	other := p.asks(p.b)
	gate := p.proxy.HoldReply(p.releases())
	unlocked := make(chan error, 1)
	go func() { unlocked <- lease.Unlock(context.Background()) }()
	gate.Wait(p.T)
	return p.granted(other), func() error {
		gate.Release()
		return <-unlocked
	}
}

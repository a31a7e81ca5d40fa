package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// script matches each call of a script.
func script(cmd []string) bool { _, _, ok := redistest.ScriptCall(cmd); return ok }

// Something between the clients and Redis answers some of the requests itself, with what no Redis says, or breaks
// replies off: requests for locks, for places, releases, renewals and subscriptions. Holders are alone,
// each waiter gets the lock, no release looks like a loss, and nothing is left behind.
func TestBadReplies(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*redistest.Proxy, redistest.Match){
		"empty error":     answers("-\r\n"),
		"endless error":   answers("-ERR " + strings.Repeat("x", 64<<10) + "\r\n"),
		"no UTF-8":        answers("-\xff\xfe\r\n"),
		"another type":    answers("+OK\r\n"),
		"empty list":      answers("*0\r\n"),
		"one too many":    answers("+OK\r\n-ERR proxy\r\n"),
		"two too many":    answers("$2\r\nhi\r\n+OK\r\n-ERR proxy\r\n"),
		"one before":      answers("-ERR proxy\r\n+OK\r\n"),
		"half a reply":    func(p *redistest.Proxy, m redistest.Match) { p.BreakReply(m, math.MaxInt) },
		"none and closed": func(p *redistest.Proxy, m redistest.Match) { p.LoseReply(m, math.MaxInt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			m, p := locktest.ManagerVia(t, srv, holdfast.WithLease(2*time.Second))
			spoil(p, locktest.Every(6, script))
			spoil(p, locktest.Every(2, redistest.Command("subscribe")))
			direct := locktest.ManagerOn(t, srv)
			for _, lock := range []func(*holdfast.Manager) holdfast.Locker{
				func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
				func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("b") },
				func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("c") },
			} {
				locktest.Alone(t, 12, lock(m), lock(direct), lock(m), lock(m))
			}
			held := locktest.MustLock(t, m.FairMutex("d"))
			before := held.Deadline()
			redistest.Eventually(t, locktest.Patience, "it is renewed, or lost", func() bool {
				return held.Err() != nil || held.Deadline().After(before.Add(time.Second))
			})
			if err := held.Err(); err == nil {
				locktest.MustUnlock(t, held)
			} else if testing.Short() || !locktest.StoodStill(err) {
				t.Error(err)
			}
			p.Heal()
			redistest.Eventually(t, locktest.Patience, "nothing is left", func() bool { return len(locktest.LastingKeys(srv)) == 0 })
		})
	}
}

// answers returns what gives a reply, as it is on the wire, in place of Redis.
func answers(raw string) func(*redistest.Proxy, redistest.Match) {
	return func(p *redistest.Proxy, m redistest.Match) { p.Answer(m, math.MaxInt, raw) }
}

// What docs/SAFETY.md says of replies that are mixed up: a caller that gets another request's grant for its own has a lease
// until its next renewal, which finds the lock with its owner. The owner keeps it.
func TestBadReplies_OneThatFits(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		m, p := locktest.ManagerVia(t, srv, holdfast.WithLease(3*time.Second))
		p.Answer(locktest.ScriptOn("a", "lock_acquire"), 1, ":0\r\n")
		lease := locktest.Got(t, m.Mutex("a").TryLock, t.Context())
		granted := time.Now()
		<-lease.Done()
		if lost := (*holdfast.LostError)(nil); !errors.As(lease.Err(), &lost) || lost.Reason != holdfast.LostStolen {
			t.Errorf("it has ended: %v", lease.Err())
		}
		if d := time.Since(granted); d > 2*time.Second && testing.Short() { // a third of the lease, where no time passes by itself
			t.Errorf("it was valid for %v", d)
		}
		locktest.WantErr(t, locktest.Unlock(lease), holdfast.ErrLeaseLost, nil)
		redistest.Want(t, held.Valid(), true, "the owner was disturbed")
		locktest.MustUnlock(t, held)
	})
}

// strange are answers to scripts that Redis does not give.
var strange = map[string]string{
	"empty error":       "-\r\n",
	"endless error":     "-" + strings.Repeat("y", 64<<10) + "\r\n",
	"error of lines":    "!22\r\nupstream\nfailure\r\nbad!\n\r\n",
	"no UTF-8":          "-\xff\xfe\xfdupstream\r\n",
	"error of a proxy":  "-upstream failure\r\n",
	"words in an error": "-proxy error: NOAUTH WRONGTYPE unknown command\r\n",
	"nil":               "$-1\r\n",
	"boolean":           "#t\r\n",
	"double":            ",1.5\r\n",
	"map":               "%1\r\n+a\r\n+b\r\n",
	"beginning":         "$2\r\ng \r\n",
	"list of nil":       "*1\r\n$-1\r\n",
	"list of an error":  "*1\r\n-ERR x\r\n",
	"list of lists":     "*2\r\n*1\r\n:1\r\n+x\r\n",
	"list of codes":     "*3\r\n:9\r\n:9\r\n:9\r\n",
}

// given are the names of the locks that it is made of.
var given = []string{"n0", "n1", "n2"}

// spoilt is a lock whose servers can be made to answer strangely.
type spoilt struct {
	*testing.T
	raw      string
	servers  []*redistest.Server
	managers []*holdfast.Manager
	proxies  []*redistest.Proxy
	lock     holdfast.Locker
}

// spoiltKinds are locks of all kinds.
var spoiltKinds = map[string]func(m []*holdfast.Manager) holdfast.Locker{
	"mutex":  func(m []*holdfast.Manager) holdfast.Locker { return m[0].Mutex(given[0]) },
	"fenced": func(m []*holdfast.Manager) holdfast.Locker { return m[0].Mutex(given[0], holdfast.WithFencing()) },
	"fair":   func(m []*holdfast.Manager) holdfast.Locker { return m[0].FairMutex(given[0]) },
	"write":  func(m []*holdfast.Manager) holdfast.Locker { return m[0].RWMutex(given[0]) },
	"read":   func(m []*holdfast.Manager) holdfast.Locker { return m[0].RWMutex(given[0]).RLocker() },
	"multi": func(m []*holdfast.Manager) holdfast.Locker {
		return multiOf(m[0].Mutex(given[0]), m[0].FairMutex(given[1]), m[0].RWMutex(given[2]).RLocker())
	},
	"sweep": func(m []*holdfast.Manager) holdfast.Locker {
		return multiOf(m[0].Mutex(given[0]), m[0].Mutex(given[1]), m[0].FairMutex(given[2]))
	},
	"redlock": func(m []*holdfast.Manager) holdfast.Locker {
		l, _ := holdfast.NewRedlock(m[0].Mutex(given[0]), m[1].Mutex(given[0]), m[2].Mutex(given[0]))
		return l
	},
}

func multiOf(locks ...holdfast.Locker) holdfast.Locker { l, _ := holdfast.NewMulti(locks...); return l }

// newSpoilt returns a lock on three servers, or the first of them.
func newSpoilt(t *testing.T, of func([]*holdfast.Manager) holdfast.Locker, opts ...holdfast.Option) *spoilt {
	s := &spoilt{T: t}
	for range 3 {
		srv := redistest.StartVirtual(t)
		m, p := locktest.ManagerVia(t, srv, opts...)
		s.servers, s.managers, s.proxies = append(s.servers, srv), append(s.managers, m), append(s.proxies, p)
	}
	s.lock = of(s.managers)
	return s
}

// blip is a short time in which all scripts are answered strangely.
const blip = 150 * time.Millisecond

// begin has all scripts answered strangely for d from now on.
func (s *spoilt) begin(d time.Duration) {
	for _, p := range s.proxies {
		p.Answer(script, math.MaxInt, s.raw)
		time.AfterFunc(d, p.Heal)
	}
}

// during makes a call in a blip, and returns when that is over.
func (s *spoilt) during(what string, call func() error) {
	s.Helper()
	s.begin(blip)
	began := time.Now()
	if err := call(); err != nil {
		s.Errorf("%s: %.200v", what, err)
	}
	if d := time.Since(began); d > blip+time.Second {
		s.Errorf("%s took %v", what, d)
	}
	time.Sleep(2 * blip)
}

// free waits until the locks are.
func (s *spoilt) free() {
	s.Helper()
	for _, srv := range s.servers {
		redistest.Eventually(s, locktest.Patience, "it is free", func() bool { return srv.Admin().Exists(context.Background(), given...).Val() == 0 })
	}
}

// Something between the clients and Redis answers all scripts itself for a moment. Whatever it says, each call of the API
// that may be repeated succeeds, and after a long time of it no lock, place, or loss is left.
func TestBadReplies_EachCall(t *testing.T) {
	t.Parallel()
	for kind, of := range spoiltKinds {
		for answer, raw := range strange {
			t.Run(kind+"/"+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSpoilt(t, of, holdfast.WithLease(8*time.Second))
					s.raw = raw
					locktest.MustUnlock(t, locktest.MustLock(t, s.lock))
					s.calls()
					s.downgrades()
					s.outage()
					locktest.MustLock(t, s.lock)
					for _, m := range s.managers {
						s.during("Close", func() error { return m.Close(context.Background()) })
					}
					s.free()
				})
			})
		}
	}
}

// calls makes the calls of the API, each in a moment of strange answers.
func (s *spoilt) calls() {
	ctx, m := s.Context(), s.managers[0]
	var lease *holdfast.Lease
	s.during("Lock", func() (err error) { lease, err = s.lock.Lock(ctx); return err })
	s.during("Extend", func() error { return lease.Extend(ctx, 20*time.Second) })
	s.during("Inspect", func() error { _, err := m.Inspect(ctx, given[0]); return err })
	s.during("Unlock", func() error { return lease.Unlock(ctx) })
	s.free()
	s.during("Do", func() error {
		time.Sleep(2 * blip)
		return holdfast.Do(ctx, s.lock, func(context.Context, *holdfast.Lease) error { s.begin(blip); return nil })
	})
	s.free()
	locker := holdfast.SyncLocker(ctx, s.lock)
	s.during("Lock of SyncLocker", func() error { locker.Lock(); return nil })
	s.during("Unlock of SyncLocker", func() error { locker.Unlock(); return nil })
	s.free()
	got := m.Mutex(given[0]).LockAsync
	s.during("LockAsync", func() error { r := <-got(ctx); lease = r.Lease; return r.Err })
	next := got(ctx)
	s.during("one that waits", func() error {
		if err := lease.Unlock(ctx); err != nil {
			return err
		}
		r := <-next
		lease = r.Lease
		return r.Err
	})
	locktest.MustUnlock(s.T, lease)
}

// downgrades unlocks the write side while the read side is held.
func (s *spoilt) downgrades() {
	write, read := bothSides(s.T, s.managers[0].RWMutex(given[0]))
	s.during("Unlock of the write side", func() error { return write.Unlock(s.Context()) })
	redistest.Check(s, read.Err())
	s.during("Unlock of the read side", func() error { return read.Unlock(s.Context()) })
	s.free()
}

// outage has strange answers last for longer than a call does, and than most of a lease.
func (s *spoilt) outage() {
	ctx, lease := s.Context(), locktest.MustLock(s.T, s.lock)
	s.begin(6 * time.Second)
	time.Sleep(12 * time.Second)
	if err := lease.Err(); err != nil {
		s.Errorf("it is lost while it could not be renewed: %.200v", err)
	}
	s.begin(3 * time.Second)
	refused := lease.Unlock(ctx)
	locktest.WantErr(s.T, refused, holdfast.ErrUnavailable, holdfast.ErrLeaseLost)
	s.legible(refused)
	time.Sleep(4 * time.Second)
	if err := lease.Unlock(ctx); err != nil {
		s.Errorf("again: %.200v", err)
	}
	s.free()
	s.begin(3 * time.Second)
	_, err := s.lock.TryLock(ctx)
	locktest.WantErr(s.T, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
	s.legible(err)
	time.Sleep(4 * time.Second)
	locktest.MustUnlock(s.T, locktest.MustLock(s.T, s.lock))
	s.free()
}

// legible fails unless an error can be shown: each lock has a cause, on one line, and it is not endless.
func (s *spoilt) legible(err error) {
	s.Helper()
	for line := range strings.SplitSeq(fmt.Sprint(err), "\n") {
		if len(line) > 2000 || strings.HasSuffix(line, ": ") || strings.ContainsFunc(line, func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) {
			s.Errorf("an error of %d bytes, %.200q", len(line), line)
		}
	}
}

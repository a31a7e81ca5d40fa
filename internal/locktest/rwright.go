package locktest

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// rightAndHash reads in one step what the right of the reader whose key that is and
// the hash have left.
func (e *Env) rightAndHash(key string) (right, hash time.Duration) {
	e.Helper()
	var r, h *redis.DurationCmd
	if _, err := e.srv.Admin().TxPipelined(bg, func(p redis.Pipeliner) error {
		r, h = p.PTTL(bg, key), p.PTTL(bg, e.Key)
		return nil
	}); err != nil {
		e.Fatal(err)
	}
	return r.Val(), h.Val()
}

var rwRightScenarios = map[string]func(*Env){
	// S8: no other owner's coming, leaving or lapsing shortens a reader's right, and the hash
	// lasts as long as the longest right.
	"IsNeverShortenedByOthers": func(e *Env) {
		a, b := e.Manager(), e.Manager()
		long := e.MustRLock(e.RW(a, holdfast.WithFixedLease(time.Minute)))
		key := e.Rights()[0]
		check := func(when string) {
			e.Helper()
			right, hash := e.rightAndHash(key)
			const least = time.Minute / 2
			if right < least || hash < least {
				e.Errorf("%s: the right has %v left, the hash %v, want %v", when, right, hash, least)
			}
		}
		for range 3 {
			short := e.MustRLock(e.RW(b))
			check("another came")
			e.Renews(b, 1)
			check("another was renewed")
			e.MustUnlock(short)
			check("another left")
		}
		lapsed := e.MustRLock(e.RW(b, holdfast.WithFixedLease(100*time.Millisecond)))
		<-lapsed.Done()
		e.Eventually("the right lapses", func() bool { return len(e.Rights()) == 1 })
		check("another lapsed")
		e.WantErr(lapsed.Unlock(bg), holdfast.ErrLeaseLost)
		check("the lapsed one left")
		e.Busy(e.RW(b).TryLock)
		redistest.Want(e, long.Valid(), true, "it is not valid")
		e.MustUnlock(long)
		e.Clean(a)
		e.Clean(b)
	},

	// A reader that died is not kept alive by the renewals of others, and a writer comes in
	// when the living leave.
	"OfADeadReaderEnds": func(e *Env) {
		m := e.Manager()
		p := redistest.StartProcess(e, HolderRole, "read", e.Server().Addr(), e.srv.Password(), e.Key, "700ms")
		p.Expect(e, "held")
		dead := e.Rights()[0]
		living := e.MustRLock(e.RW(m))
		p.Kill()
		e.Eventually("the dead reader's right ends", func() bool { return e.srv.Admin().Exists(bg, dead).Val() == 0 })
		e.Renews(m, 2)
		if e.srv.Admin().Exists(bg, dead).Val() != 0 || len(e.Holders()) != 2 {
			e.Errorf("rights %v, holders %v", e.Rights(), e.Holders())
		}
		e.MustUnlock(e.MustRLock(e.RW(e.Manager())))
		if len(e.Holders()) != 1 {
			e.Errorf("after another reader has left: %v", e.Holders())
		}
		waiting := e.InQueue(1, e.RW(e.Manager()))
		start := time.Now()
		e.Passes(living, "the writer", waiting)
		redistest.WantMost(e, time.Since(start), e.bound(lease/2), "the writer waited %v for a dead reader")
		e.Clean(m)
	},

	// When the reader with the longest right leaves, the hash gets that of those who stay: should they
	// die, others need not wait for longer.
	"ShortensTheHashAgain": func(e *Env) {
		long := e.MustRLock(e.RW(e.Manager(), holdfast.WithFixedLease(time.Minute)))
		short := e.MustRLock(e.RW(e.Manager()))
		if ttl := e.PTTL(); ttl < time.Minute/2 {
			e.Errorf("the hash has %v left beside the long right", ttl)
		}
		e.MustUnlock(long)
		redistest.WantMost(e, e.PTTL(), lease, "the hash has %v left without it")
		e.MustUnlock(short)
	},

	// S6: a right that has ended is not made again by the renewal, although the field is
	// still there.
	"IsNotResurrected": func(e *Env) {
		a, b := e.Manager(), e.Manager()
		stays := e.MustRLock(e.RW(a))
		first := e.Rights()
		l := e.MustRLock(e.RW(b))
		for _, k := range e.Rights() {
			if k != first[0] {
				e.srv.Admin().Del(bg, k)
			}
		}
		e.WantLost(l, holdfast.LostDeleted, holdfast.LostStolen)
		if n := e.Rights(); len(n) != 1 {
			e.Errorf("rights %v", n)
		}
		redistest.Want(e, stays.Valid(), true, "the other reader is out")
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		e.MustUnlock(stays)
		e.Clean(a)
		e.Clean(b, Tombstones)
	},

	// A late copy of the acquire does not shorten what Extend has made longer.
	"IsNotShortenedByALateCopy": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m, holdfast.WithFixedLease(lease))
		e.MustUnlock(e.MustRLock(l))
		gate := p.HoldFirstRequest(acquireOf(e.Key))
		got := e.MustRLock(l) // by a second copy
		redistest.Must(e, got.Extend(bg, time.Hour))
		mon := e.srv.Monitor(e)
		gate.Release()
		mon.Wait(e, `"hset"`, patience) // the copy has run
		e.srv.Admin().Ping(bg)
		right, hash := e.rightAndHash(e.Rights()[0])
		if right < time.Hour-time.Minute || hash < time.Hour-time.Minute {
			e.Errorf("the right has %v left, the hash %v", right, hash)
		}
		e.MustUnlock(got)
		e.Clean(m, Tombstones)
	},

	// An operator deletes the lock and a writer of the same process gets it: its readers are
	// told at once, not with their next renewal.
	"EndsWhenAWriterComesIn": func(e *Env) {
		m := e.Manager(holdfast.WithLease(time.Hour))
		reader := e.MustRLock(e.RW(m))
		e.srv.Admin().Del(bg, e.Key)
		writer := e.Soon("the writer", e.Locking(e.RW(m)))
		e.WantLost(reader, holdfast.LostStolen)
		redistest.Want(e, writer.Valid(), true, "the writer is out")
		e.WantErr(reader.Unlock(bg), holdfast.ErrLeaseLost)
		e.MustUnlock(writer)
	},

	// Tokens grow over both sides and over processes; readers that share a hold share its
	// token.
	"HasATokenOfItsOwn": func(e *Env) {
		a, b := e.Manager(holdfast.WithFencing()), e.Manager(holdfast.WithFencing())
		var last uint64
		for range 5 {
			for _, m := range []*holdfast.Manager{a, b} {
				for _, l := range []holdfast.Locker{e.RW(m), e.RW(m).RLocker()} {
					got := e.MustLock(l)
					if got.Token() <= last {
						e.Errorf("token %d after %d", got.Token(), last)
					}
					last = got.Token()
					e.MustUnlock(got)
				}
			}
		}
		held := e.MustLock(e.RW(a))
		var wg sync.WaitGroup
		var mu sync.Mutex
		tokens := make(map[*holdfast.Manager]map[uint64]bool)
		for _, m := range []*holdfast.Manager{a, b} {
			tokens[m] = make(map[uint64]bool)
			for range 3 {
				wg.Go(func() {
					got := e.MustRLock(e.RW(m))
					mu.Lock()
					tokens[m][got.Token()] = true
					mu.Unlock()
					if got.Token() <= held.Token() {
						e.Errorf("a reader's token %d after the writer's %d", got.Token(), held.Token())
					}
					e.MustUnlock(got)
				})
			}
			e.Parked(m, 3)
		}
		e.Queued(1)
		e.MustUnlock(held)
		wg.Wait()
		next := e.MustLock(e.RW(b))
		for _, set := range tokens {
			for token := range set {
				if token >= next.Token() {
					e.Errorf("a writer's token %d after a reader's %d", next.Token(), token)
				}
			}
		}
		e.MustUnlock(next)
		e.Clean(a, Tokens, Tombstones)
	},
}

package locktest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var rwOwnerScenarios = map[string]func(*Env){
	// Re-entry on both sides and across, without a command.
	"ReentryOnBothSides": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m, holdfast.WithFencing())
		for _, outer := range []holdfast.Locker{l, l.RLocker()} {
			first := e.MustLock(outer)
			ctx := first.Context(bg)
			p.Record()
			var inner []*holdfast.Lease
			sides := []holdfast.Locker{l.RLocker(), l.RLocker()}
			if outer == holdfast.Locker(l) {
				sides = append(sides, l, l.RLocker(), l)
			}
			for _, side := range sides {
				for _, take := range []func(context.Context) (*holdfast.Lease, error){side.Lock, side.TryLock} {
					got, err := take(ctx)
					redistest.Must(e, err)
					if got.Token() != first.Token() || got.Token() == 0 {
						e.Errorf("token %d, of the first %d", got.Token(), first.Token())
					}
					inner = append(inner, got)
				}
			}
			for i := len(inner) - 1; i >= 0; i-- {
				e.MustUnlock(inner[i])
			}
			if n := p.Count(isCommand); n != 0 {
				e.Errorf("%d commands for re-entry: %q", n, p.Commands())
			}
			if !first.Valid() || len(e.Holders()) != 1 {
				e.Errorf("valid %v, holders %v", first.Valid(), e.Holders())
			}
			e.MustUnlock(first)
			e.Clean(m, Tokens)
		}
	},

	// AC-69: at once, without a command, however it asks; the read right stays.
	"UpgradeIsADeadlock": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m)
		first := e.MustRLock(l)
		ctx := first.Context(bg)
		again, err := l.RLock(ctx)
		redistest.Must(e, err)
		stranger := e.MustRLock(l)
		p.Record()
		for _, c := range []context.Context{ctx, again.Context(bg)} {
			for _, take := range []func(context.Context) (*holdfast.Lease, error){
				l.Lock, l.TryLock, func(ctx context.Context) (*holdfast.Lease, error) {
					r := <-l.LockAsync(ctx)
					return r.Lease, r.Err
				},
			} {
				start := time.Now()
				_, err := take(c)
				e.WantErr(err, holdfast.ErrWouldDeadlock)
				e.WantNotErr(err, holdfast.ErrNotAcquired)
				redistest.WantMost(e, time.Since(start), e.bound(prompt), "returned after %v")
			}
		}
		for _, cmd := range p.Commands() {
			if !slices.Contains(cmd, e.Key+":x") && acquireOf(e.Key)(cmd) {
				e.Errorf("Redis was asked: %q", cmd)
			}
		}
		e.MustUnlock(again, stranger)
		_, err = l.Lock(ctx)
		e.WantErr(err, holdfast.ErrWouldDeadlock)
		e.Renews(m, 2)
		redistest.Want(e, first.Valid(), true, "the read right is gone")
		e.MustUnlock(first)
		_, err = l.Lock(ctx) // the owner holds nothing any more
		e.WantErr(err, holdfast.ErrNotAcquired, holdfast.ErrReleased)
		e.Clean(m)
	},

	// Calls under the context of another lock are owners of their own: the reader and the writer
	// exclude each other, and the writer does not wait for itself.
	"OtherLocksMakeNoUpgrade": func(e *Env) {
		m := e.Manager()
		other := e.MustLock(m.Mutex(e.Key + ":other"))
		ctx := other.Context(bg)
		l := e.RW(m)
		reader, err := l.RLock(ctx)
		redistest.Must(e, err)
		_, err = l.TryLock(ctx)
		e.WantErr(err, holdfast.ErrNotAcquired)
		e.WantNotErr(err, holdfast.ErrWouldDeadlock)
		write := l.LockAsync(ctx)
		e.Parked(m, 1)
		_, err = l.TryRLock(ctx) // a new reader, and a writer waits
		e.WantErr(err, holdfast.ErrNotAcquired)
		again, err := l.RLock(reader.Context(ctx)) // the reader itself
		redistest.Must(e, err)
		e.MustUnlock(again, reader)
		writer := <-write
		if writer.Err != nil {
			e.Fatal(writer.Err)
		}
		_, err = l.TryRLock(ctx)
		e.WantErr(err, holdfast.ErrNotAcquired)
		e.MustUnlock(writer.Lease)
		e.MustUnlock(other)
		e.Clean(m)
	},

	// AC-94: kinds that are mixed on one name never hold it at the same time unnoticed.
	"WrongKind": func(e *Env) {
		m := e.Manager()
		rw, plain, fair := e.RW(m), m.Mutex(e.Key), m.FairMutex(e.Key)
		for _, tc := range []struct{ holds, wants holdfast.Locker }{
			{rw, plain}, {rw.RLocker(), plain}, {rw, fair}, {rw.RLocker(), fair},
			{plain, rw}, {plain, rw.RLocker()}, {fair, rw}, {fair, rw.RLocker()},
		} {
			held := e.MustLock(tc.holds)
			for _, take := range []func(context.Context) (*holdfast.Lease, error){tc.wants.Lock, tc.wants.TryLock} {
				_, err := take(bg)
				e.WantErr(err, holdfast.ErrWrongKind)
				holds := "holds a read-write lock"
				if tc.holds == plain || tc.holds == fair {
					holds = "holds a mutex or fair lock"
				}
				if err != nil && !strings.HasSuffix(err.Error(), holds) {
					e.Errorf("%v, want %s", err, holds)
				}
			}
			redistest.Want(e, held.Valid(), true, "the holder was disturbed")
			e.MustUnlock(held)
		}
		// An application's hash, which is no lock at all, is left as it is.
		for _, mode := range []string{"dark", "read"} {
			e.srv.Admin().HSet(bg, mode, "mode", mode, "page", 5)
			for _, l := range []holdfast.Locker{m.RWMutex(mode), m.RWMutex(mode).RLocker()} {
				for _, take := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
					_, err := take(bg)
					e.WantErr(err, holdfast.ErrWrongKind)
				}
			}
			if all := e.srv.Admin().HGetAll(bg, mode).Val(); len(all) != 2 || all["mode"] != mode || e.srv.Admin().PTTL(bg, mode).Val() != -1 {
				e.Errorf("changed to %v", all)
			}
			e.srv.Admin().Del(bg, mode)
		}
		e.Clean(m)
	},
}

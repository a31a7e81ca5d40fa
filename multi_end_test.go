package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What cannot succeed ends Lock, also if some of the locks have been taken by then.
func TestMulti_EndsWithWhatCannotSucceed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	other := managerOn(t, srv)
	t.Run("wrong kind", func(t *testing.T) {
		m := managerOn(t, srv)
		srv.Admin().Set(t.Context(), "b", "no lock", 0)
		held := mustLock(t, other.Mutex("a"))
		failed := make(chan error, 1)
		go func() {
			_, err := multi(t, m.Mutex("a"), m.Mutex("b")).Lock(t.Context())
			failed <- err
		}()
		queued(t, srv, "redisson_lock_queue:{a}", 1)
		mustUnlock(t, held)
		wantErr(t, soonest(t, failed), holdfast.ErrWrongKind, nil)
	})
	t.Run("closed", func(t *testing.T) {
		m, closing := managerOn(t, srv), managerOn(t, srv)
		mustLock(t, other.Mutex("d"))
		failed := make(chan error, 1)
		go func() {
			_, err := multi(t, m.Mutex("c"), closing.Mutex("d")).Lock(t.Context())
			failed <- err
		}()
		queued(t, srv, "redisson_lock_queue:{d}", 1)
		if err := closing.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, soonest(t, failed), holdfast.ErrClosed, nil)
	})
}

// A lock is free, and all who stand in its queue have died: they do not refuse it to a Multi,
// as they do not to a mutex.
func TestMulti_TryLockBehindTheDead(t *testing.T) {
	t.Parallel()
	const ours, redissons = "hf-5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:1", "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:1"
	for name, c := range map[string]struct {
		id     string
		until  time.Duration // from now; 0: no time at all
		atOnce bool
	}{
		"of ours, its time over":      {ours, -time.Second, true},
		"of ours":                     {ours, time.Hour, true},
		"of Redisson, its time over":  {redissons, -time.Second, true},
		"of Redisson":                 {redissons, time.Hour, false},
		"of Redisson, without a time": {redissons, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			m, admin := managerOn(t, srv), srv.Admin()
			admin.RPush(t.Context(), "redisson_lock_queue:{b}", c.id)
			stays := "nobody" // in no queue
			if c.until != 0 {
				stays = c.id
			}
			admin.ZAdd(t.Context(), "redisson_lock_timeout:{b}", redis.Z{Score: float64(time.Now().Add(c.until).UnixMilli()), Member: stays})
			l := multi(t, m.Mutex("a"), m.Mutex("b"))
			lease, err := l.TryLock(t.Context())
			if !c.atOnce {
				wantErr(t, err, holdfast.ErrNotAcquired, nil)
				redistest.Eventually(t, patience, "its time is cut to a few seconds", func() bool {
					lease, err = l.TryLock(t.Context())
					return err == nil
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			mustUnlock(t, lease)
			admin.Del(t.Context(), "redisson_lock_timeout:{b}")                        // of nobody
			srv.RequireNoKeys(t, "holdfast_tombstones:{a}", "holdfast_tombstones:{b}") // of a TryLock that was answered late
		})
	}
}

// With a context that has ended nothing is sent.
func TestMulti_EndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := multi(t, m.Mutex("a"), m.Mutex("b"))
	for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
		_, err := lock(ctx)
		wantErr(t, err, holdfast.ErrNotAcquired, nil)
		wantErr(t, err, context.Canceled, nil)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := m.Stats().Commands; n != 0 {
		t.Errorf("%d commands", n)
	}
}

// A part is given back because another was lost, and its owner reads beside it: other readers
// may come in.
func TestMulti_EndLeavesTheReadSide(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		rw := m.RWMutex("a")
		lease := mustLock(t, multi(t, rw, m.Mutex("b")))
		read, err := rw.RLock(lease.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.ForceUnlock(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		<-lease.Done()
		mustUnlock(t, mustLock(t, other.RWMutex("a").RLocker()))
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		mustUnlock(t, read)
	})
}

// A lease of several locks ends no later than one of them is free for others, also if it takes time to
// tell everybody.
func TestMulti_EndsBeforeAPartIsFree(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, m2 := managerOn(t, srv), managerOn(t, srv)
		lease := mustLock(t, multi(t, m.Mutex("a"), m2.Mutex("b")))
		inner, err := m.Mutex("a").Lock(lease.Context(t.Context())) // is told first
		if err != nil {
			t.Fatal(err)
		}
		slow := slowEnd{t.Context(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
		if inner.Context(slow).Err() != nil {
			t.Fatal("it has ended")
		}
		closed := make(chan error, 1)
		go func() { closed <- m.Close(context.Background()) }()
		<-slow.called
		mustUnlock(t, mustLock(t, m2.Mutex("a")))
		if lease.Valid() {
			t.Error("valid, and another owner has had the lock")
		}
		close(slow.thaw)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		_ = lease.Unlock(t.Context())
	})
}

// slowEnd is a context of the user that takes its time when somebody stops listening to it.
type slowEnd struct {
	context.Context
	done, called, thaw chan struct{}
}

func (s slowEnd) Done() <-chan struct{} { return s.done }

func (s slowEnd) AfterFunc(func()) (stop func() bool) {
	return func() bool {
		select {
		case <-s.called:
		default:
			close(s.called)
		}
		<-s.thaw
		return true
	}
}

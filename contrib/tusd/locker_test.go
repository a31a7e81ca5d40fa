package holdfasttusd_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/holdfast-go/holdfast"
	holdfasttusd "github.com/holdfast-go/holdfast/contrib/tusd"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// request is a request that works on an upload.
type request struct {
	handler.Lock
	asked atomic.Int32 // how often it was asked to release the upload
}

func newRequest(t *testing.T, m *holdfast.Manager, id string, opts ...holdfast.LockOption) *request {
	t.Helper()
	l, err := holdfasttusd.New(m, opts...).NewLock(id)
	redistest.Must(t, err)
	return &request{Lock: l}
}

func (r *request) lock(ctx context.Context) error {
	return r.Lock.Lock(ctx, func() { r.asked.Add(1) })
}

func (r *request) wantAsked(t *testing.T, want int32) {
	t.Helper()
	synctest.Wait()
	redistest.Want(t, r.asked.Load(), want, "asked %d times, want %d")
}

// inFakeTime runs a test with a Redis in a bubble, which no goroutine may outlive.
func inFakeTime(t *testing.T, test func(*testing.T, *holdfasttest.Server)) {
	synctest.Test(t, func(t *testing.T) { test(t, holdfasttest.NewServer(t)) })
}

// A holder is asked once, however many wait, and by requests of its own server and of others.
func TestLock_AsksOnce(t *testing.T) {
	inFakeTime(t, func(t *testing.T, srv *holdfasttest.Server) {
		m := srv.NewManager()
		for name, waiters := range map[string]*holdfast.Manager{"another server": srv.NewManager(), "this server": m} {
			a := newRequest(t, m, name)
			redistest.Must(t, a.lock(t.Context()))
			time.Sleep(time.Minute)
			a.wantAsked(t, 0)
			b, c := newRequest(t, waiters, name), newRequest(t, waiters, name)
			first, second := redistest.Begin(func() error { return b.lock(t.Context()) }), redistest.Begin(func() error { return c.lock(t.Context()) })
			time.Sleep(100 * time.Millisecond) // a message comes; the question of each second is not sent yet
			a.wantAsked(t, 1)
			time.Sleep(time.Minute)
			a.wantAsked(t, 1)
			redistest.Must(t, a.Unlock())
			time.Sleep(2 * time.Second) // the question is sent
			if len(first) == 0 {
				b, c, first, second = c, b, second, first
			}
			redistest.Must(t, <-first)
			b.wantAsked(t, 1)
			redistest.Must(t, b.Unlock())
			redistest.Must(t, <-second)
			time.Sleep(time.Minute)
			c.wantAsked(t, 0)
			redistest.Must(t, c.Unlock())
			a.wantAsked(t, 1)
		}
	})
}

func TestLock_LostLease(t *testing.T) {
	inFakeTime(t, func(t *testing.T, srv *holdfasttest.Server) {
		a := newRequest(t, srv.NewManager(), "u")
		redistest.Must(t, a.lock(t.Context()))
		srv.Lose("tusd:u")
		time.Sleep(time.Minute)
		a.wantAsked(t, 1)
		locktest.WantErr(t, a.Unlock(), holdfast.ErrLeaseLost, nil)
		locktest.WantErr(t, a.Unlock(), holdfast.ErrNotHeld, nil)
		a.wantAsked(t, 1)
	})
}

func TestLock_RedisAway(t *testing.T) {
	inFakeTime(t, func(t *testing.T, srv *holdfasttest.Server) {
		a := newRequest(t, srv.NewManager(), "u")
		srv.Down() // at the start
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := a.lock(ctx)
		locktest.WantErr(t, err, handler.ErrLockTimeout, nil)
		locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
		srv.Up()
		redistest.Must(t, a.lock(t.Context()))
		srv.Down() // in the middle
		begun := time.Now()
		for a.asked.Load() == 0 {
			time.Sleep(time.Second)
		}
		redistest.WantMost(t, time.Since(begun), 31*time.Second, "asked after %v")
		locktest.WantErr(t, a.Unlock(), holdfast.ErrLeaseLost, nil)
		srv.Up()
		a = newRequest(t, srv.NewManager(), "u")
		redistest.Must(t, a.lock(t.Context()))
		srv.Down() // at the end
		locktest.WantErr(t, a.Unlock(), holdfast.ErrNotReleased, nil)
		a.wantAsked(t, 0)
		srv.Up()
	})
}

func TestLock_Errors(t *testing.T) {
	inFakeTime(t, func(t *testing.T, srv *holdfasttest.Server) {
		m := srv.NewManager()
		srv.Hold(srv.NewManager().Mutex("tusd:u"))
		locktest.WantErr(t, newRequest(t, m, "u").Unlock(), holdfast.ErrNotHeld, nil)
		locktest.WantErr(t, newRequest(t, m, "u", holdfast.WithWait(time.Second)).lock(t.Context()), handler.ErrLockTimeout, nil)
		locktest.WantErr(t, newRequest(t, m, "u", holdfast.WithWait(-1)).lock(t.Context()), holdfast.ErrInvalidOption, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := newRequest(t, m, "u").lock(ctx)
		locktest.WantErr(t, err, handler.ErrLockTimeout, nil)
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)

		a := newRequest(t, m, "v")
		redistest.Must(t, a.lock(t.Context()))
		redistest.Must(t, m.Close(t.Context()))
		a.wantAsked(t, 1)
		locktest.WantErr(t, a.lock(t.Context()), handler.ErrServerShutdown, nil)
	})
}

// Each id has a lock of its own, whatever its characters.
func TestLock_AnyID(t *testing.T) {
	inFakeTime(t, func(t *testing.T, srv *holdfasttest.Server) {
		m := srv.NewManager()
		long := strings.Repeat("{", 5000)
		ids := []string{"", " ", "+", "%20", "{", "}", "{}", "{u}", "{u}:timeout", "u", "U", "a/b", "a:b", "a+b", "ü", "\x00\xff", "sha256:", "holdfast_u",
			"redisson_lock_queue:{u}", "u:1:rwlock_timeout:1", long, long + "{", long[1:]}
		names := make(map[string]bool)
		for _, id := range ids {
			if err := newRequest(t, m, id).lock(t.Context()); err != nil {
				t.Errorf("%.30q: %v", id, err)
			}
		}
		for _, name := range srv.Held() {
			names[name] = true
		}
		redistest.Want(t, len(names), len(ids), "%d locks for %d uploads")
		for _, name := range []string{"tusd:u", "tusd:a%2Fb", "tusd:a%2Bb"} {
			redistest.Want(t, names[name], true, name+" is held: %v, want %v")
		}
	})
}

package holdfastcertmagic_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
	holdfastcertmagic "github.com/holdfast-go/holdfast/contrib/certmagic"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var (
	_ certmagic.Storage          = (*holdfastcertmagic.Storage)(nil)
	_ certmagic.TryLocker        = (*holdfastcertmagic.Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*holdfastcertmagic.Storage)(nil)
)

func managerOn(t *testing.T, srv *redistest.Server) *holdfast.Manager {
	t.Helper()
	return locktest.ManagerAsIs(t, srv.Client(t))
}

// storageOn is that of another process.
func storageOn(t *testing.T, srv *redistest.Server, opts ...holdfast.LockOption) *holdfastcertmagic.Storage {
	t.Helper()
	return holdfastcertmagic.Wrap(nil, managerOn(t, srv), opts...)
}

func wantTry(t *testing.T, s *holdfastcertmagic.Storage, name string, want bool) {
	t.Helper()
	ok, err := s.TryLock(t.Context(), name)
	if ok != want || err != nil {
		t.Errorf("TryLock: %v, %v; want %v", ok, err, want)
	}
}

// within calls f with a context that ends soon.
func within(t *testing.T, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	return f(ctx)
}

func locking(s *holdfastcertmagic.Storage) func(context.Context) error {
	return func(ctx context.Context) error { return s.Lock(ctx, "a") }
}

func TestStorage_Excludes(t *testing.T) {
	srv := redistest.Start(t)
	a, b := storageOn(t, srv), storageOn(t, srv)
	redistest.Must(t, a.Lock(t.Context(), "a"))
	for _, s := range []*holdfastcertmagic.Storage{a, b} { // another goroutine, another process
		wantTry(t, s, "a", false)
		locktest.WantErr(t, within(t, locking(s)), context.DeadlineExceeded, nil)
	}
	wantTry(t, b, "other", true)
	redistest.Must(t, a.RenewLockLease(t.Context(), "a", time.Hour))

	waits := redistest.Begin(func() error { return b.Lock(t.Context(), "a") })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	redistest.Must(t, a.Unlock(ended, "a"))
	redistest.Must(t, redistest.Next(t, waits, "the waiter does not get the lock"))
	wantTry(t, a, "a", false)
	_, err := b.TryLock(ended, "a")
	locktest.WantErr(t, err, context.Canceled, nil)
	redistest.Must(t, b.Unlock(t.Context(), "a"))
}

func TestStorage_NotLocked(t *testing.T) {
	srv := redistest.Start(t)
	a, b := storageOn(t, srv), storageOn(t, srv)
	redistest.Must(t, b.Lock(t.Context(), "a"))
	locktest.WantErr(t, a.Unlock(t.Context(), "a"), holdfast.ErrNotHeld, nil)
	locktest.WantErr(t, a.RenewLockLease(t.Context(), "a", time.Second), holdfast.ErrNotHeld, nil)
	wantTry(t, a, "a", false)
	redistest.Must(t, b.Unlock(t.Context(), "a"))
	locktest.WantErr(t, b.Unlock(t.Context(), "a"), holdfast.ErrNotHeld, nil)
}

// All names can be locked at the same time, so no two of them have the same lock.
func TestStorage_NamesAreDifferentLocks(t *testing.T) {
	server := holdfasttest.NewServer(t)
	m := server.NewManager(holdfast.WithNameMapper(func(name string) string { return strings.Repeat("p", 400) + name }))
	s := holdfastcertmagic.Wrap(nil, m)
	long := strings.Repeat("x", 513)
	names := []string{"", " ", "+", "%20", "a", "A", "a b", "a+b", "a_b", "a/b", "a%2Fb", "/a", "{a}", "{a", "a}", "{", "{}", "a{b}c", "{a}:timeout",
		"issue_cert_*.example.com", "issue_cert_wildcard_.example.com", "certmagic:a", "holdfast_a", "redisson_lock_queue:{a}",
		"a:x:rwlock_timeout:1", "sha256:a", "ü", "\xff", "\x00", "\n", long[:512], long, long + "x", long + "/", strings.Repeat("{", 100_000)}
	for _, name := range names {
		if ok, err := s.TryLock(t.Context(), name); !ok || err != nil {
			t.Errorf("%.20q: %v, %v", name, ok, err)
		}
	}
	redistest.Want(t, len(server.Held()), len(names), "%d locks for %d names")
	for _, name := range names {
		redistest.Check(t, s.Unlock(t.Context(), name))
	}
}

// What the storage keeps passes through, and its own locks are not used.
func TestStorage_PassesFilesThrough(t *testing.T) {
	s := holdfastcertmagic.Wrap(&certmagic.FileStorage{Path: t.TempDir()}, nil)
	redistest.Must(t, s.Store(t.Context(), "certificates/a", []byte("a")))
	value, err := s.Load(t.Context(), "certificates/a")
	redistest.Must(t, err)
	redistest.Want(t, string(value), "a", "loaded %q, want %q")
	keys, err := s.List(t.Context(), "", true)
	redistest.Must(t, err)
	redistest.Want(t, strings.Join(keys, " "), "certificates certificates/a", "keys %q, want %q")
	redistest.Must(t, s.Delete(t.Context(), "certificates/a"))
	_, err = s.Stat(t.Context(), "certificates/a")
	locktest.WantErr(t, err, fs.ErrNotExist, nil)
	locktest.WantErr(t, s.Lock(t.Context(), "a"), holdfast.ErrInvalidOption, nil)
}

type secret struct {
	certmagic.Storage
	Password string
}

func TestStorage_LogsNoFields(t *testing.T) {
	redistest.Want(t, holdfastcertmagic.Wrap(&secret{Password: "x"}, nil).String(), "*holdfastcertmagic_test.secret", "%q, want %q")
	redistest.Want(t, holdfastcertmagic.Wrap(&certmagic.FileStorage{Path: "dir"}, nil).String(), "FileStorage:dir", "%q, want %q")
}

func TestStorage_RedisAwayAtLock(t *testing.T) {
	srv := redistest.Start(t)
	s, bounded := storageOn(t, srv), storageOn(t, srv, holdfast.WithWait(100*time.Millisecond))
	srv.Kill()
	locktest.WantErr(t, bounded.Lock(t.Context(), "a"), holdfast.ErrUnavailable, nil)
	_, err := s.TryLock(t.Context(), "a")
	locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
	waits := redistest.Begin(func() error { return s.Lock(t.Context(), "a") })
	srv.Restart()
	redistest.Must(t, redistest.Next(t, waits, "Lock does not return when Redis is back"))
	redistest.Must(t, s.Unlock(t.Context(), "a"))
}

func TestStorage_RedisAwayInTheMiddle(t *testing.T) {
	srv := redistest.Start(t)
	s := storageOn(t, srv, holdfast.WithLease(time.Second))
	redistest.Must(t, s.Lock(t.Context(), "a"))
	redistest.Must(t, s.Lock(t.Context(), "b"))
	srv.Kill()
	renew := func(ctx context.Context) error { return s.RenewLockLease(ctx, "a", time.Second) }
	redistest.Eventually(t, redistest.Patience, "the lease is lost", func() bool { return within(t, renew) != nil })
	locktest.WantErr(t, within(t, renew), holdfast.ErrUnavailable, nil)
	locktest.WantErr(t, s.Unlock(t.Context(), "b"), holdfast.ErrLeaseLost, nil)
	srv.Restart()
	redistest.Must(t, renew(t.Context())) // locks again
	wantTry(t, storageOn(t, srv), "a", false)
	redistest.Must(t, s.Lock(t.Context(), "b"))
	redistest.Must(t, s.Unlock(t.Context(), "a"))
}

func TestStorage_RedisAwayAtUnlock(t *testing.T) {
	srv := redistest.Start(t)
	s := storageOn(t, srv)
	redistest.Must(t, s.Lock(t.Context(), "a"))
	srv.Kill()
	locktest.WantErr(t, s.Unlock(t.Context(), "a"), holdfast.ErrNotReleased, nil)
	srv.Restart()
	redistest.Must(t, s.Lock(t.Context(), "a"))
}

// While a caller works on without its lease, another process can get the lock, and no other caller of its own process can.
func TestStorage_LostLease(t *testing.T) {
	srv := redistest.Start(t)
	a, b := storageOn(t, srv, holdfast.WithLease(time.Second)), storageOn(t, srv)
	locks := managerOn(t, srv)
	renew := func(ctx context.Context) error { return a.RenewLockLease(ctx, "a", time.Second) }
	loseTo := func(b *holdfastcertmagic.Storage) {
		t.Helper()
		locktest.MustForceUnlock(t, locks, "certmagic:a")
		redistest.Must(t, b.Lock(t.Context(), "a"))
		redistest.Eventually(t, redistest.Patience, "a learns of the loss", func() bool { return within(t, renew) != nil })
	}
	redistest.Must(t, a.Lock(t.Context(), "a"))
	loseTo(b)
	redistest.Must(t, b.Unlock(t.Context(), "a"))
	wantTry(t, a, "a", false)
	locktest.WantErr(t, within(t, locking(a)), context.DeadlineExceeded, nil)
	wantTry(t, b, "a", true)
	renewed := redistest.Begin(func() error { return renew(t.Context()) }) // a new attempt of the first caller
	locktest.AwaitWaiters(t, locks, "certmagic:a", 1)
	redistest.Must(t, b.Unlock(t.Context(), "a"))
	redistest.Must(t, redistest.Next(t, renewed, "the lock is not taken again"))
	wantTry(t, b, "a", false)

	loseTo(b)
	renewed = redistest.Begin(func() error { return renew(t.Context()) })
	locktest.AwaitWaiters(t, locks, "certmagic:a", 1)
	waits := redistest.Begin(func() error { return a.Lock(t.Context(), "a") })
	locktest.WantErr(t, a.Unlock(t.Context(), "a"), holdfast.ErrLeaseLost, nil)
	wantTry(t, a, "a", false) // that Unlock has not freed the lock of b
	redistest.Must(t, b.Unlock(t.Context(), "a"))
	locktest.WantErr(t, redistest.Next(t, renewed, "RenewLockLease waits on after Unlock"), holdfast.ErrNotHeld, nil)
	redistest.Must(t, redistest.Next(t, waits, "the next caller does not get the lock"))
	redistest.Must(t, a.Unlock(t.Context(), "a"))
}

// A caller that waits for one of its own process gets the lock when that unlocks, whether it has locked again or not.
func TestStorage_NextCallerAfterALoss(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := holdfasttest.NewServer(t)
			s := holdfastcertmagic.Wrap(nil, server.NewManager())
			redistest.Must(t, s.Lock(t.Context(), "a"))
			server.Lose("certmagic:a")
			time.Sleep(time.Minute) // a renewal notices it
			next := redistest.Begin(func() error { return s.Lock(t.Context(), "a") })
			synctest.Wait()
			redistest.Want(t, len(server.Held()), 0, "a caller that waits for its own process holds %d locks")
			if again {
				redistest.Must(t, s.RenewLockLease(t.Context(), "a", 0))
			}
			err := s.Unlock(t.Context(), "a")
			redistest.Want(t, errors.Is(err, holdfast.ErrLeaseLost), !again, "lost: %v, want %v")
			redistest.Must(t, redistest.Next(t, next, "the next caller does not get the lock"))
			redistest.Must(t, s.Unlock(t.Context(), "a"))
		})
	}
}

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wantMissing fails unless err says of call that what is missing.
func wantMissing(t *testing.T, err error, call, what string) {
	t.Helper()
	var option *holdfast.OptionError
	if !errors.As(err, &option) || !errors.Is(err, holdfast.ErrInvalidOption) || !strings.Contains(err.Error(), call+": "+what+" is nil") {
		t.Errorf("%s without %s: %v", call, what, err)
	}
}

// panics returns what do panics with.
func panics(t *testing.T, do func()) (err error) {
	t.Helper()
	defer func() { err, _ = recover().(error) }()
	do()
	t.Error("no panic")
	return nil
}

// A call without a context is an error, and Redis is asked nothing.
func TestArguments_NilContext(t *testing.T) {
	t.Parallel()
	all := several.Servers(t, 3)
	m, others := locktest.ManagerOn(t, all[0]), []*holdfast.Manager{locktest.ManagerOn(t, all[1]), locktest.ManagerOn(t, all[2])}
	redlock, err := holdfast.NewRedlock(m.Mutex("r"), others[0].Mutex("r"), others[1].Mutex("r"))
	redistest.Must(t, err)
	lease, whole := locktest.MustLock(t, m.Mutex("held")), locktest.MustLock(t, several.Multi(t, m.Mutex("held:1"), m.Mutex("held:2")))
	monitor := all[0].Monitor(t)
	var none context.Context
	rw := m.RWMutex("rw")
	for call, lock := range map[string]func(context.Context) (*holdfast.Lease, error){
		"Lock": m.Mutex("a").Lock, "TryLock": m.Mutex("a").TryLock, "RLock": rw.RLock, "TryRLock": rw.TryRLock,
	} {
		_, err := lock(none)
		wantMissing(t, err, call, "context")
	}
	for _, l := range []holdfast.Locker{m.Mutex("a"), m.FairMutex("a"), rw, redlock, several.Multi(t, m.Mutex("a"), rw)} {
		_, err := l.Lock(none)
		wantMissing(t, err, "Lock", "context")
		_, err = l.TryLock(none)
		wantMissing(t, err, "TryLock", "context")
		wantMissing(t, holdfast.Do(none, l, func(context.Context, *holdfast.Lease) error { t.Error("called"); return nil }), "Do", "context")
		wantMissing(t, panics(t, holdfast.SyncLocker(none, l).Lock), "Lock", "context")
	}
	for call, lock := range map[string]func(context.Context) <-chan holdfast.Result{
		"LockAsync": m.FairMutex("a").LockAsync, "RLockAsync": rw.RLockAsync,
	} {
		wantMissing(t, (<-lock(none)).Err, call, "context")
	}
	_, err = m.Inspect(none, "a")
	wantMissing(t, err, "Inspect", "context")
	_, err = m.ForceUnlock(none, "held")
	wantMissing(t, err, "ForceUnlock", "context")
	wantMissing(t, m.Close(none), "Close", "context")
	for _, l := range []*holdfast.Lease{lease, whole} {
		wantMissing(t, l.Extend(none, holdfast.DefaultLease), "Extend", "context")
		wantMissing(t, panics(t, func() { l.Context(none) }), "Lease.Context", "parent")
	}
	wantMissing(t, panics(t, func() { holdfast.WithoutOwner(none) }), "WithoutOwner", "context")
	redistest.Must(t, all[0].Admin().Echo(t.Context(), "asked").Err())
	monitor.Wait(t, `"echo" "asked"`, locktest.Patience)
	for _, line := range monitor.Lines() {
		if strings.Contains(strings.ToLower(line), "evalsha") {
			t.Errorf("sent: %s", line)
		}
	}
	for _, l := range []*holdfast.Lease{lease, whole} { // it does not stay held for that
		redistest.Check(t, locktest.UntilAnswered(func() error { return l.Unlock(none) }))
	}
	redistest.Eventually(t, locktest.Patience, "all is free", func() bool { return len(locktest.LastingKeys(all[0])) == 0 })
}

// What is nil, or was made by no manager, says so.
func TestArguments_NilHandles(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t))
		ctx := t.Context()
		var lease *holdfast.Lease
		wantMissing(t, lease.Unlock(ctx), "Unlock", "lease")
		wantMissing(t, lease.Extend(ctx, holdfast.DefaultLease), "Extend", "lease")
		fn := func(context.Context, *holdfast.Lease) error { t.Error("called"); return nil }
		for _, l := range []holdfast.Locker{
			(*holdfast.Mutex)(nil), (*holdfast.FairMutex)(nil), (*holdfast.RWMutex)(nil), (*holdfast.RWMutex)(nil).RLocker(),
			(*holdfast.Multi)(nil), (*holdfast.Redlock)(nil),
		} {
			_, err := l.TryLock(ctx)
			wantMissing(t, err, "Lock", "lock") // of the one side TryLock, of the other TryRLock
			wantMissing(t, holdfast.Do(ctx, l, fn), "Lock", "lock")
		}
		wantMissing(t, (<-(*holdfast.Mutex)(nil).LockAsync(ctx)).Err, "LockAsync", "lock")
		wantMissing(t, holdfast.Do(ctx, nil, fn), "Do", "lock")
		wantMissing(t, holdfast.Do(ctx, m.Mutex("a"), nil), "Do", "function")
		for _, l := range []holdfast.Locker{
			&holdfast.Mutex{}, &holdfast.FairMutex{}, &holdfast.RWMutex{}, (&holdfast.RWMutex{}).RLocker(), &holdfast.Multi{}, &holdfast.Redlock{},
			(*holdfast.Manager)(nil).Mutex("a"), several.Multi(t, (*holdfast.Manager)(nil).Mutex("a")),
		} {
			_, err := l.Lock(ctx)
			locktest.WantErr(t, err, holdfast.ErrInvalidOption, nil)
		}
		for _, l := range []*holdfast.Lease{nil, {}} {
			under := l.Context(ctx)
			<-l.Done()
			<-under.Done()
			if l.Valid() || l.Name() != "" || l.Token() != 0 || !l.Deadline().IsZero() {
				t.Errorf("valid %v, name %q, token %d, deadline %v", l.Valid(), l.Name(), l.Token(), l.Deadline())
			}
			for _, err := range []error{l.Unlock(ctx), l.Extend(ctx, time.Minute), l.Err(), context.Cause(under)} {
				locktest.WantErr(t, err, holdfast.ErrInvalidOption, nil)
			}
		}
		var none *holdfast.Manager
		_, err := none.Inspect(ctx, "a")
		wantMissing(t, err, "Inspect", "manager")
		_, err = none.ForceUnlock(ctx, "a")
		wantMissing(t, err, "ForceUnlock", "manager")
		wantMissing(t, none.Close(ctx), "Close", "manager")
		for _, zero := range []*holdfast.Manager{none, {}} {
			_, inspected := zero.Inspect(ctx, "a")
			_, freed := zero.ForceUnlock(ctx, "a")
			_, freedOf := zero.ForceUnlockOf(ctx, "a", "b")
			_, tried := zero.FairMutex("a").TryLock(ctx)
			_, read := zero.RWMutex("a").RLock(ctx)
			for _, err := range []error{inspected, freed, freedOf, tried, read, (<-zero.Mutex("a").LockAsync(ctx)).Err, zero.Close(ctx)} {
				locktest.WantErr(t, err, holdfast.ErrInvalidOption, nil)
			}
			for l := range zero.Locks() {
				t.Errorf("%+v", l)
			}
			if n := len(zero.Contended(1)); n != 0 || zero.Stats() != (holdfast.Stats{}) {
				t.Errorf("%d contended, %+v", n, zero.Stats())
			}
		}
		for _, l := range []holdfast.Locker{m.Mutex("named"), m.FairMutex("named"), m.RWMutex("named"), m.RWMutex("named").RLocker(), several.Multi(t, m.Mutex("named"))} {
			err := panics(t, holdfast.SyncLocker(ctx, l).Unlock)
			if locktest.WantErr(t, err, holdfast.ErrNotHeld, nil); !strings.Contains(fmt.Sprint(err), `"named"`) {
				t.Errorf("%T: %v does not name the lock", l, err)
			}
		}
		if err := panics(t, holdfast.SyncLocker(ctx, nil).Unlock); !errors.Is(err, holdfast.ErrNotHeld) || !strings.Contains(err.Error(), "has locked nothing") {
			t.Error(err)
		}
		if info := locktest.Inspected(t, m, "a"); info.Held {
			t.Error("a call without a function has locked")
		}
	})
}

func TestNew_RefusesClientsItCannotServe(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"nil":                      nil,
		"nil client":               (*redis.Client)(nil),
		"nil cluster":              (*redis.ClusterClient)(nil),
		"ring":                     redis.NewRing(&redis.RingOptions{}),
		"endless reads":            redis.NewClient(&redis.Options{ReadTimeout: -1}),
		"no deadlines":             redis.NewClient(&redis.Options{ReadTimeout: -2}),
		"endless reads, cluster":   redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: -1}),
		"endless reads, fail-over": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", ReadTimeout: -1}),
	} {
		_, err := holdfast.New(client)
		if !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: error %v", name, err)
		}
		if !strings.HasPrefix(name, "nil") {
			_ = client.Close()
		}
	}
}

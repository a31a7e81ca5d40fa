package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
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
	all := servers(t, 3)
	m, others := managerOn(t, all[0]), []*holdfast.Manager{managerOn(t, all[1]), managerOn(t, all[2])}
	redlock, err := holdfast.NewRedlock(m.Mutex("r"), others[0].Mutex("r"), others[1].Mutex("r"))
	if err != nil {
		t.Fatal(err)
	}
	lease, several := mustLock(t, m.Mutex("held")), mustLock(t, multi(t, m.Mutex("held:1"), m.Mutex("held:2")))
	monitor := all[0].Monitor(t)
	var none context.Context
	rw := m.RWMutex("rw")
	for call, lock := range map[string]func(context.Context) (*holdfast.Lease, error){
		"Lock": m.Mutex("a").Lock, "TryLock": m.Mutex("a").TryLock, "RLock": rw.RLock, "TryRLock": rw.TryRLock,
	} {
		_, err := lock(none)
		wantMissing(t, err, call, "context")
	}
	for _, l := range []holdfast.Locker{m.Mutex("a"), m.FairMutex("a"), rw, redlock, multi(t, m.Mutex("a"), rw)} {
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
	for _, l := range []*holdfast.Lease{lease, several} {
		wantMissing(t, l.Extend(none, holdfast.DefaultLease), "Extend", "context")
		wantMissing(t, panics(t, func() { l.Context(none) }), "Lease.Context", "parent")
	}
	wantMissing(t, panics(t, func() { holdfast.WithoutOwner(none) }), "WithoutOwner", "context")
	if err := all[0].Admin().Echo(t.Context(), "asked").Err(); err != nil {
		t.Fatal(err)
	}
	monitor.Wait(t, `"echo" "asked"`, patience)
	for _, line := range monitor.Lines() {
		if strings.Contains(strings.ToLower(line), "evalsha") {
			t.Errorf("sent: %s", line)
		}
	}
	for _, l := range []*holdfast.Lease{lease, several} { // it does not stay held for that
		if err := untilAnswered(func() error { return l.Unlock(none) }); err != nil {
			t.Error(err)
		}
	}
	redistest.Eventually(t, patience, "all is free", func() bool { return len(lastingKeys(all[0])) == 0 })
}

// What is nil, or was made by no manager, says so.
func TestArguments_NilHandles(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := managerOn(t, redistest.Start(t))
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
			(*holdfast.Manager)(nil).Mutex("a"), multi(t, (*holdfast.Manager)(nil).Mutex("a")),
		} {
			_, err := l.Lock(ctx)
			wantErr(t, err, holdfast.ErrInvalidOption, nil)
		}
		wantErr(t, (&holdfast.Lease{}).Unlock(ctx), holdfast.ErrInvalidOption, nil)
		var none *holdfast.Manager
		_, err := none.Inspect(ctx, "a")
		wantMissing(t, err, "Inspect", "manager")
		_, err = none.ForceUnlock(ctx, "a")
		wantMissing(t, err, "ForceUnlock", "manager")
		wantMissing(t, none.Close(ctx), "Close", "manager")
		if info := inspected(t, m, "a"); info.Held {
			t.Error("a call without a function has locked")
		}
	})
}

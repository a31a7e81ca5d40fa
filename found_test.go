package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func viaProxy(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) (*holdfast.Manager, *redistest.Proxy) {
	t.Helper()
	p := srv.Proxy(t)
	m, err := holdfast.New(p.Client(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m, p
}

// scriptOf matches calls of a script whose first key is key and which have arg among the
// arguments behind their keys.
func scriptOf(key string, with func(cmd []string) bool) redistest.Match {
	return func(cmd []string) bool {
		return (strings.EqualFold(cmd[0], "evalsha") || strings.EqualFold(cmd[0], "eval")) && len(cmd) > 3 && cmd[3] == key && (with == nil || with(cmd))
	}
}

// A request that was sent for a TryLock is taken over by a waiter behind it: that did not
// ask for a place in the queue, so its refusal must not be taken for one that did.
func TestFound_RequestTakenOverFromTryLock(t *testing.T) {
	srv := redistest.Start(t)
	holder := managerOn(t, srv)
	m, p := viaProxy(t, srv, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour))
	mustUnlock(t, mustLock(t, m.Mutex("a"))) // connected
	held := mustLock(t, holder.Mutex("a"))
	other := mustLock(t, holder.Mutex("other"))
	defer other.Unlock(t.Context())
	_ = m.Mutex("other").LockAsync(t.Context())
	eventually(t, "the inbox is heard", func() bool {
		return srv.Admin().PubSubNumPat(t.Context()).Err() == nil && len(srv.Admin().PubSubChannels(t.Context(), "holdfast_inbox:*").Val()) == 1
	})
	gate := p.HoldReply(scriptOf("a", nil))
	ctx, cancel := context.WithCancel(t.Context())
	tried := make(chan error, 1)
	go func() {
		_, err := m.Mutex("a").TryLock(ctx)
		tried <- err
	}()
	gate.Wait(t)
	got := m.Mutex("a").LockAsync(t.Context())
	cancel()
	if err := <-tried; err == nil {
		t.Fatal("granted")
	}
	gate.Release()
	eventually(t, "refused", func() bool { return m.Stats().Waiting == 2 && p.Count(scriptOf("a", nil)) > 0 })
	time.Sleep(300 * time.Millisecond)
	t.Log("in the queue:", srv.Admin().LRange(t.Context(), "redisson_lock_queue:{a}", 0, -1).Val())
	mustUnlock(t, held)
	select {
	case r := <-got:
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		mustUnlock(t, r.Lease)
	case <-time.After(3 * time.Second):
		t.Error("not granted 3s after the release")
	}
}

// Whoever waits for one of several locks is not told what is wrong with another of them.
func TestFound_BystanderOfAMulti(t *testing.T) {
	srv := redistest.Start(t)
	m, p := viaProxy(t, srv)
	mustUnlock(t, mustLock(t, m.Mutex("a"))) // connected
	srv.Admin().Set(t.Context(), "b", "no lock", 0)
	gate := p.HoldReply(scriptOf("a", func(cmd []string) bool { return cmd[2] == "6" }))
	tried := make(chan error, 1)
	l := multi(t, m.Mutex("a"), m.Mutex("b"))
	go func() {
		_, err := l.TryLock(t.Context())
		tried <- err
	}()
	gate.Wait(t)
	got := m.Mutex("a").LockAsync(t.Context())
	gate.Release()
	wantErr(t, <-tried, holdfast.ErrWrongKind, nil)
	r := <-got
	if r.Err != nil {
		t.Fatalf("a is free, and who waits for it is told: %v", r.Err)
	}
	mustUnlock(t, r.Lease)
}

// A copy of the request for the write side that arrives after a downgrade and the release
// of the read side takes the lock for nobody.
func TestFound_LateCopyAfterADowngrade(t *testing.T) {
	srv := redistest.Start(t)
	m, p := viaProxy(t, srv, holdfast.WithLease(10*time.Second))
	mustUnlock(t, mustLock(t, m.RWMutex("warm")))
	gate := p.HoldRequest(scriptOf("a", nil)) // the first copy
	l := m.RWMutex("a")
	write := mustLock(t, l)
	gate.Wait(t)
	read, err := l.RLock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, write)
	mustUnlock(t, read)
	t.Log("tombstones:", srv.Admin().ZRange(t.Context(), "holdfast_tombstones:{a}", 0, -1).Val())
	mon := srv.Monitor(t)
	gate.Release()
	mon.Wait(t, `"exists" "a"`, 2*time.Second)
	time.Sleep(100 * time.Millisecond)
	if h := srv.Admin().HGetAll(t.Context(), "a").Val(); len(h) > 0 {
		t.Errorf("held for nobody: %v, for %v", h, srv.Admin().PTTL(t.Context(), "a").Val())
	}
}

// What Extend has added is there after a downgrade, or Deadline does not say so.
func TestFound_DowngradeOfAnExtendedLease(t *testing.T) {
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	l := m.RWMutex("a", holdfast.WithFixedLease(time.Second))
	write := mustLock(t, l)
	read, err := l.RLock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, write)
	t.Log("claimed for", time.Until(read.Deadline()))
	keys := srv.Admin().Keys(t.Context(), "*rwlock_timeout*").Val()
	if len(keys) != 1 {
		t.Fatal(keys)
	}
	if right := srv.Admin().PTTL(t.Context(), keys[0]).Val(); time.Until(read.Deadline()) > right {
		t.Errorf("claimed for %v, the right in Redis ends in %v", time.Until(read.Deadline()), right)
	}
	select {
	case <-read.Done():
		t.Errorf("ended %v before its deadline: %v", time.Until(read.Deadline()), read.Err())
	case <-time.After(2 * time.Second):
	}
	_ = read.Unlock(t.Context())
}

// Extend that a downgrade overtakes has prolonged nothing.
func TestFound_ExtendOvertakenByADowngrade(t *testing.T) {
	srv := redistest.Start(t)
	m, p := viaProxy(t, srv)
	mustUnlock(t, mustLock(t, m.RWMutex("warm")))
	l := m.RWMutex("a", holdfast.WithFixedLease(5*time.Second))
	write := mustLock(t, l)
	read, err := l.RLock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	gate := p.HoldRequest(scriptOf("a", func(cmd []string) bool { return cmd[2] == "1" }))
	extended := make(chan error, 1)
	go func() { extended <- read.Extend(t.Context(), time.Minute) }()
	gate.Wait(t)
	mustUnlock(t, write)
	gate.Release()
	err = <-extended
	if d := time.Until(read.Deadline()); err == nil && d < 59*time.Second {
		t.Errorf("Extend by a minute returned nil, and the lease is claimed for %v", d)
	}
	_ = read.Unlock(t.Context())
}

package faults

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Tombstones that are none are no refusal, of whatever kind the lock is: nobody holds it.
func TestLock_TombstonesOfAnotherKind(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	for name, l := range map[string]holdfast.Locker{
		"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(),
		"multi": several.Multi(t, m.Mutex("a"), m.Mutex("b")),
	} {
		srv.Admin().Set(t.Context(), "holdfast_tombstones:{a}", "no tombstones", 0)
		for _, try := range []func(context.Context) (*holdfast.Lease, error){l.TryLock, l.Lock} {
			_, err := try(t.Context())
			if !t.Run(name, func(t *testing.T) { wantErr(t, err, holdfast.ErrWrongKind, nil) }) {
				break
			}
		}
		srv.Admin().Del(t.Context(), "holdfast_tombstones:{a}")
		mustUnlock(t, mustLock(t, l))
	}
}

// So are they for who comes to stand behind another of its process.
func TestFair_JoinsWithTombstonesOfAnotherKind(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, holder := managerOn(t, srv, locktest.Unasked...), managerOn(t, srv)
	held, other := mustLock(t, holder.FairMutex("a")), mustLock(t, holder.Mutex("other"))
	later := m.Mutex("other").LockAsync(t.Context()) // so that its inbox is heard, and nobody asks because of that
	redistest.Eventually(t, patience, "the inbox is heard", func() bool {
		return len(srv.Admin().PubSubChannels(t.Context(), "holdfast_inbox:*").Val()) == 1
	})
	first := m.FairMutex("a").LockAsync(t.Context())
	queued(t, srv, "redisson_lock_queue:{a}", 1)
	srv.Admin().Set(t.Context(), "holdfast_tombstones:{a}", "no tombstones", 0)
	second := m.FairMutex("a").LockAsync(t.Context())
	wantErr(t, (<-second).Err, holdfast.ErrWrongKind, nil)

	wantErr(t, (<-first).Err, holdfast.ErrWrongKind, nil)
	if n := m.Stats().Troubles; n != 0 {
		t.Errorf("%d requests in trouble", n)
	}
	srv.Admin().Del(t.Context(), "holdfast_tombstones:{a}")
	mustUnlock(t, held)
	mustUnlock(t, other)
	mustUnlock(t, (<-later).Lease)
}

// Who may not read what is there is not told that it is something else.
func TestLock_DeniedReadsAreNoWrongKind(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		admin := srv.Admin()
		holder := managerOn(t, srv)
		for _, denied := range []string{"-hlen", "-zscore", "-hget"} {
			admin.Do(t.Context(), "ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "&*", "+@all", denied)
			opt := srv.Options()
			opt.Username, opt.Password = "limited", "secret"
			client := redis.NewClient(opt)
			t.Cleanup(func() { _ = client.Close() })
			m, err := holdfast.New(client)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close(context.Background()) })
			admin.ZAdd(t.Context(), "holdfast_tombstones:{a}", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: "somebody"})
			for name, l := range map[string]struct{ held, wanted holdfast.Locker }{
				"mutex": {holder.Mutex("a"), m.Mutex("a")}, "fair": {holder.FairMutex("a"), m.FairMutex("a")},
				"write": {holder.RWMutex("a"), m.RWMutex("a")}, "read": {holder.RWMutex("a"), m.RWMutex("a").RLocker()},
				"multi": {holder.Mutex("a"), several.Multi(t, m.Mutex("a"), m.Mutex("b"))},
			} {
				held := mustLock(t, l.held)
				if _, err := l.wanted.TryLock(t.Context()); err == nil || errors.Is(err, holdfast.ErrWrongKind) {
					t.Errorf("%s, %s: %v", denied, name, err)
				}
				mustUnlock(t, held)
			}
		}
	})
}

// A lock may need tombstones again and again. They are kept for as long as each is good for.
func TestTombstones_AreNotKept(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, p := managerVia(t, srv)
		const key = "holdfast_tombstones:{a}"
		srv.Admin().ZAdd(t.Context(), key, redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: "hf-old:1"})
		p.LoseReply(scriptOn("a"), 1)
		mustUnlock(t, mustLock(t, m.Mutex("a")))
		if ids := srv.Admin().ZRange(t.Context(), key, 0, -1).Val(); len(ids) != 1 || ids[0] == "hf-old:1" {
			t.Errorf("tombstones of %q", ids)
		}
		srv.RequireTTLs(t)
	})
}

// Where an ACL forbids to say for how long, there are none.
func TestTombstones_AreNotKeptForEver(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		allow := func(rules ...any) {
			srv.Admin().Do(t.Context(), append([]any{"ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*"}, rules...)...)
		}
		allow("+@all")
		m, err := holdfast.New(p.ClientWith(t, func(o *redis.Options) { o.Username, o.Password = "limited", "secret" }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		mustUnlock(t, mustLock(t, m.Mutex("connected")))
		p.LoseReply(scriptOn("a"), 1)
		lease := mustLock(t, m.Mutex("a"))
		allow("-pexpire")
		mustUnlock(t, lease)
		srv.RequireTTLs(t)
	})
}

// What is wrong with the counter of tokens is the trouble of those who want tokens.
func TestLock_BrokenCounterBesideOneThatWantsNoToken(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		holder, m := managerOn(t, srv), managerOn(t, srv)
		held := mustLock(t, holder.Mutex("a"))
		fenced := m.Mutex("a", holdfast.WithFencing()).LockAsync(t.Context())
		queued(t, srv, "redisson_lock_queue:{a}", 1)
		plain := m.Mutex("a").LockAsync(t.Context())
		redistest.Eventually(t, patience, "both wait", func() bool { return m.Stats().Waiting == 2 })
		srv.Admin().RPush(t.Context(), "redisson_lock_token:{a}", "no counter")
		mustUnlock(t, held)
		wantErr(t, (<-fenced).Err, holdfast.ErrWrongKind, nil)
		r := <-plain
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		mustUnlock(t, r.Lease)
	})
}

package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// limitedOn returns a client of a user who may do everything at first, and a function that changes that.
func limitedOn(t *testing.T, srv *redistest.Server) (client *redis.Client, allow func(rules ...any)) {
	t.Helper()
	allow = func(rules ...any) {
		t.Helper()
		if err := srv.Admin().Do(context.Background(), append([]any{"ACL", "SETUSER", "limited"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("reset", "on", ">secret", "~*", "&*", "+@all")
	opt := srv.Options()
	opt.Username, opt.Password = "limited", "secret"
	client = redis.NewClient(opt)
	t.Cleanup(func() { client.Close() })
	return client, allow
}

// A right that is missing for long is final, for a waiter and for a release, which an Unlock asks for again.
func TestDenied_ForLongIsFinal(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		client, allow := limitedOn(t, srv)
		m, err := holdfast.New(client, holdfast.WithLease(time.Hour), locktest.Readmission(300*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		lease := mustLock(t, m.Mutex("a"))
		allow("-evalsha", "-eval")
		failed := make(chan error, 1)
		go func() { _, err := m.Mutex("b").Lock(context.Background()); failed <- err }()
		wantErr(t, soonest(t, failed), holdfast.ErrUnavailable, nil)
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		redistest.Eventually(t, patience, "the release is given up", func() bool { return m.Pending() == 0 })
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		redistest.Eventually(t, patience, "it is given up again", func() bool { return m.Pending() == 0 })
		allow("+evalsha", "+eval")
		if n := srv.Admin().Exists(t.Context(), "a").Val(); n != 1 {
			t.Error("it was released")
		}
		mustUnlock(t, lease)
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		if n := srv.Admin().Exists(t.Context(), "a").Val(); n != 0 {
			t.Error("it is held")
		}
	})
}

// A Redlock whose members do not let it in for a while gets on, as a single lock does; for long, and it fails.
func TestDenied_Redlock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		var clients []*redis.Client
		var allow []func(...any)
		for _, srv := range servers(t, 3) {
			client, a := limitedOn(t, srv)
			clients, allow = append(clients, client), append(allow, a)
		}
		all := func(rules ...any) {
			for _, a := range allow {
				a(rules...)
			}
		}
		l := candidateOn(t, clients, mutexes, locktest.Readmission(2*time.Second))
		troubles := func() (n uint64) {
			for _, m := range l.Managers {
				n += m.Stats().Troubles
			}
			return n
		}
		mustUnlock(t, mustLock(t, l))
		all("-evalsha", "-eval")
		got := waits(t, l)
		before := troubles()
		redistest.Eventually(t, patience, "it is denied", func() bool { return troubles() > before+6 })
		all("+evalsha", "+eval")
		mustUnlock(t, got())
		all("-evalsha", "-eval")
		failed := make(chan error, 1)
		go func() { _, err := l.Lock(context.Background()); failed <- err }()
		wantErr(t, soonest(t, failed), holdfast.ErrUnavailable, nil)
	})
}

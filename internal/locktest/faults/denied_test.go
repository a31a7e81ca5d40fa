package faults

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A right that is missing for long is final, for a waiter and for a release, which an Unlock asks for again.
func TestDenied_ForLongIsFinal(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		client, allow := locktest.LimitedOn(t, srv)
		m := locktest.ManagerAsIs(t, client, holdfast.WithLease(time.Hour), locktest.Readmission(300*time.Millisecond))
		lease := locktest.MustLock(t, m.Mutex("a"))
		allow("-evalsha", "-eval")
		failed := redistest.Begin(func() error { _, err := m.Mutex("b").Lock(context.Background()); return err })
		locktest.WantErr(t, redistest.Next(t, failed, "it goes on"), holdfast.ErrUnavailable, nil)
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		redistest.Eventually(t, locktest.Patience, "the release is given up", func() bool { return locktest.Pending(m) == 0 })
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		redistest.Eventually(t, locktest.Patience, "it is given up again", func() bool { return locktest.Pending(m) == 0 })
		allow("+evalsha", "+eval")
		redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 1, "it was released")
		locktest.MustUnlock(t, lease)
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 0, "it is held")
	})
}

// A Redlock whose members do not let it in for a while gets on, as a single lock does; for long, and it fails.
func TestDenied_Redlock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		var clients []*redis.Client
		var allow []func(...any)
		for _, srv := range several.Servers(t, 3) {
			client, a := locktest.LimitedOn(t, srv)
			clients, allow = append(clients, client), append(allow, a)
		}
		all := func(rules ...any) {
			for _, a := range allow {
				a(rules...)
			}
		}
		l := several.CandidateOn(t, clients, several.Mutexes, locktest.Readmission(2*time.Second))
		troubles := func() (n uint64) {
			for _, m := range l.Managers {
				n += m.Stats().Troubles
			}
			return n
		}
		locktest.MustUnlock(t, locktest.MustLock(t, l))
		all("-evalsha", "-eval")
		got := locktest.Waits(t, l)
		before := troubles()
		redistest.Eventually(t, locktest.Patience, "it is denied", func() bool { return troubles() > before+6 })
		all("+evalsha", "+eval")
		locktest.MustUnlock(t, got())
		all("-evalsha", "-eval")
		failed := redistest.Begin(func() error { _, err := l.Lock(context.Background()); return err })
		locktest.WantErr(t, redistest.Next(t, failed, "it goes on"), holdfast.ErrUnavailable, nil)
	})
}

// refused are the commands and channels that the server has denied.
func refused(t *testing.T, srv *redistest.Server) (objects []string) {
	t.Helper()
	entries, err := srv.Admin().ACLLog(t.Context(), 100).Result()
	redistest.Must(t, err)
	for _, e := range entries {
		objects = append(objects, e.Object)
	}
	return objects
}

// A pub/sub connection stays, whichever of its commands is denied, and what it has subscribed to is heard.
func TestDenial_EndsNoConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	patient := []holdfast.Option{holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(time.Hour)}
	log, option := locktest.Logged()
	client, allow := locktest.LimitedOn(t, srv)
	allow("resetchannels", "&holdfast_inbox:*", "-ping", "-unsubscribe")
	m := locktest.ManagerAsIs(t, client, append(slices.Clone(patient), option)...)
	holder := locktest.ManagerOn(t, srv, patient...)
	for round := range 3 {
		held := locktest.MustLock(t, holder.Mutex("a"))
		got := locktest.Waits(t, m.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "its inbox is heard", func() bool { return locktest.Hears(t, srv, m) })
		if round == 0 {
			redistest.Eventually(t, locktest.Patience, "a ping is denied", func() bool { return slices.Contains(refused(t, srv), "ping") })
		}
		woken := m.Stats().Wakeups
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, got())
		if m.Stats().Wakeups == woken {
			t.Errorf("round %d: not by a message", round)
		}
		redistest.Eventually(t, locktest.Patience, "the inbox is not wanted any more", func() bool { return m.Stats().Subscriptions == 0 })
	}
	redistest.Eventually(t, locktest.Patience, "an UNSUBSCRIBE is denied", func() bool { return slices.Contains(refused(t, srv), "unsubscribe") })
	redistest.WantMost(t, m.Stats().Reconnects, 0, "%d reconnections")
	if got := log.With("holdfast: "); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// A process that waits again and again is denied once in a pause, and the log says so once.
func TestDenial_ShortWaitsSubscribeOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	log, option := locktest.Logged()
	client, allow := locktest.LimitedOn(t, srv)
	allow("resetchannels")
	m := locktest.ManagerAsIs(t, client, option)
	locktest.MustLock(t, locktest.ManagerOn(t, srv, holdfast.WithLease(time.Hour)).Mutex("x"))
	since := time.Now()
	for range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := m.Mutex("x").Lock(ctx)
		cancel()
		if err == nil {
			t.Fatal("it was granted")
		}
	}
	redistest.Eventually(t, locktest.Patience, "it is denied", func() bool { return len(log.With("WARN holdfast: not permitted to subscribe; polling instead")) == 1 })
	entries, err := srv.Admin().ACLLog(t.Context(), 100).Result()
	redistest.Must(t, err)
	var denials int64
	for _, e := range entries {
		if e.Context == "toplevel" && e.Reason == "channel" {
			denials += e.Count
		}
	}
	if most := 2 + int64(time.Since(since)/time.Second); denials == 0 || denials > most {
		t.Errorf("denied %d times, want at most %d", denials, most)
	}
	if got := log.With("holdfast: "); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// A new connection that Redis denies is as a denied subscription: requests go on over the connections that there are.
func TestDenial_OfTheConnection(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		log, option := locktest.Logged()
		client, allow := locktest.LimitedOn(t, srv)
		m := locktest.ManagerAsIs(t, client, option)
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("a")))
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv, holdfast.WithLease(time.Hour)).Mutex("a"))
		allow("resetpass", ">another")
		got := locktest.Waits(t, m.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "it is told", func() bool {
			return len(log.With("WARN holdfast: not permitted to subscribe; polling instead", "channels=holdfast_inbox:*", "WRONGPASS")) == 1
		})
		allow(">secret")
		redistest.Eventually(t, locktest.Patience, "its end is told", func() bool {
			return len(log.With("INFO holdfast: permitted to subscribe now", "channels=holdfast_inbox:*")) == 1
		})
		redistest.Eventually(t, locktest.Patience, "its inbox is heard", func() bool { return locktest.Hears(t, srv, m) })
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, got())
		if got := log.With("holdfast: "); len(got) != 2 {
			t.Errorf("%q", got)
		}
	})
}

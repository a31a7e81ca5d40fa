package state

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// processKeys are the keys in which processes say what they are.
func processKeys(srv *redistest.Server) (keys []string) {
	for _, key := range srv.Keys() {
		if strings.HasPrefix(key, "holdfast_process:") {
			keys = append(keys, key)
		}
	}
	return keys
}

// From the first lock until Close there is one key, whatever the name mapper and the number of locks, and holders have an
// identity for those that have one too.
func TestIdentity_IsThatOfTheHolder(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		began := time.Now()
		const page = "http://web-3:6060/debug/holdfast/"
		m := locktest.ManagerOn(t, srv, holdfast.WithIdentity("shop"), holdfast.WithDebugPage(page), holdfast.WithNameMapper(func(name string) string { return "prefix:" + name }))
		peer, stranger := locktest.ManagerOn(t, srv, holdfast.WithIdentity("other")), locktest.ManagerOn(t, srv)
		if keys := srv.Keys(); len(keys) != 0 {
			t.Errorf("before the first lock: %q", keys)
		}
		a, b := locktest.MustLock(t, m.Mutex("a")), locktest.MustLock(t, m.RWMutex("b").RLocker())
		redistest.Eventually(t, locktest.Patience, "one key", func() bool { return len(processKeys(srv)) == 1 })
		key := processKeys(srv)[0]
		if ttl := srv.Admin().PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("its TTL is %v", ttl)
		}
		for name, of := range map[string]*holdfast.Manager{"prefix:a": peer, "prefix:b": peer, "a": m} {
			h := locktest.Inspected(t, of, name).Holders[0]
			if !strings.HasPrefix(h.Owner, "hf-"+strings.TrimPrefix(key, "holdfast_process:")+":") {
				t.Errorf("%s is the key of %s", key, h.Owner)
			}
			host, _ := os.Hostname()
			id := h.Identity
			if id == nil || id.App != "shop" || id.Host != host || id.PID != os.Getpid() || id.Started.IsZero() || id.Debug != page {
				t.Fatalf("%s: %+v", name, id)
			}
		}
		if h := locktest.Inspected(t, stranger, "prefix:a").Holders[0]; h.Identity != nil {
			t.Errorf("a manager without identity asked for one: %+v", h.Identity)
		}
		locktest.MustUnlock(t, locktest.MustLock(t, peer.Mutex("d"))) // a process that has no page
		redistest.Eventually(t, locktest.Patience, "two keys", func() bool { return len(processKeys(srv)) == 2 })
		for _, other := range processKeys(srv) {
			if has := srv.Admin().HExists(t.Context(), other, "debug").Val(); has != (other == key) {
				t.Errorf("%s: has a page: %t", other, has)
			}
		}
		c := locktest.MustLock(t, stranger.Mutex("prefix:c"))
		if h := locktest.Inspected(t, m, "c").Holders[0]; h.Identity != nil {
			t.Errorf("a holder without identity has %+v", h.Identity)
		}
		locktest.MustUnlock(t, a, b, c)
		if err := errors.Join(m.Close(context.Background()), peer.Close(context.Background())); err != nil {
			t.Errorf("Close after %v: %v", time.Since(began), err)
		}
		if keys := srv.Keys(); len(keys) != 0 {
			t.Errorf("after Close: %q", keys)
		}
	})
}

// It is refreshed as long as the manager lives, also while Redis cannot be reached for a while.
func TestIdentity_IsRefreshed(t *testing.T) {
	if !testing.Short() {
		t.Skip("it takes minutes outside fake time")
	}
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		proxy := srv.Proxy(t)
		m, err := holdfast.New(proxy.Client(t), holdfast.WithIdentity("shop"))
		redistest.Must(t, err)
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("a")))
		fresh := func() bool {
			keys := processKeys(srv)
			return len(keys) == 1 && srv.Admin().PTTL(t.Context(), keys[0]).Val() > 35*time.Second
		}
		for range 30 {
			if !fresh() {
				t.Fatalf("after %q", srv.Keys())
			}
			time.Sleep(10 * time.Second)
		}
		srv.Admin().FlushAll(t.Context())
		time.Sleep(21 * time.Second)
		if !fresh() {
			t.Error("it was deleted, and is not written again")
		}
		proxy.BlackHole(true)
		time.Sleep(2 * time.Minute)
		if keys := srv.Keys(); len(keys) != 0 {
			t.Errorf("of a process that is cut off: %q", keys)
		}
		proxy.BlackHole(false)
		redistest.Eventually(t, locktest.Patience, "it is written again", fresh)
		before := m.Stats().Commands
		time.Sleep(time.Hour)
		if n := m.Stats().Commands - before; n < 170 || n > 190 {
			t.Errorf("%d commands in an hour, want one every 20 s", n)
		}
		redistest.Check(t, m.Close(context.Background()))
		if keys := srv.Keys(); len(keys) != 0 {
			t.Errorf("after Close: %q", keys)
		}
	})
}

// The address of a page must be one that a browser can follow, and have no password, which would be shown.
func TestIdentity_DebugPageIsChecked(t *testing.T) {
	t.Parallel()
	identity := holdfast.WithIdentity("shop")
	for _, page := range []string{
		"", "web-3:6060", "/debug/holdfast/", "javascript:alert(1)", "ftp://web-3/", "http://", "http://%zz", "http://u:secret@web-3/",
		"http://web-3/" + strings.Repeat("x", 500),
	} {
		_, err := holdfast.New(locktest.Offline(t), identity, holdfast.WithDebugPage(page))
		if !errors.Is(err, holdfast.ErrInvalidOption) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v", page, err)
		}
	}
	good := holdfast.WithDebugPage("https://web-3/" + strings.Repeat("x", 500-len("https://web-3/")))
	redistest.Check(t, locktest.ErrOf(holdfast.New(locktest.Offline(t), identity, good)))
	if _, err := holdfast.New(locktest.Offline(t), good); !errors.Is(err, holdfast.ErrInvalidOption) {
		t.Errorf("without an identity: %v", err)
	}
}

// Callers that wait inside the holder's process have no place in Redis: the process says how many there are. A process in the
// queue has a name, and says it likewise.
func TestIdentity_SaysForWhichLocksCallersWait(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		holder, waits, looks := locktest.ManagerOn(t, srv, holdfast.WithIdentity("shop")), locktest.ManagerOn(t, srv, holdfast.WithIdentity("report")), locktest.ManagerOn(t, srv, holdfast.WithIdentity("ops"))
		lease := locktest.MustLock(t, holder.Mutex("order:\n0007"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		var results []<-chan holdfast.Result
		for range 12 {
			results = append(results, holder.Mutex("order:\n0007").LockAsync(ctx))
		}
		seen := func(what string, is func(holdfast.Info) bool) {
			t.Helper()
			var info holdfast.Info
			redistest.Eventually(t, locktest.Patience, what, func() bool {
				info = locktest.Inspected(t, looks, "order:\n0007")
				return is(info)
			})
		}
		seen("12 callers inside the holder's process", func(i holdfast.Info) bool {
			h := i.Holders[0]
			return h.Callers == 12 && h.CallersSince.Sub(began).Abs() < time.Second && i.Waiters == 0 && len(i.Queue) == 0
		})
		results = append(results, waits.Mutex("order:\n0007").LockAsync(ctx))
		seen("the process in the queue has a name, and a caller", func(i holdfast.Info) bool {
			return len(i.Queue) == 1 && i.Queue[0].Holdfast && i.Queue[0].Identity != nil && i.Queue[0].Identity.App == "report" && i.Queue[0].Callers == 1
		})
		cancel()
		for _, r := range results {
			if got := <-r; got.Lease != nil {
				t.Error("a caller whose context has ended got the lock")
			}
		}
		seen("no caller waits", func(i holdfast.Info) bool {
			return i.Holders[0].Callers == 0 && i.Holders[0].CallersSince.IsZero() && len(i.Queue) == 0
		})
		before := holder.Stats().Commands
		if testing.Short() {
			time.Sleep(time.Hour)
			if n := holder.Stats().Commands - before; n > 190+360+10 { // of the key, and renewals
				t.Errorf("%d commands in an hour without waiters", n)
			}
		}
		locktest.MustUnlock(t, lease)
	})
}

package holdfast_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// lines is a handler that keeps what is logged, a line for each record.
type lines struct {
	slog.Handler
	mu  sync.Mutex
	all []string // guarded by mu
}

func (*lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	return nil
}

// with returns the lines that contain all of texts.
func (l *lines) with(texts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for _, line := range l.all {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}

func logged() (*lines, holdfast.Option) {
	l := &lines{Handler: slog.DiscardHandler}
	return l, holdfast.WithLogger(slog.New(l))
}

// Each lost lease is logged once, also where Unlock finds it and its error is dropped.
func TestLogs_LostLeases(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	log, option := logged()
	m := managerOn(t, srv, option, holdfast.WithLease(6*time.Second))
	for name, lock := range map[string]func(string) holdfast.Locker{
		"mutex": func(n string) holdfast.Locker { return m.Mutex(n) },
		"fair":  func(n string) holdfast.Locker { return m.FairMutex(n) },
		"write": func(n string) holdfast.Locker { return m.RWMutex(n) },
		"read":  func(n string) holdfast.Locker { return m.RWMutex(n).RLocker() },
	} {
		byUnlock, byExtend := "unlock:"+name, "extend:"+name
		a, b := mustLock(t, lock(byUnlock)), mustLock(t, lock(byExtend))
		srv.Admin().Del(t.Context(), byUnlock, byExtend)
		wantErr(t, unlock(a), holdfast.ErrLeaseLost, nil)
		wantErr(t, untilAnswered(func() error { return b.Extend(t.Context(), 10*time.Second) }), holdfast.ErrLeaseLost, nil)
		wantErr(t, unlock(b), holdfast.ErrLeaseLost, nil)
		for _, n := range []string{byUnlock, byExtend} {
			if got := log.with("WARN holdfast: lease lost", "lock="+n, "reason=deleted"); len(got) != 1 {
				t.Errorf("%s: %q", n, got)
			}
		}
	}
}

// Many at a time are some lines, one line for the rest of them, and none is missing.
func TestLogs_ManyLostLeases(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		log, option := logged()
		m := managerOn(t, srv, option)
		const n = 2000
		for i := range n {
			mustLock(t, m.Mutex(fmt.Sprint("many:", i), holdfast.WithFixedLease(3*time.Second)))
		}
		redistest.Eventually(t, patience, "all are lost", func() bool { return m.Stats().Lost == n })
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		alone, rest := log.with("holdfast: lease lost lock="), log.with("holdfast: lease lost, and others")
		count := len(alone)
		for _, line := range rest {
			var more int
			if _, err := fmt.Sscanf(line[strings.Index(line, "count="):], "count=%d", &more); err != nil {
				t.Error(err)
			}
			count += more
		}
		if count != n {
			t.Errorf("%d lines tell of %d losses of %d", len(alone)+len(rest), count, n)
		}
	})
}

// The beginning and the end of an outage are logged once each, whatever the requests are.
func TestLogs_Outage(t *testing.T) {
	t.Parallel()
	for name, requests := range map[string]func(t *testing.T, m *holdfast.Manager){
		"held": func(t *testing.T, m *holdfast.Manager) {
			mustLock(t, m.Mutex("held", holdfast.WithLease(2*time.Second)))
		},
		"waiter": func(t *testing.T, m *holdfast.Manager) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			log, option := logged()
			m := managerOn(t, srv, option)
			requests(t, m)
			srv.Pause()
			got := waits(t, m.Mutex("waited"))
			redistest.Eventually(t, patience, "the outage is told", func() bool {
				return len(log.with("WARN holdfast: redis does not answer", srv.Addr()+": no answer")) == 1
			})
			srv.Resume()
			mustUnlock(t, got())
			redistest.Eventually(t, patience, "its end is told", func() bool {
				return len(log.with("INFO holdfast: redis answers again", "lasted=")) == 1
			})
			if m.Stats().Outages != 1 {
				t.Errorf("%d outages", m.Stats().Outages)
			}
		})
	}
}

// One reply that is lost is no outage, however long nothing follows.
func TestLogs_OneLostReplyIsNoOutage(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := redistest.Start(t).Proxy(t)
		log, option := logged()
		m, err := holdfast.New(p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = 1500 * time.Millisecond }), option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		mustUnlock(t, mustLock(t, m.Mutex("x")))
		p.SwallowReply(redistest.Command("evalsha"), 1)
		if lease, err := m.Mutex("x").TryLock(t.Context()); err == nil {
			mustUnlock(t, lease)
		}
		redistest.Eventually(t, patience, "go-redis gives up", func() bool { return m.Stats().Troubles > 0 })
		mustUnlock(t, mustLock(t, m.Mutex("y")))
		if got := log.with("redis does not answer"); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
}

// A release that Redis denies is logged: the lock stays until its TTL ends.
func TestLogs_ReleaseGivenUp(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		admin := srv.Admin()
		admin.Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all")
		log, option := logged()
		m, err := holdfast.New(srv.ClientWith(t, func(o *redis.Options) { o.Username, o.Password = "limited", "secret" }), option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		lease := mustLock(t, m.Mutex("x", holdfast.WithFixedLease(2*time.Second)))
		admin.Do(t.Context(), "ACL", "SETUSER", "limited", "resetkeys")
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		redistest.Eventually(t, patience, "it is told", func() bool {
			return len(log.with("WARN holdfast: release given up", "lock=x", "NOPERM")) == 1
		})
	})
}

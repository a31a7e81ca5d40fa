package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// Many at a time are some lines, one line for the rest of them, and none is missing.
func TestLogs_ManyLostLeases(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		log, option := locktest.Logged()
		m := locktest.ManagerOn(t, srv, option)
		const n = 2000
		for i := range n {
			locktest.MustLock(t, m.Mutex(fmt.Sprint("many:", i), holdfast.WithFixedLease(3*time.Second)))
		}
		redistest.Eventually(t, locktest.Patience, "all are lost", func() bool { return m.Stats().Lost == n })
		redistest.Check(t, m.Close(context.Background()))
		alone, rest := log.With("holdfast: lease lost lock="), log.With("holdfast: lease lost, and others")
		count := len(alone)
		for _, line := range rest {
			var more int
			redistest.Check(t, locktest.ErrOf(fmt.Sscanf(line[strings.Index(line, "count="):], "count=%d", &more)))
			count += more
		}
		if count != n || len(rest) == 0 || len(log.With("holdfast: lease lost lock=many:0 ")) != 1 {
			t.Errorf("%d lines tell of %d losses of %d", len(alone)+len(rest), count, n)
		}
	})
}

// One reply that is lost is no outage, however long nothing follows.
func TestLogs_OneLostReplyIsNoOutage(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := redistest.Start(t).Proxy(t)
		log, option := locktest.Logged()
		m := locktest.ManagerAsIs(t, p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = 1500 * time.Millisecond }), option)
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("x")))
		p.SwallowReply(redistest.Command("evalsha"), 1)
		if lease, err := m.Mutex("x").TryLock(t.Context()); err == nil {
			locktest.MustUnlock(t, lease)
		}
		redistest.Eventually(t, locktest.Patience, "go-redis gives up", func() bool { return m.Stats().Troubles > 0 })
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("y")))
		if got := log.With("redis does not answer"); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
}

// A release that Redis denies is logged: the lock stays until its TTL ends.
func TestLogs_ReleaseGivenUp(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		client, allow := locktest.LimitedOn(t, srv)
		log, option := locktest.Logged()
		m := locktest.ManagerAsIs(t, client, option)
		lease := locktest.MustLock(t, m.Mutex("x", holdfast.WithFixedLease(2*time.Second)))
		allow("resetkeys")
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		redistest.Eventually(t, locktest.Patience, "it is told", func() bool {
			return len(log.With("WARN holdfast: release given up", "lock=x", "NOPERM")) == 1
		})
	})
}

// An outage has a line at its beginning and one at its end, and so has the loss of the pub/sub connection, however long
// it lasts and however often the connection is tried again. Renewals that fail meanwhile have none.
func TestLogs_LinesOfAnOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	log, option := locktest.Logged()
	m := locktest.ManagerOn(t, srv, option)
	locktest.MustLock(t, m.Mutex("renewed", holdfast.WithLease(4*time.Second))) // tried again six times a second
	holder := locktest.ManagerOn(t, srv)
	locktest.MustLock(t, holder.Mutex("taken"))
	first := m.Mutex("taken").LockAsync(t.Context())
	locktest.InboxHeard(t, srv)
	const lost = "holdfast: pub/sub connection lost"
	srv.Kill()
	redistest.Eventually(t, locktest.Patience, "several attempts fail", func() bool {
		return len(log.With("DEBUG "+lost)) >= 3 && m.Stats().RenewalFailures >= 3 && len(log.With("redis does not answer")) > 0
	})
	srv.Restart()
	if r := <-first; r.Err != nil { // the data is lost
		t.Error(r.Err)
	}
	held := locktest.MustLock(t, holder.Mutex("other"))
	second := m.Mutex("other").LockAsync(t.Context()) // or nothing is to be heard
	redistest.Eventually(t, locktest.Patience, "the end is told", func() bool {
		return len(log.With("INFO holdfast: redis answers again")) > 0 && len(log.With("INFO holdfast: pub/sub connection restored")) > 0
	})
	_ = held.Unlock(context.Background())
	if r := <-second; r.Err != nil {
		t.Error(r.Err)
	}
	redistest.Check(t, m.Close(context.Background()))
	var got []string
	for _, line := range log.With("holdfast: ") {
		if !strings.HasPrefix(line, "DEBUG") && !strings.Contains(line, "lease lost") {
			got = append(got, line)
		}
	}
	for _, want := range []string{
		"WARN holdfast: redis does not answer error=dial tcp", "INFO holdfast: redis answers again",
		"WARN " + lost, "INFO holdfast: pub/sub connection restored",
	} {
		if n := len(log.With(want)); n != 1 {
			t.Errorf("%d lines of %q", n, want)
		}
	}
	if len(got) != 4 {
		t.Errorf("lines: %q", got)
	}
}

// Renewals fail while other requests are answered: that has a line at its beginning and one at its end.
func TestLogs_LinesOfFailingRenewals(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		p := srv.Proxy(t)
		log, option := locktest.Logged()
		m := locktest.ManagerAsIs(t, p.Client(t), option)
		lease := locktest.MustLock(t, m.Mutex("a", holdfast.WithLease(10*time.Second)))
		p.AnswerError(locktest.ScriptOn("a", "renew"), 1000, "OOM command not allowed when used memory > 'maxmemory'.")
		const begun = "WARN holdfast: renewal failed, trying again"
		redistest.Eventually(t, locktest.Patience, "several attempts fail", func() bool {
			_ = locktest.Inspected(t, m, "b") // is answered
			return len(log.With(begun)) > 0 && m.Stats().RenewalFailures >= 4
		})
		p.Heal()
		redistest.Eventually(t, locktest.Patience, "its end is told", func() bool { return len(log.With("INFO holdfast: no renewal fails any more", "lasted=")) > 0 })
		if n := len(log.With("renewal", "OOM")); n != 1 {
			t.Errorf("%d lines: %q", n, log.With("renewal"))
		}
		_ = lease.Unlock(context.Background())
	})
}

// A program that names no logger is told of a Redis that it has never reached: once, where it was sought, and when it answers.
func TestLogs_ByDefault(t *testing.T) { // not parallel: the default logger is the program's
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() { slog.SetDefault(before); log.SetOutput(writer); log.SetFlags(flags) })
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		s.Down()
		options := s.Options()
		options.Password = "S3CRET"
		client := redis.NewClient(options)
		defer client.Close()
		told, err := holdfast.New(client)
		silent, err2 := holdfast.New(s.Client(), locktest.Unlogged)
		redistest.Must(t, errors.Join(err, err2))
		lines, _ := locktest.Logged()
		slog.SetDefault(slog.New(lines)) // after New
		seam.Engine(told).Journal.Say(slog.LevelInfo, "no trouble")
		waiting, waitingToo := told.Mutex("x").LockAsync(t.Context()), silent.Mutex("y").LockAsync(t.Context())
		begun := func() []string {
			return lines.With("WARN holdfast: redis does not answer error=", s.Options().Addr, "connection refused")
		}
		redistest.Eventually(t, locktest.Patience, "an outage is reported", func() bool { return len(begun()) == 1 }) // by the request after the first second
		for range 30 {                                                                                                // fake seconds
			if time.Sleep(2 * time.Second); len(begun()) != 1 || len(lines.With("")) != 1 {
				t.Fatalf("lines: %q", lines.With(""))
			}
		}
		s.Up()
		for _, r := range []holdfast.Result{<-waiting, <-waitingToo} {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		redistest.Check(t, errors.Join(told.Close(t.Context()), silent.Close(t.Context())))
		if ended := lines.With("INFO holdfast: redis answers again lasted="); len(ended) != 1 || len(lines.With("")) != 2 {
			t.Errorf("lines: %q", lines.With(""))
		}
	})
}

// Redis refuses what callers wait for, and renews what the process holds: that is no outage, and callers that wait would not learn
// of it. Where an outage ends with refusals, it has ended.
func TestLogs_WaitingCallersAreRefused(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := redistest.Start(t).Proxy(t)
		log, option := locktest.Logged()
		m := locktest.ManagerAsIs(t, p.Client(t), option)
		held := locktest.MustLock(t, m.Mutex("held", holdfast.WithLease(time.Second)))
		const begun, ended = "WARN holdfast: a waiting caller is refused, trying again", "INFO holdfast: no waiting caller is refused any more"
		p.AnswerError(locktest.ScriptOn("a"), 1000, "OOM command not allowed when used memory > 'maxmemory'.")
		waits := m.Mutex("a").LockAsync(t.Context())
		redistest.Eventually(t, locktest.Patience, "the refusals are told", func() bool { return len(log.With(begun, "OOM", "lock=a")) == 1 })
		_, err := m.Mutex("a").TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
		p.Heal()
		locktest.MustUnlock(t, locktest.Granted(t, waits))
		redistest.Eventually(t, locktest.Patience, "their end is told", func() bool { return len(log.With(ended, "lasted=")) == 1 })
		if n := len(log.With("redis does not answer")); n != 0 || m.Stats().Outages != 0 || len(log.With(begun)) != 1 {
			t.Errorf("%d outages, lines: %q", m.Stats().Outages, log.With(""))
		}
		locktest.MustUnlock(t, held)

		p.AnswerError(locktest.ScriptOn("b"), 1000, "NOAUTH Authentication required.")
		p.Refuse(true)
		p.Cut()
		waits = m.Mutex("b").LockAsync(t.Context())
		redistest.Eventually(t, locktest.Patience, "the outage is told", func() bool { return len(log.With("WARN holdfast: redis does not answer")) == 1 })
		p.Refuse(false)
		redistest.Eventually(t, locktest.Patience, "the refusals are told", func() bool { return len(log.With(begun, "NOAUTH", "lock=b")) == 1 })
		if len(log.With("INFO holdfast: redis answers again")) != 1 {
			t.Errorf("lines: %q", log.With(""))
		}
		p.Heal()
		locktest.MustUnlock(t, locktest.Granted(t, waits))
	})
}

// As long as the server says that it is a replica, each second of waiting makes another connection for messages. The log has the first.
func TestLogs_AReplicaIsToldOnce(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		log, option := locktest.Logged()
		m := locktest.ManagerAsIs(t, p.Client(t), option)
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		waits := m.Mutex("a").LockAsync(t.Context())
		locktest.InboxHeard(t, srv)
		const lost, moves = "holdfast: pub/sub connection lost", 3
		p.AnswerError(locktest.ScriptOn("a"), 1000, "READONLY You can't write against a read only replica.")
		redistest.Eventually(t, locktest.Patience, "several connections are made", func() bool { return len(log.With(lost, "no longer the master")) >= moves })
		p.Heal()
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, locktest.Granted(t, waits))
		for _, want := range []string{"WARN " + lost, "INFO holdfast: pub/sub connection restored"} {
			if n := len(log.With(want)); n != 1 {
				t.Errorf("%d lines of %q: %q", n, want, log.With("pub/sub"))
			}
		}
		if n := m.Stats().Reconnects; n != 1 {
			t.Errorf("%d connections were lost", n)
		}
	})
}

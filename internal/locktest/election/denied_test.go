package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// record is the key of what the leader says, and its channel.
const record = "holdfast_leader:{seat}"

// proclaims matches requests by which a leader says something.
var proclaims = locktest.ScriptOn("seat", "proclaim")

// wantFree fails unless the lock is soon free, and no place of a candidate is left.
func wantFree(t *testing.T, srv *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "the lock is free", func() bool {
		return srv.Admin().Exists(t.Context(), "seat", "redisson_lock_queue:{seat}").Val() == 0
	})
}

// A leader that may not write the record is none: Campaign says which right is missing, at once, and gives the lock back.
func TestCampaign_DeniedTheRecord(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		client, allow := locktest.LimitedOn(t, srv)
		m := locktest.ManagerFor(t, client)
		allow("resetkeys", "~seat", "~*redisson_*", "~holdfast_tombstones*")
		_, err := m.Election("seat").Campaign(t.Context(), "a")
		locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrWrongKind)
		if !strings.Contains(fmt.Sprint(err), "NOPERM") {
			t.Errorf("%v does not say what is denied", err)
		}
		wantFree(t, srv)
		if m.Election("seat").Term() != nil || len(slices.Collect(m.Locks())) > 0 {
			t.Error("the process leads, or holds a lock")
		}
		allow("~*")
		term := campaign(t, m.Election("seat"), "a")
		wantLeader(t, candidate(t, srv), "a")
		resign(t, term)
	})
}

// A candidate to which Redis denies a command of the script, which may pass, does not keep the seat for longer than a lease: another
// one leads.
func TestCampaign_GivesTheSeatAway(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		client, allow := locktest.LimitedOn(t, srv)
		allow("-hget")
		ctx, cancel := context.WithCancel(t.Context())
		m := locktest.ManagerFor(t, client, holdfast.WithLease(time.Second))
		failed := redistest.Begin(func() error { _, err := m.Election("seat").Campaign(ctx, "a"); return err })
		redistest.Eventually(t, locktest.Patience, "it has the lock", func() bool { return srv.Admin().Exists(t.Context(), "seat").Val() == 1 })
		b := candidate(t, srv)
		term := campaign(t, b, "b")
		wantLeader(t, b, "b")
		cancel()
		locktest.WantErr(t, redistest.Next(t, failed, "the end of Campaign"), holdfast.ErrNotAcquired, nil)
		resign(t, term)
		wantFree(t, srv)
	})
}

// A leader that may not publish leads all the same. Observers see its value, and the vacancy, at their next poll.
func TestCampaign_DeniedTheChannel(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		client, allow := locktest.LimitedOn(t, srv)
		allow("resetchannels")
		const poll = 10 * time.Minute
		states := observe(t, candidate(t, srv, holdfast.WithPollInterval(poll)))
		redistest.Next(t, states, "a state")
		time.Sleep(time.Second) // it is subscribed
		began := time.Now()
		term := campaign(t, locktest.ManagerFor(t, client).Election("seat"), "a")
		observed := func(l holdfast.Leader) {
			t.Helper()
			if after := time.Since(began); after < poll/2 || after > poll {
				t.Errorf("observed %+v after %v", l, after)
			}
		}
		l := <-states
		if l.Value != "a" {
			t.Errorf("observed %+v", l)
		}
		observed(l)
		began = time.Now()
		resign(t, term)
		if l = <-states; l.Term != 0 {
			t.Errorf("observed %+v", l)
		}
		observed(l)
	})
}

// A value that is not confirmed is sent again, and published once.
func TestCampaign_RepeatsItsValue(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv)
		proxy.Record()
		proxy.AnswerError(proclaims, 2, "LOADING Redis is loading the dataset in memory")
		proxy.LoseReply(proclaims, 2)
		term := campaign(t, m.Election("seat"), "a")
		if n := proxy.Count(proclaims); n < 4 {
			t.Errorf("%d requests", n)
		}
		wantLeader(t, candidate(t, srv), "a")
		resign(t, term)
	})
}

// A Campaign whose context ends before its value is confirmed does not lead. Its request that comes late changes nothing.
func TestCampaign_EndsUnconfirmed(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv)
		held := proxy.HoldRequest(proclaims)
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := redistest.Begin(func() error { _, err := m.Election("seat").Campaign(ctx, "a"); return err })
		held.Wait(t)
		stop := errors.New("stop")
		cancel(stop)
		err := redistest.Next(t, failed, "the end of Campaign")
		locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
		if !errors.Is(err, stop) {
			t.Errorf("%v lacks the cause", err)
		}
		wantFree(t, srv)
		b := candidate(t, srv)
		term := campaign(t, b, "b")
		before := srv.CommandCalls("evalsha", "eval")
		held.Release()
		redistest.Eventually(t, locktest.Patience, "the late request has come", func() bool { return srv.CommandCalls("evalsha", "eval") > before })
		wantLeader(t, b, "b")
		resign(t, term)
		wantLeader(t, b, "")
		if m.Election("seat").Term() != nil {
			t.Error("it leads")
		}
	})
}

// A lease that is lost before the value is confirmed is no term: Campaign waits for the next one.
func TestCampaign_LosesItsLeaseUnconfirmed(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv)
		held := proxy.HoldFirstRequest(proclaims)
		got := make(chan *holdfast.Term, 1)
		go func() {
			term, err := m.Election("seat").Campaign(t.Context(), "a")
			redistest.Check(t, err)
			got <- term
		}()
		held.Wait(t)
		_, err := locktest.ManagerOn(t, srv).ForceUnlock(t.Context(), "seat")
		redistest.Must(t, err)
		held.Release()
		term := redistest.Next(t, got, "a term")
		if term.Number() < 2 || !term.Lease().Valid() {
			t.Errorf("term %d, valid: %v", term.Number(), term.Lease().Valid())
		}
		wantLeader(t, candidate(t, srv), "a")
		resign(t, term)
	})
}

// The value of a leader that has died is never shown: not when the lock is free, nor beside its next holder, which says nothing at
// first, nor beside one that does not campaign.
func TestLeader_IsNeverADeadOne(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		dead, link := locktest.ManagerVia(t, srv, holdfast.WithLease(2*time.Second))
		heir, proxy := locktest.ManagerVia(t, srv)
		e := candidate(t, srv)
		for round := range 2 {
			campaign(t, dead.Election("seat"), "a")
			wantLeader(t, e, "a")
			link.BlackHole(true)
			if round == 0 { // no candidate waits
				redistest.Eventually(t, locktest.Patience, "the lock has expired", func() bool { return srv.Admin().Exists(t.Context(), "seat").Val() == 0 })
				wantLeader(t, e, "")
				plain := locktest.MustLock(t, heir.Mutex("seat"))
				wantLeader(t, e, "")
				locktest.MustUnlock(t, plain)
			} else {
				held := proxy.HoldRequest(proclaims)
				got := make(chan *holdfast.Term, 1)
				go func() { got <- campaign(t, heir.Election("seat"), "b") }()
				held.Wait(t)
				redistest.Want(t, srv.Admin().Exists(t.Context(), "seat", record).Val(), 2, "%d keys, want the lock of the heir and the record of the dead leader")
				wantLeader(t, e, "")
				held.Release()
				term := redistest.Next(t, got, "a term")
				wantLeader(t, e, "b")
				resign(t, term)
			}
			link.BlackHole(false)
		}
	})
}

// A Campaign that fails when its value is published takes it back, and observers are told.
func TestCampaign_TakesBackItsValue(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv)
		states := observe(t, candidate(t, srv, holdfast.WithPollInterval(10*time.Minute)))
		redistest.Next(t, states, "a state")
		time.Sleep(time.Second) // it is subscribed
		proxy.HoldFirstReply(proclaims)
		ctx, cancel := context.WithCancel(t.Context())
		failed := redistest.Begin(func() error { _, err := m.Election("seat").Campaign(ctx, "a"); return err })
		if l := redistest.Next(t, states, "a leader"); l.Value != "a" {
			t.Errorf("observed %+v", l)
		}
		cancel()
		locktest.WantErr(t, redistest.Next(t, failed, "the end of Campaign"), holdfast.ErrUnavailable, nil)
		began := time.Now()
		if l := <-states; l.Term != 0 || time.Since(began) > 10*time.Second {
			t.Errorf("observed %+v after %v", l, time.Since(began))
		}
		wantFree(t, srv)
		proxy.Heal()
	})
}

// A lease that ends while Resign waits for Redis was not lost.
func TestResign_IsNoLoss(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv, holdfast.WithLease(3*time.Second))
		term := campaign(t, m.Election("seat"), "a")
		proxy.BlackHole(true)
		time.Sleep(time.Until(term.Lease().Deadline()) - 300*time.Millisecond)
		locktest.WantErr(t, term.Resign(t.Context()), holdfast.ErrUnavailable, holdfast.ErrLeaseLost)
		proxy.BlackHole(false)
		wantFree(t, srv)
	})
}

package election

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// candidate is an election of a manager of its own.
func candidate(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Election {
	return locktest.ManagerOn(t, srv, opts...).Election("seat")
}

func campaign(t *testing.T, e *holdfast.Election, value string) *holdfast.Term {
	t.Helper()
	term, err := e.Campaign(t.Context(), value)
	redistest.Must(t, err)
	return term
}

func resign(t *testing.T, term *holdfast.Term) {
	t.Helper()
	redistest.Must(t, term.Resign(t.Context()))
}

// wantLeader fails unless e knows this value of a leader; empty: none leads.
func wantLeader(t *testing.T, e *holdfast.Election, value string) holdfast.Leader {
	t.Helper()
	l, err := e.Leader(t.Context())
	switch {
	case value == "" && errors.Is(err, holdfast.ErrNoLeader):
	case err != nil || l.Value != value:
		t.Fatalf("the leader is %+v, %v, want %q", l, err, value)
	}
	return l
}

// E1, E2: one leads, and each process can read what it says. The next one has a larger number.
func TestElection_OneLeads(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, b := candidate(t, srv), candidate(t, srv)
		wantLeader(t, a, "")
		first := campaign(t, a, "a:80")
		if a.Term() != first || b.Term() != nil {
			t.Errorf("a is in term %v, b in %v", a.Term(), b.Term())
		}
		seen := wantLeader(t, b, "a:80")
		if seen.Self || seen.Term != first.Number() || seen.TTL <= 0 || seen.Identity != nil {
			t.Errorf("b sees %+v", seen)
		}
		if own := wantLeader(t, a, "a:80"); !own.Self || own.Owner != seen.Owner {
			t.Errorf("a sees %+v", own)
		}
		redistest.Must(t, first.Proclaim(t.Context(), "a:81"))
		wantLeader(t, b, "a:81")
		if _, err := b.Campaign(expired(t), "b:80"); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Errorf("beside a leader: %v", err)
		}
		led := make(chan *holdfast.Term, 1)
		go func() {
			term, _ := b.Campaign(t.Context(), "b:80")
			led <- term
		}()
		locktest.Queued(t, srv, "redisson_lock_queue:{seat}", 1)
		wantLeader(t, b, "a:81")
		resign(t, first)
		second := redistest.Next(t, led, "nothing comes")
		if second == nil || second.Number() <= first.Number() {
			t.Fatalf("term %v follows %v", second.Number(), first.Number())
		}
		if l := wantLeader(t, a, "b:80"); l.Term != second.Number() {
			t.Errorf("a sees %+v", l)
		}
		if a.Term() != nil {
			t.Error("a still leads")
		}
		locktest.WantErr(t, first.Proclaim(t.Context(), "late"), holdfast.ErrNotHeld, nil)
		locktest.WantErr(t, first.Resign(t.Context()), holdfast.ErrNotHeld, nil)
		wantLeader(t, b, "b:80")
		resign(t, second)
		wantLeader(t, b, "")
		if ttl := srv.Admin().PTTL(t.Context(), "holdfast_leader:{seat}").Val(); ttl <= 0 {
			t.Errorf("the record is kept for %v", ttl)
		}
	})
}

// Processes of one Manager pass the seat on without Redis: the record of the next term replaces that of the one before.
func TestElection_TermsOfOneProcess(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, other := candidate(t, srv), candidate(t, srv)
		terms := make(chan *holdfast.Term)
		for _, value := range []string{"1", "2", "3"} {
			go func() {
				term, err := a.Campaign(t.Context(), value)
				redistest.Check(t, err)
				terms <- term
			}()
		}
		last := uint64(0)
		for range 3 {
			term := redistest.Next(t, terms, "nothing comes")
			if l, err := other.Leader(t.Context()); err != nil || l.Term != term.Number() || l.Term <= last {
				t.Errorf("after term %d: term %d, and others see %+v, %v", last, term.Number(), l, err)
			}
			last = term.Number()
			resign(t, term)
		}
	})
}

// E3: an observer sees each change, and each vacancy.
func TestObserve_SeesEachChange(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, b, o := candidate(t, srv), candidate(t, srv, holdfast.WithLease(time.Second)), candidate(t, srv)
		states := observe(t, o)
		expect := func(value string) holdfast.Leader {
			t.Helper()
			l := redistest.Next(t, states, "nothing comes")
			if l.Value != value || (l.Term == 0) != (value == "") {
				t.Fatalf("observed %+v, want %q", l, value)
			}
			return l
		}
		expect("")
		first := campaign(t, a, "a1")
		expect("a1")
		redistest.Must(t, first.Proclaim(t.Context(), "a2"))
		expect("a2")
		resign(t, first)
		expect("")
		second := campaign(t, b, "b")
		expect("b")
		srv.Admin().Del(t.Context(), "seat") // as an operator does: no message tells of it
		expect("")
		<-second.Lease().Done()
		locktest.WantErr(t, second.Proclaim(t.Context(), "late"), holdfast.ErrLeaseLost, nil)
		locktest.WantErr(t, second.Resign(t.Context()), holdfast.ErrLeaseLost, nil)
	})
}

// A lost message costs an observer a poll.
func TestObserve_WithoutMessages(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv, holdfast.WithPollInterval(100*time.Millisecond))
		states := observe(t, m.Election("seat"))
		redistest.Next(t, states, "nothing comes")
		proxy.Hush(true)
		term := campaign(t, candidate(t, srv), "a")
		if l := redistest.Next(t, states, "nothing comes"); l.Value != "a" {
			t.Errorf("observed %+v", l)
		}
		resign(t, term)
		if l := redistest.Next(t, states, "nothing comes"); l.Term != 0 {
			t.Errorf("observed %+v", l)
		}
	})
}

// Errors do not end the sequence.
func TestObserve_GoesOnAfterErrors(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		e := candidate(t, srv)
		srv.Admin().RPush(t.Context(), "holdfast_leader:{seat}", "x")
		failed := false
		for l, err := range e.Observe(t.Context()) {
			switch {
			case err == nil && l.Term == 0 && failed:
				return
			case !errors.Is(err, holdfast.ErrWrongKind) || !strings.Contains(err.Error(), "the key holdfast_leader:{seat} holds a list"):
				t.Fatalf("%+v, %v", l, err)
			}
			failed = true
			srv.Admin().Del(t.Context(), "holdfast_leader:{seat}")
		}
	})
}

func TestObserve_EndsWithTheManager(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithPollInterval(time.Hour))
		var last error
		for _, err := range m.Election("seat").Observe(t.Context()) {
			if last = err; err == nil {
				_ = m.Close(t.Context())
			}
		}
		if !errors.Is(last, holdfast.ErrClosed) {
			t.Errorf("the last is %v", last)
		}
	})
}

// Options and arguments are checked before anything is sent.
func TestElection_Refuses(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		e := m.Election("seat")
		var none context.Context
		long := strings.Repeat("x", 4097)
		term := campaign(t, e, "")
		fn := func(context.Context, *holdfast.Term) error { t.Error("called"); return nil }
		for call, err := range map[string]error{
			"linger":        locktest.ErrOf(m.Election("x", holdfast.WithLinger(time.Second)).Campaign(t.Context(), "")),
			"at least":      locktest.ErrOf(m.Election("x", holdfast.WithHoldAtLeast(time.Second)).Leader(t.Context())),
			"name":          locktest.ErrOf(m.Election("{x").Campaign(t.Context(), "")),
			"value":         locktest.ErrOf(e.Campaign(t.Context(), long)),
			"proclaimed":    term.Proclaim(t.Context(), long),
			"nil ctx":       locktest.ErrOf(e.Campaign(none, "")),
			"nil election":  locktest.ErrOf((*holdfast.Election)(nil).Leader(t.Context())),
			"zero election": locktest.ErrOf(new(holdfast.Election).Leader(t.Context())),
			"nil term":      (*holdfast.Term)(nil).Resign(t.Context()),
			"zero term":     new(holdfast.Term).Proclaim(t.Context(), ""),
			"nil function":  e.Lead(t.Context(), "", nil),
			"long for Lead": e.Lead(t.Context(), long, fn),
		} {
			if !errors.Is(err, holdfast.ErrInvalidOption) && !errors.Is(err, holdfast.ErrInvalidName) {
				t.Errorf("%s: %v", call, err)
			}
		}
		if _, err := e.Campaign(term.Lease().Context(t.Context()), ""); !errors.Is(err, holdfast.ErrWouldDeadlock) {
			t.Errorf("under its own term: %v", err)
		}
		if !term.Lease().Valid() {
			t.Error("that has ended the term")
		}
		if (*holdfast.Election)(nil).Term() != nil || new(holdfast.Election).Term() != nil || (*holdfast.Term)(nil).Number() != 0 {
			t.Error("nil and zero values lead")
		}
		resign(t, term)
	})
}

// A record of another kind is named, and the lock is free again.
func TestElection_WrongKind(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		e := candidate(t, srv)
		srv.Admin().RPush(t.Context(), "holdfast_leader:{seat}", "x")
		_, err := e.Campaign(t.Context(), "a")
		locktest.WantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrUnavailable)
		redistest.Eventually(t, locktest.Patience, "the lock is free", func() bool { return srv.Admin().Exists(t.Context(), "seat").Val() == 0 })
	})
}

// expired is a context that ends soon.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// observe returns the states that an observer sees, until the test ends.
func observe(t *testing.T, e *holdfast.Election) <-chan holdfast.Leader {
	states := make(chan holdfast.Leader, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for l, err := range e.Observe(ctx) {
			redistest.Check(t, err)
			states <- l
		}
	}()
	return states
}

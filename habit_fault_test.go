package holdfast_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The habit is broken by one absence.
func TestHabit_IsLost(t *testing.T) {
	p := newBaton(t, soon)
	held := p.books()
	redistest.Eventually(t, patience, "the place is left", func() bool { return len(p.queued()) == 0 })
	back := p.asks(p.a)
	mustUnlock(t, held)
	lease := p.granted(back)
	other := p.asks(p.b)
	mustUnlock(t, lease)
	held = p.granted(other)
	if n := len(p.queued()); n != 0 {
		t.Errorf("%d places are taken", n)
	}
	mustUnlock(t, held)
}

// A release whose reply is lost may have taken the place; it is left.
func TestHabit_ReplyIsLost(t *testing.T) {
	for name, lose := range map[string]func(*redistest.Proxy, redistest.Match, int){
		"with the connection": (*redistest.Proxy).LoseReply,
		"silently":            (*redistest.Proxy).SwallowReply,
	} {
		t.Run(name, func(t *testing.T) {
			p := newBaton(t, never)
			lease := p.learns()
			other := p.asks(p.b)
			lose(p.proxy, p.releases(), 1)
			if err := lease.Unlock(t.Context()); err != nil {
				wantErr(t, err, holdfast.ErrUnavailable, nil)
			}
			held := p.granted(other)
			redistest.Eventually(t, patience, "the place is left", func() bool { return len(p.queued()) == 0 })
			back := p.asks(p.a)
			mustUnlock(t, held)
			mustUnlock(t, p.granted(back))
			p.free()
		})
	}
}

// The grant overtakes the reply that tells of the place.
func TestHabit_MessageBeforeReply(t *testing.T) {
	p := newBaton(t, never)
	held, answer := p.unanswered()
	mon := p.srv.Monitor(t)
	mustUnlock(t, held)
	mon.Wait(t, `"publish"`, patience)
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, mustLock(t, p.lockOf(p.a)))
	p.free()
}

// What happens before the release is answered is not forgotten.
func TestHabit_GivenUpBeforeTheReply(t *testing.T) {
	for name, meanwhile := range map[string]func(p *baton) (after func()){
		"closed": func(p *baton) func() {
			closed := make(chan error, 1)
			go func() { closed <- p.a.Close(context.Background()) }()
			redistest.Eventually(p.T, patience, "it is closed", func() bool {
				_, err := p.a.Mutex("b").TryLock(p.Context())
				return errors.Is(err, holdfast.ErrClosed)
			})
			return func() { <-closed }
		},
		"heard anew": func(p *baton) func() {
			before := p.a.Stats().Commands
			if err := p.srv.Admin().ClientKillByFilter(p.Context(), "TYPE", "pubsub").Err(); err != nil {
				p.Fatal(err)
			}
			redistest.Eventually(p.T, patience, "the other waiter asks", func() bool { return p.a.Stats().Commands > before })
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newBaton(t, never)
			held, answer := p.unanswered()
			after := meanwhile(p)
			_ = answer() // an error, if it took too long
			after()
			redistest.Eventually(t, patience, "the place is left", func() bool { return len(p.queued()) == 0 })
			mustUnlock(t, held)
			p.free()
		})
	}
}

// What is granted while the inbox is not heard is given back when it is heard again.
func TestHabit_InboxIsCut(t *testing.T) {
	p := newBaton(t, never)
	held := p.books()
	if err := p.srv.Admin().ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "the place is left", func() bool { return len(p.queued()) == 0 })
	mustUnlock(t, held)
	p.free()
}

// Whoever has taken a booked place notices, as others do, that the next owner has died.
func TestHabit_TheNextOwnerDies(t *testing.T) {
	p := newBaton(t, never)
	lease := p.learns()
	p.asks(p.b)
	p.other.BlackHole(true)
	mustUnlock(t, lease)
	mustUnlock(t, p.granted(p.lockOf(p.a).LockAsync(t.Context())))
}

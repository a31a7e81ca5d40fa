package locktest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// term is the lease of locks whose TTL ends while Unlock waits for Redis, which it does for a quarter of it.
const term = time.Second

// untilShortlyBefore waits until the lease has only a moment left, which is shorter than Unlock waits.
func untilShortlyBefore(l *holdfast.Lease) {
	time.Sleep(time.Until(l.Deadline()) - 60*time.Millisecond)
}

// tooLate reports whether err says that the lease had come to its end before Unlock was called, as it has on a
// machine that stands still.
func tooLate(err error) bool {
	var lost *holdfast.LostError
	return errors.As(err, &lost) && lost.Reason == holdfast.LostDeadline || errors.Is(err, holdfast.ErrMaxHold)
}

// releaseTermScenarios are about a TTL that ends while Unlock waits for Redis.
var releaseTermScenarios = map[string]func(*Env){
	// N5: that is no loss, whether the lock is free then, or has another owner.
	"TTLThatEndsWhileUnlockWaitsIsNoLoss": func(e *Env) {
		e.Server()
		answer := func(text string) func(*redistest.Proxy) func() {
			return func(p *redistest.Proxy) func() {
				p.AnswerError(releaseOf(e.Key), 1000, text)
				return p.Heal
			}
		}
		for _, c := range []struct {
			name    string
			trouble func(*redistest.Proxy) (end func())
			taken   bool // by another owner meanwhile
		}{
			{"dead", func(*redistest.Proxy) func() { e.srv.Kill(); return e.srv.Restart }, false},
			{"frozen", func(*redistest.Proxy) func() { e.srv.Pause(); return e.srv.Resume }, false},
			{"refuses", answer("LOADING Redis is loading the dataset in memory"), false},
			{"refuses, taken", answer("LOADING Redis is loading the dataset in memory"), true},
			{"denies", answer("ERR unknown command 'evalsha'"), false},
			{"denies, taken", answer("ERR unknown command 'evalsha'"), true},
		} {
			e.untilTimely(func() error {
				m, p := e.Via()
				l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(term)))
				deadline := l.Deadline()
				untilShortlyBefore(l)
				end := c.trouble(p)
				told := redistest.Begin(func() error { return l.Unlock(bg) })
				time.Sleep(time.Until(deadline) + term/10) // the margin is less
				if c.taken {
					e.MustLock(e.Lock(e.Manager(), holdfast.WithFixedLease(term)))
				}
				end()
				err := <-told
				if errors.Is(err, holdfast.ErrUnavailable) { // what comes of it
					e.Eventually("Unlock is told", func() bool {
						err = l.Unlock(bg)
						return !errors.Is(err, holdfast.ErrUnavailable)
					})
				}
				if err != nil && !tooLate(err) {
					e.Errorf("%s: %v", c.name, err)
				}
				return err
			})
		}
	},

	// N6: a lock that is gone while the TTL lasts was lost before Unlock was called, also if that had to ask again.
	"LossBehindARefusedReleaseIsOne": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m, holdfast.WithLease(time.Hour)))
		e.srv.Admin().Del(bg, e.Key)
		p.AnswerError(releaseOf(e.Key), 2, "LOADING Redis is loading the dataset in memory")
		var err error
		e.Eventually("Unlock is told", func() bool {
			err = l.Unlock(bg)
			return !errors.Is(err, holdfast.ErrUnavailable)
		})
		var lost *holdfast.LostError
		if !errors.As(err, &lost) || lost.Reason != holdfast.LostDeleted {
			e.Errorf("%v, want a loss", err)
		}
		e.Clean(m)
	},
}

// rwReleaseTermScenarios are likewise about the downgrade of a writer.
var rwReleaseTermScenarios = map[string]func(*Env){
	// N5: the write side was valid when it was unlocked, so that is not lost, whatever becomes of the read side.
	"TTLThatEndsWhileADowngradeWaitsIsNoLossOfTheWriteSide": func(e *Env) {
		e.Server()
		for _, c := range []struct {
			opts  []holdfast.LockOption
			wants error // of the read side
		}{
			{[]holdfast.LockOption{holdfast.WithFixedLease(term)}, holdfast.ErrLeaseLost},
			{[]holdfast.LockOption{holdfast.WithLease(term), holdfast.WithMaxHold(term)}, holdfast.ErrMaxHold},
		} {
			for _, answered := range []bool{false, true} {
				e.untilTimely(func() error {
					m, p := e.Via()
					write, read := e.bothSides(e.RW(m, c.opts...))
					deadline := write.Deadline()
					if errors.Is(c.wants, holdfast.ErrMaxHold) {
						e.Eventually("the TTL ends after the limit, or both have", func() bool { return m.Stats().Renewals > 0 || write.Err() != nil })
						deadline = write.Deadline()
					}
					untilShortlyBefore(write)
					if answered {
						p.AnswerError(releaseOf(e.Key), 1000, "upstream failure")
					} else {
						p.BlackHole(true)
					}
					err := write.Unlock(bg)
					if !errors.Is(err, holdfast.ErrUnavailable) && !tooLate(err) {
						e.Errorf("%v, want an unavailable Redis", err)
					}
					<-read.Done()
					if ended := read.Err(); !errors.Is(ended, c.wants) && tooLate(ended) {
						err = ended // by the other of its two ends
					} else {
						e.WantErr(ended, c.wants)
					}
					time.Sleep(time.Until(deadline) + term/10)
					p.Heal()
					p.Cut()
					if again := write.Unlock(bg); errors.Is(again, holdfast.ErrLeaseLost) && !tooLate(err) {
						e.Errorf("again: %v", again)
					}
					_ = read.Unlock(bg)
					e.MustUnlock(e.MustLock(e.RW(e.Manager())))
					return err
				})
			}
		}
	},
}

// untilTimely plays a scene until it does not end with an error that says that it was too late.
func (e *Env) untilTimely(scene func() error) {
	e.Helper()
	for range 20 {
		if !tooLate(scene()) {
			return
		}
	}
	e.Error("the machine stands still, again and again")
}

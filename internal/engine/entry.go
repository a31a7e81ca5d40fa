package engine

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// entry is a lock name in use: a lock.Lock, which decides, with its mutex and what runs for it. An event begins a moment, takes mu,
// calls one method of the lock, and ends in Engine.end, which performs what the moment asks for (event.go).
//
// Lock order: entry.mu, then one of Engine.mu, subscriber.mu, inbox.mu, and the locks
// of the scheduler and the executor. None is held over I/O or user code.
type entry struct {
	engine *Engine
	given  *string // the name as given to the handle that made it; nil: that is the name as Redis sees it. Not changed

	mu   sync.Mutex // guards the following, the holds and their leases
	lock lock.Lock
	runs *running // nil: nothing has run for it yet

	listing listing // guarded by Engine.mu
}

// running is what runs for an entry, and what is counted for it. Few entries have it: no caller waits for the others.
type running struct {
	timer   *time.Timer          // calls wakeUp; nil: it never has
	look    *time.Timer          // calls look, while a caller waits to know that another owner wants the lock; nil: none does
	set     time.Duration        // when it does, after Settings.Epoch; 0: it does not
	private *lock.Hold           // fair: the claim whose private channel of Redisson's is subscribed; nil: none
	heard   bool                 // the entry is registered for Redisson's channel of the lock
	linger  lingers              // guarded by lingering.mu, but for hold
	waits   [len(Waits{})]uint32 // callers that had to wait in that minute, and are not in Engine.contended and waits yet
	minute  uint32               // after Settings.Epoch
}

// newEntry makes one for a handle.
func newEntry(n *named) *entry {
	e := &entry{engine: n.engine}
	if name := n.Name; name != n.Mapped {
		e.given = &name
	}
	e.lock.Init(n.family, n.wireKeys(), e)
	return e
}

// name is what errors, logs and spans say.
func (e *entry) name() string {
	if e.given != nil {
		return *e.given
	}
	return e.mapped()
}

// entryOf is the entry that a lock is of.
func entryOf(l *lock.Lock) *entry { return l.Shell.(*entry) }

// mapped is the lock's name as Redis sees it.
func (e *entry) mapped() string { return e.lock.Keys.Lock.(string) }

func (e *entry) channel() string { return e.lock.Keys.Channel() }

// Heard is called by the subscriber for each message on one of Redisson's channels.
func (e *entry) Heard(payload string) {
	if wire.SaysReleased(payload) {
		e.engine.Stats.Wakeups.Add(1)
		e.do(e.lock.Freed)
	}
}

// Subscribed is called each time Redis confirms a subscription.
func (e *entry) Subscribed() { e.do(e.lock.Subscribed) }

// Relied is called by the subscriber: no request depends on Redisson's channels.
func (e *entry) Relied() bool { return false }

// Denied is called by the subscriber: waiters poll beside Redisson's channels in any case.
func (e *entry) Denied() {}

// Unproven is called by the subscriber.
func (e *entry) Unproven() { e.do(func(m *lock.Moment) { e.lock.Unproven(m, true) }) }

// noticed is called with a message for a claim, or for a hold that may linger.
func (e *entry) noticed(h *lock.Hold, n wire.Notice) {
	if !n.Wanted {
		e.engine.Stats.Wakeups.Add(1)
	}
	e.do(func(m *lock.Moment) { e.lock.Noticed(m, h, n) })
}

// expire is called by the scheduler when a deadline has passed.
func (eng *Engine) expire(h *lock.Hold) {
	e := entryOf(h.Of())
	e.do(func(m *lock.Moment) { e.lock.Expire(m, h) })
}

// notFound is called when a renewal did not find h in Redis.
func (e *entry) notFound(h *lock.Hold, reason lock.Reason) {
	e.do(func(m *lock.Moment) { e.lock.NotFound(m, h, reason) })
}

// prolonged records that a request sent at sent has set the TTL of h to at least ttl.
func (e *entry) prolonged(h *lock.Hold, sent time.Time, ttl time.Duration) {
	e.do(func(m *lock.Moment) { e.lock.Prolonged(m, h, sent, ttl) })
}

// Lose ends all holds of a key, of whatever kind, as notFound does.
func (eng *Engine) Lose(key string) {
	for family := range lock.Families {
		if e := eng.existing(family, key); e != nil {
			e.do(e.lock.Deleted)
		}
	}
}

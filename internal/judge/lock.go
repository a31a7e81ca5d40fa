package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Lock is a lock on a server, or a Redlock over several.
type Lock struct {
	Name    string // in Redis
	Keys    *wire.Keys
	Title   string  // for people
	Sides   bool    // it is a read-write lock
	Members []*Lock // of a Redlock; else nil
	Permits int     // of a semaphore: how many there are; 0: it is none
	Most    int     // of these, how many a caller wants at most
	Beside  int     // beside these, so many were held when the number was cut, and are still
	Loose   bool    // its queue is not only Holdfast's: the order of arrival is not judged
	Shell   any     // what the world has of it

	Claims []*Claim
	Waits  []*Wait

	State     State
	Promised  []Holder        // what counts as a hold, although Redis does not show it: of data that it has lost, or of a moment that is not known exactly
	Stayed    map[string]bool // owner ids that no process has, of locks that stay taken (WithHoldAtLeast)
	Excused   time.Duration   // until then a loss of data can show: exclusion and order are not promised
	Displaced time.Duration   // until then it can show in the queue: places have come back, or are gone
	Seat      Seat            // of an election: who leads it in Redis

	since          map[string]time.Duration // since when something is so, by what it is
	gone           map[string]time.Duration // owner ids that were given back, and when
	line           line
	writer, reader uint64 // the largest tokens, of a writer or of a lock that has no sides, and of a reader
}

// NewLock returns a lock that no caller has asked for.
func NewLock(name, title string, sides bool, permits int, members ...*Lock) *Lock {
	keys := wire.NewKeys(name)
	switch {
	case sides:
		keys = wire.NewRWKeys(name)
	case permits > 0:
		keys = wire.NewSemaphoreKeys(name)
	}
	return &Lock{Name: name, Keys: keys, Title: title, Sides: sides, Permits: permits, Members: members, Stayed: map[string]bool{}, since: map[string]time.Duration{}, gone: map[string]time.Duration{}, line: newLine()}
}

func (l *Lock) String() string { return l.Title }

// State is what Redis has of a lock.
type State struct {
	Wrong   bool          // it holds something that is none
	Holders []Holder      // of a semaphore, its permits by the owner ids that they would have alone
	Missing int           // how many permits are neither available nor held; below 0: there are more than there should be
	Until   time.Duration // when the key expires, or the first permit ends; 0: it does not
	Queue   []string
	Kept    []time.Duration // until when their places are
}

// Holder is an owner id in Redis.
type Holder struct {
	ID    string
	Until time.Duration // when its right ends
	Since time.Duration // when it was seen first
}

// isWriter reports whether an owner id is that of a writer.
func isWriter(id string) bool { return strings.HasSuffix(id, ":write") }

// Claim is a lease that a caller has.
type Claim struct {
	Process Process
	Who     string
	Owner   string // claims of one owner do not exclude each other
	Write   bool   // it is no reader's, nor of a semaphore
	Permits int    // of a semaphore
	Locks   []*Lock
	Votes   bool // of a Redlock
	Lease   Lease
	Granted time.Duration
	Until   time.Duration        // without a lease: when it ends by itself; 0: unknown
	Stands  func(id string) bool // whether that is the hold it stands on; nil: any of its process is
	Shell   any                  // what the world has of it
}

// Lease is what the library says of a claim; nil: one of Redisson's, which have none.
type Lease interface {
	Valid() bool
	Ends() time.Duration // the deadline
}

func (c *Claim) valid(now time.Duration) bool {
	if c.Lease == nil {
		return now < c.Until
	}
	return c.Lease.Valid()
}

// Wait is a call that has not returned.
type Wait struct {
	Process Process
	Who     string
	Since   time.Duration
	Read    bool
	Once    bool // it does not wait for other owners
	Unlocks bool // it is an Unlock, or a call under a lease
	Parted  bool // it wants several locks, so it may have this one and wait for another
}

// Granted is called when a caller has been given a lease.
func (j *Judge) Granted(c *Claim) {
	c.Granted = j.Now()
	for _, l := range c.Locks {
		l.Claims = append(l.Claims, c)
	}
}

// Ends is called when a caller is about to give its lease up.
func (j *Judge) Ends(c *Claim) {
	for _, l := range c.Locks {
		l.Claims = slices.DeleteFunc(l.Claims, func(x *Claim) bool { return x == c })
	}
}

// Begins is called with a call that waits, Returns when it has returned.
func (j *Judge) Begins(l *Lock, x *Wait) {
	l.Waits = append(l.Waits, x)
	l.noteIdle(j)
}

// Returns ends a wait.
func (l *Lock) Returns(x *Wait) {
	l.Waits = slices.DeleteFunc(l.Waits, func(y *Wait) bool { return y == x })
}

// Forget is called when a process dies: its leases protect nothing, and no caller waits for its calls.
func (l *Lock) Forget(p Process) {
	l.Claims = slices.DeleteFunc(l.Claims, func(c *Claim) bool { return c.Process == p })
	l.Waits = slices.DeleteFunc(l.Waits, func(x *Wait) bool { return x.Process == p })
}

// Held reports whether Redis has the lock taken; of a semaphore, whether too few permits are left for a caller that wants most.
func (l *Lock) Held() bool { return len(l.State.Holders) > max(0, l.Permits-l.Most) || l.State.Wrong }

// Holder returns the hold of an owner id; nil: there is none.
func (l *Lock) Holder(id string) *Holder {
	for i := range l.State.Holders {
		if l.State.Holders[i].ID == id {
			return &l.State.Holders[i]
		}
	}
	return nil
}

func (l *Lock) claimedBy(p Process) bool {
	return slices.ContainsFunc(l.Claims, func(c *Claim) bool { return c.Process == p })
}

func (l *Lock) waitedBy(p Process) bool {
	return slices.ContainsFunc(l.Waits, func(x *Wait) bool { return x.Process == p })
}

// Wrote is called with what Redis has now. A hold that was there before, or is what a downgrade has left of one, is as old as that.
func (j *Judge) Wrote(l *Lock, st State) {
	for i := range st.Holders {
		h := &st.Holders[i]
		for _, old := range l.State.Holders {
			if old.ID == h.ID || old.ID == h.ID+":write" {
				h.Since = old.Since
			}
		}
	}
	queue := l.State.Queue
	l.State = st
	for _, h := range st.Holders {
		if at, ok := l.gone[h.ID]; ok && !j.Closed {
			j.Fail(l, "resurrection", "%v: %s has it again, which was given back at %v", l, h.ID, at)
		}
	}
	l.Beside = min(l.Beside, max(0, len(st.Holders)-l.Permits))
	if st.Missing != 0 && j.Now() > l.Excused {
		j.Fail(l, "permits", "%v: of %d, %d are neither available nor held", l, l.Permits, st.Missing)
	}
	j.lines(l, queue)
}

// SetPermits is called before a script says how many permits there are. Those that are held stay so.
func (l *Lock) SetPermits(n int) {
	l.Beside = max(0, len(l.State.Holders)-n)
	l.Permits = n
}

// GivenBack is called when an owner id was given back. It belongs to one hold, and is never used again.
func (j *Judge) GivenBack(l *Lock, id string) {
	if l.Holder(id) == nil {
		l.gone[id] = j.Now()
		l.line.forget(id)
	}
}

// Prolonged is called when a renewal has run: it makes no owner.
func (j *Judge) Prolonged(l *Lock, before []Holder, by string) {
	for _, h := range l.State.Holders {
		if !slices.ContainsFunc(before, func(o Holder) bool { return o.ID == h.ID }) {
			j.Fail(l, "resurrection", "%v: %s makes %s its owner", l, by, h.ID)
		}
	}
}

// Memory is what later judgements go by, beside what is so now and since when it is: the largest tokens, and the ids that have come to the queue, in that order,
// each with a mark if others may have passed it. An id does not return if no caller of its process wants the lock.
func (j *Judge) Memory(l *Lock) (writer, reader uint64, ids []string) {
	for id := range l.line.came {
		if p := j.Of(l, id); p != nil && (l.waitedBy(p) || l.Holder(id) != nil || slices.Contains(l.State.Queue, id)) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return l.line.came[a] - l.line.came[b] })
	for i, id := range ids {
		if l.line.lapsed[id] {
			ids[i] += " lapsed"
		}
	}
	return l.writer, l.reader, ids
}

// Lose says that data of the lock may be lost now, which can show for so long, and in the queue for so long.
func (l *Lock) Lose(excused, displaced time.Duration) {
	clear(l.gone)
	l.line = newLine()
	l.writer, l.reader = 0, 0
	l.Excused, l.Displaced = max(l.Excused, excused), max(l.Displaced, displaced)
}

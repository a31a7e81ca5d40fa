package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// ticket is a lock that one process leaves to another. From the execution of Detach to that of Attach, for the ticket's time, it counts as a lease
// whose process is no one: no other one may be valid beside it, and Redis has the lock for it.
type ticket struct {
	judge.Claim
	u      *unit
	ids    []string      // which have the lock in Redis: of a semaphore its permits
	left   time.Duration // when Redis has executed Detach; 0: not yet
	since  time.Duration // when it began to stand for the lock the last time
	until  time.Duration // when its time is over
	stands bool
	used   string   // the process that has attached it; "": none has
	tries  int      // calls of Attach that are under way
	failed *process // whose call has failed; nil: none, or its request has not been executed

	// What the caller of Detach knows.
	text  string
	lock  int // in the plan
	token uint64
}

func (t *ticket) String() string                     { return t.ids[0] }
func (t *ticket) Owns(_ *judge.Lock, id string) bool { return slices.Contains(t.ids, id) }
func (t *ticket) Air(*judge.Lock) judge.Air          { return judge.Air{} }
func (t *ticket) Valid() bool                        { return t.stands && t.u.w.now() < t.until }
func (t *ticket) Ends() time.Duration                { return t.until }

// ticketLocked returns the ticket of owner ids, which is made if there is none.
func (u *unit) ticketLocked(ids []string) *ticket {
	if i := slices.IndexFunc(u.tickets, func(t *ticket) bool { return t.ids[0] == ids[0] }); i >= 0 {
		return u.tickets[i]
	}
	t := &ticket{u: u, ids: ids}
	t.Claim = judge.Claim{Process: t, Who: ids[0], Owner: ids[0], Locks: []*judge.Lock{&u.Lock}, Lease: t, Shell: &claim{}}
	if t.Write = u.kind != RW || strings.HasSuffix(ids[0], ":write"); u.kind == Semaphore {
		t.Write, t.Permits = false, len(ids)
	}
	u.tickets = append(u.tickets, t)
	return t
}

// inexact is by how much times of a server differ from the world's: they are in milliseconds, and its clock drifts.
const inexact = 2 * time.Millisecond

// detachedLocked is called when a script may have put the ids of a ticket in the place of a hold.
func (j *court) detachedLocked(u *unit, ids []string) {
	h := u.Holder(ids[0])
	if h == nil || u.kind != Semaphore && !wire.IsDetached(ids[0]) {
		return
	}
	if t := u.ticketLocked(ids); !t.stands {
		t.stands, t.since, t.until = true, j.w.now(), h.Until-inexact
		if t.left == 0 {
			t.left = t.since
		}
		j.Granted(&t.Claim)
	}
}

// attachedLocked is called when a script may have put another id in the place of a ticket's.
func (j *court) attachedLocked(u *unit, ids []string) {
	if t := u.ticketLocked(ids); u.Holder(ids[0]) == nil || !t.Valid() {
		t.endLocked()
	}
}

// endLocked is called when t does not stand for the lock any more.
func (t *ticket) endLocked() {
	t.stands = false
	t.u.w.judge.Ends(&t.Claim)
}

// goneBackLocked finds a ticket that has not got back the lock which an Attach that failed has taken.
func (j *court) goneBackLocked(t *ticket) {
	bound, from := j.w.trips(12)+untaken, max(t.u.s.trouble, t.u.Excused)
	owed := t.failed != nil && t.left > 0 && !t.stands && t.used == "" && t.tries == 0 && j.w.now() < t.until
	if owed {
		from = max(from, t.failed.trouble)
	}
	if d := j.Lasts(&t.u.Lock, "owed to "+t.ids[0], owed && t.failed.calmLocked(t.u.s), from, bound); d > bound {
		j.failLocked("ticket", "%v: %v has failed to attach %s, which does not stand for it again after %v", t.u, t.failed, t, d)
	}
}

// handOver ends a section by a ticket, if the lock can be left to one.
func (k *worker) handOver(s *Step, c *claim) {
	w, u, d := k.w, c.units[0], s.Ticket.Truncate(time.Millisecond)+10*time.Millisecond
	var text string
	k.giveUp(c, "Detach", func() (err error) {
		text, err = c.lease.Detach(k.p.ctx, d)
		return err
	})
	if text == "" {
		if !errors.Is(c.lease.Err(), holdfast.ErrReleased) { // it shares what the process has, or has ended before
			k.unlock(c)
		}
		return
	}
	parsed, err := wire.ParseTicket(text)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := []string{wire.OwnerID(parsed.Giver, parsed.Number(), wire.Marks{Writes: u.kind == RW && c.Write})}
	if u.kind == Semaphore {
		ids = judge.PermitsOf(wire.PermitsID(parsed.Giver, parsed.Number(), parsed.Permits))
	}
	t := u.ticketLocked(ids)
	t.text, t.lock, t.token = text, s.Lock, c.lease.Token()
	w.tickets = append(w.tickets, t)
	w.noteLocked("%s has the ticket %s for %v", c.Who, t, d)
	switch lasts := t.until + inexact - t.left; {
	case c.p.dead || u.lost >= 0:
	case c.lease.Valid():
		w.judge.failLocked("ticket", "%s is valid after Detach", c.Who)
	case t.stands && t.since == t.left && (lasts < d-inexact || lasts > d+inexact):
		w.judge.failLocked("ticket", "%s was to leave it for %v, and Redis has it for %v", c.Who, d, lasts)
	}
}

// attach takes over the lock of a ticket that another section has left, or has taken over before.
func (k *worker) attach(s *Step) {
	w := k.w
	w.mu.Lock()
	for range 10 { // one may come
		if len(w.tickets) == 0 {
			w.mu.Unlock()
			k.pause(mostTicket / 100)
			w.mu.Lock()
		}
	}
	if len(w.tickets) == 0 || k.p.dead || k.p.closed {
		w.mu.Unlock()
		return
	}
	at := int(w.chance(uint64(k.slot), uint64(k.n), uint64(k.step), 10) % uint64(len(w.tickets)))
	t := w.tickets[at]
	if t.used != "" || t.left > 0 && t.until < w.now() { // once more is enough
		w.tickets = slices.Delete(w.tickets, at, at+1)
	}
	h, u, began := &k.p.locks[t.lock], t.u, k.p.momentLocked()
	x := &judge.Wait{Process: k.p, Who: k.String() + " attaching", Since: began.at, Once: true, Unlocks: true}
	t.tries++
	u.meetsLocked(x)
	u.Waits = append(u.Waits, x)
	w.stats.Calls++
	w.noteLocked("%s attaches %s%s", k.String(), t, s.described())
	w.mu.Unlock()
	ctx, cancel := k.limit(s)
	defer cancel()
	lease, err := k.p.managers[0].Attach(ctx, t.text, h.plan.options()...)
	k.inTurn()
	k.hold(&Step{Lock: t.lock, Read: u.kind == RW && !t.Write, Hold: s.Hold, Over: s.Over, Heeds: s.Heeds, Inside: s.Inside, End: s.End, Ticket: s.Ticket}, h, k.attached(s, h, t, x, began, lease, err))
}

// attached judges what Attach has returned, and returns the claim; nil: there is none.
func (k *worker) attached(s *Step, h *handle, t *ticket, x *judge.Wait, began moment, lease *holdfast.Lease, err error) *claim {
	w, u, who := k.w, t.u, k.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	u.Returns(x)
	t.tries--
	known := u.heedLocked(x)
	took, lost := k.p.ranLocked(began), u.lost >= 0
	if errors.Is(err, holdfast.ErrUnavailable) {
		t.failed = k.p
	}
	w.noteLocked("%s has attached after %v: %v", who, took, err)
	if k.p.dead {
		return nil
	}
	if k.p.tardyLocked(began, k.p.askLocked()) || s.Limit > 0 && took > s.Limit+punctual {
		w.judge.failLocked("late return", "Attach by %s took %v", who, took)
	}
	switch {
	case err == nil:
		c := newClaim(k.p, lease, who, t.Write, h, s)
		c.heed = known
		w.stats.Attached++
		w.judge.grantedLocked(c, true)
		w.judge.acknowledgedLocked(c)
		w.judge.TokenAgain(&u.Lock, who, lease.Token(), t.token)
		if t.used != "" && !lost {
			w.judge.failLocked("ticket used twice", "%v: by %s and by %s", u, t.used, who)
		}
		t.used = who
		return c
	case errors.Is(err, holdfast.ErrLeaseLost):
		if t.Valid() && t.since < began.at && !lost {
			w.judge.failLocked("ticket", "%v: %s is told %v, and it stands since %v until %v", u, who, err, t.since, t.until)
		}
	case errors.Is(err, holdfast.ErrClosed) && k.p.closed:
	case lost && errors.Is(err, holdfast.ErrWrongKind):
	case !errors.Is(err, holdfast.ErrUnavailable):
		w.judge.failLocked("odd error", "%s attaches: %v", who, err)
	case s.Limit == 0 || w.now()-began.at < s.Limit:
		w.judge.unavailableLocked(k.p, h.units, fmt.Sprintf("%s attaches", who), err)
	}
	return nil
}

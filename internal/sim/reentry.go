package sim

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Calls under a lease: of the same owner, by the context of the lease, and of another owner, by a context without it.

// reenter takes the lock again, by the context of its lease.
func (k *worker) reenter(s *Step, h *handle, c *claim) {
	locker := h.write
	if s.Read {
		locker = h.read
	}
	inner := k.nested(s, h, c, locker, s.Read)
	if inner == nil {
		return
	}
	k.work(c, time.Millisecond)
	k.locals() // the process has two leases of the lock now
	k.unlock(inner)
}

// nested is a call under a lease, which re-enters its lock at once.
func (k *worker) nested(s *Step, h *handle, c *claim, locker holdfast.Locker, read bool) *claim {
	w := k.w
	valid, began := c.lease.Valid() && c.lease.Err() == nil, c.p.moment()
	ctx, cancel := context.WithTimeout(c.lease.Context(k.p.ctx), time.Second)
	defer cancel()
	w.mu.Lock()
	under := w.busyLocked(c)
	w.mu.Unlock()
	lease, err := locker.TryLock(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idleLocked(under)
	took := c.p.ranLocked(began)
	w.noteLocked("%s re-enters after %v: %v", c.Who, took, err)
	switch {
	case c.p.dead:
		return nil
	case valid && (err != nil || took > 0) && !c.p.closed:
		w.judge.failLocked("re-entry", "%s, after %v: %v", c.Who, took, err)
	case valid && err == nil:
		w.judge.TokenAgain(&c.units[0].Lock, c.Who, lease.Token(), c.lease.Token())
	}
	if err != nil {
		return nil
	}
	inner := newClaim(c.p, lease, c.Owner, !read, h, s)
	inner.Who, inner.nested, inner.heed = c.Who+"'", true, heed{since: c.heed.since, sought: c.heed.sought}
	if !valid {
		inner.Owner += "'" // another owner: it waited for no other owner
	}
	w.judge.grantedLocked(inner, true)
	return inner
}

// downgrade takes the read side under the write side, gives that up, and then the read side. It reports whether it did.
func (k *worker) downgrade(s *Step, h *handle, c *claim) bool {
	read := k.nested(s, h, c, h.read, true)
	if read == nil {
		return false
	}
	k.work(c, s.Hold/4)
	k.unlock(c)
	k.work(read, s.Hold/2)
	k.unlock(read)
	return true
}

// upgrade asks for the write side under the read side, which one owner would wait for forever.
func (k *worker) upgrade(h *handle, c *claim) {
	w := k.w
	valid, began := c.lease.Valid() && c.lease.Err() == nil, c.p.moment()
	lease, err := h.write.TryLock(c.lease.Context(k.p.ctx))
	if err == nil {
		_ = lease.Unlock(context.Background())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked("%s asks for the write side: %v", c.Who, err)
	if took := c.p.ranLocked(began); valid && !c.p.dead && !c.p.closed && (took > 0 || !errors.Is(err, holdfast.ErrWouldDeadlock)) {
		w.judge.failLocked("upgrade", "%s asks for the write side, and gets %v after %v", c.Who, err, took)
	}
}

// afresh asks for the lock once more, by a context that has lost the lease: as another owner, who does not re-enter.
func (k *worker) afresh(s *Step, h *handle, c *claim) {
	ctx, cancel := k.limit(&Step{})
	defer cancel()
	a := k.begin(&Step{Way: ByTry, Read: s.Read}, h)
	a.owner, a.label, a.under = a.owner+" afresh", "", c.lease
	locker := h.write
	if s.Read && h.read != nil {
		locker = h.read
	}
	if other := a.end(locker.TryLock(holdfast.WithoutOwner(c.lease.Context(ctx)))); other != nil {
		k.work(other, time.Millisecond)
		k.unlock(other)
	}
}

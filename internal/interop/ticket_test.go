package interop

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// manager is one in this process.
func (e *env) manager(opts ...holdfast.Option) *holdfast.Manager {
	m, err := holdfast.New(e.admin, opts...)
	redistest.Must(e, err)
	e.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// seen fails unless Redisson sees that the lock is taken, for at most that time.
func (e *env) seen(java *peer, most time.Duration) {
	e.Helper()
	ask := func(verb string) *call { return java.start(e, e.thread(2), verb, e.kind.name, e.key) }
	if e.kind.name == permitKind.name {
		ask("counts").want("0 1")
		return
	}
	ask("isLocked").want("true")
	if ttl := ask("remainTimeToLive").number(); ttl <= 0 || ttl > most.Milliseconds() {
		e.Errorf("a TTL of %d ms, %v at most", ttl, most)
	}
}

// What a process leaves to a ticket is taken for Redisson, until the second process gives it back, or the ticket's time is over.
func ticket(e *env) {
	ctx, m, java := context.Background(), e.manager(), e.java[0]
	if e.kind.name == permitKind.name {
		java.start(e, e.thread(9), "set", e.kind.name, e.key, 1).want("ok")
	}
	detach := func(d time.Duration) string {
		e.Helper()
		lease, err := e.kind.lock(m, e.key).Lock(ctx)
		redistest.Must(e, err)
		ticket, err := lease.Detach(ctx, d)
		redistest.Must(e, err)
		return ticket
	}
	const long = 2 * time.Minute
	ticket := detach(long)
	e.seen(java, long)
	e.refused(java)
	waiting := e.waiter(java, 3)
	lease, err := m.Attach(ctx, ticket)
	redistest.Must(e, err)
	e.seen(java, holdfast.DefaultLease)
	e.refused(java)
	began := time.Now()
	redistest.Must(e, lease.Unlock(ctx))
	redistest.WantMost(e, waiting.want("ok").ended.Sub(began), bounds.woken, "woken after %v, by something else than the message")
	e.unlock(java, 3)

	if e.kind.queue && e.line == old {
		return // may sleep forever behind a lock that ends by itself: see fairWaiterBehindCrash
	}
	began = time.Now()
	ticket = detach(shortLease)
	if after := e.waiter(java, 3).want("ok").ended.Sub(began); after < shortLease || after > shortLease+slack {
		e.Errorf("Redisson came in after %v, and the ticket had %v", after, shortLease)
	}
	if _, err := m.Attach(ctx, ticket); !errors.Is(err, holdfast.ErrLeaseLost) {
		e.Errorf("Attach: %v", err)
	}
	e.unlock(java, 3)
	e.free()
}

func permitTicket(lock *env) {
	e := *lock
	e.kind = permitKind
	ticket(&e)
}

// An owner id with a value is one as any other for Redisson.
func value(e *env) {
	ctx, m, java, rival := context.Background(), e.manager(holdfast.WithValue("deploy 7: {a}/b%")), e.java[0], e.as(e.kind.against())
	take := func() *holdfast.Lease {
		e.Helper()
		lease, err := e.kind.lock(m, e.key).Lock(ctx)
		redistest.Must(e, err)
		e.seen(java, holdfast.DefaultLease)
		rival.refused(java)
		return lease
	}
	lease := take()
	waiting := rival.waiter(java, 3)
	redistest.Must(e, lease.Unlock(ctx))
	waiting.want("ok")
	rival.unlock(java, 3)

	lease = take()
	java.start(e, e.thread(3), "forceUnlock", e.kind.name, e.key).want("true")
	if err := lease.Unlock(ctx); !errors.Is(err, holdfast.ErrLeaseLost) {
		e.Errorf("Unlock of what Redisson has freed: %v", err)
	}
	e.free()
}

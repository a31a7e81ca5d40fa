package lock

import "testing"

// A TryLock that takes over the bid of another one waits for the holder's answer for as long as that one did: not for what the other
// one has left of its time.
func TestBid_TheNextTryLockHasItsOwnTime(t *testing.T) {
	terms := new(Terms)
	tryLock := By{Handle: &Handle{Terms: terms}, Kind: MutexKind}
	first, next := &Waiter{By: tryLock, Once: true}, &Waiter{By: tryLock, Once: true}
	l := new(Lock)
	l.Init(MutexKind, nil, nil)
	l.bid = &Bid{claim: &Hold{lock: l, Terms: terms, phase: standing}, waiter: first, asks: 1}
	l.onces = 2
	l.waiters.push(next)
	l.left(nil, first)
	if l.bid.waiter != next || l.bid.asks != 0 {
		t.Errorf("the bid is for %p until %v, want %p and no time yet", l.bid.waiter, l.bid.asks, next)
	}
}

// A read hold that is gone leaves nothing of the downgrade that made it: the entry of a forgotten name would keep its leases.
func TestReadHolds_ForgetTheirDowngrade(t *testing.T) {
	h := new(Hold)
	d := &Downgrade{Reader: h}
	d.settled = true
	r := &readHolds{holds: []*Hold{h}, converting: d}
	r.remove(nil, h, nil)
	if !r.none() || r.converting != nil {
		t.Errorf("%d holds are left, and the downgrade %p", len(r.holds), r.converting)
	}
}

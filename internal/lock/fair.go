package lock

// fairRules are those of a fair lock: its waiters are granted the lock in the order of their calls, among all processes. So each has
// a place in Redis's queue, and a hold that is given up goes to Redis, which knows whose turn it is.
//
// place.go gets the places, keep.go keeps them and gets back those that are lost, and leave.go gives them up.
var fairRules = rules{bidsEach: true}

// places is what a lock has whose waiters have bids of their own.
type places struct {
	joining *Join     // is putting waiters into the queue, or back into it; nil: none
	keeping int       // requests that ask whether places are still there
	lost    bool      // a waiter may have lost its place, see bid.lost
	awaited int       // how many of those requests are to end before the lost ones come back
	left    int32     // bids whose waiters have left, and whose requests are under way
	leaving *Repeated // is taking waiters out of it; nil: none
	leavers []*Hold   // are to leave it next; counted in Lock.releasing
}

// firstPlace is the bid of the first waiter, if each has its own; nil: there is none.
func (lk *Lock) firstPlace() *Bid {
	if front := lk.waiters.head; front != nil && lk.rules().bidsEach {
		return front.bid
	}
	return nil
}

package model

// entry is what one process does for its callers, of whom there are two here, while another
// process wants the lock as well. That one is Holdfast's, and stands in the queue in Redis, or it is
// Redisson's, which listens to the channel of the lock and races. The real one is entry.go,
// enter.go, grant.go, bid.go, try.go, release.go and inbox.go.
//
// Requests are answered here, sooner or later. What becomes of those that are not, and of
// processes that stand still, is in handover.
type entry struct {
	// In Redis.

	owner side
	queue [2]side
	they  whereabouts
	plain bool // they are Redisson's
	ring  bool // Redisson's is being told of a release

	// On the way.

	request  request // an acquire for the claim
	release  release // of the lock, or of a claim
	question question
	message  mail // a grant of our claim
	echo     bool // a release, on the channel of the lock, to us

	// What the process knows.

	callers   [2]caller
	second    bool   // of two that wait, the second came first
	held      bool   // by the caller inside
	over      bool   // the slice
	demand    demand // by the others
	queued    bool   // the claim stands in the queue
	orphan    bool   // whom the request is for has left
	noticed   bool   // a grant came while a request was under way
	ask       bool
	armed     bool // the timer will fire
	yielding  bool // until then it is the others' turn
	listening bool
	closed    bool

	// For the promises.

	passes int8 // from caller to caller, after the slice was over, while they waited
	turn   bool // of Redisson's waiters: they know of a release
	rude   bool // asked nevertheless
}

type side uint8

const (
	nobody side = iota
	us
	them
)

// whereabouts is where the other process is.
type whereabouts uint8

const (
	away whereabouts = iota
	waits
	holds
	died
)

type caller uint8

const (
	outside caller = iota
	parked
	inside
)

// release is where one is, and what its reply says.
type release uint8

const (
	noRelease release = iota
	ofLock            // on its way
	ofClaim
	quiet // replied: free or granted to another process, and no other caller knows of it
	heard // replied: free, and others heard of it
)

// question is where the question is whether others wait.
type question uint8

const (
	noQuestion question = iota
	asked
	answeredNo
	answeredYes
)

type demand uint8

const (
	demandUnknown demand = iota
	demandAsked
	demandKnown
)

// mail is a grant message that has not been read.
type mail uint8

const (
	noMail mail = iota
	ours        // for the claim that there is
	old         // for one that was given up
)

func (e *entry) front() side { return e.queue[0] }

func (e *entry) drop(s side) {
	if e.queue[0] == s {
		e.queue[0], e.queue[1] = e.queue[1], nobody
	} else if e.queue[1] == s {
		e.queue[1] = nobody
	}
}

func (e *entry) push(s side) {
	switch {
	case e.queue[0] == s || e.queue[1] == s:
	case e.queue[0] == nobody:
		e.queue[0] = s
	default:
		e.queue[1] = s
	}
}

// grant gives the free lock to the first in the queue, and reports whether there is one.
func (e *entry) grant() bool {
	if e.front() == them && e.they == died {
		e.drop(them)
	}
	switch e.owner = e.front(); e.owner {
	case us:
		e.message = ours
		if e.release == ofClaim {
			e.message = old // it is being given up
		}
	case them:
		e.they = holds
	}
	e.drop(e.owner)
	return e.owner != nobody
}

func (e *entry) runRequest() {
	if e.owner == nobody && e.front() == them {
		e.grant()
	}
	if e.owner == nobody || e.owner == us {
		e.drop(us)
		e.owner, e.request = us, granted
		return
	}
	e.push(us)
	e.request = refused
}

func (e *entry) runRelease() {
	e.release = quiet
	e.drop(us)
	if e.owner != us {
		return
	}
	if e.owner = nobody; e.grant() {
		return
	}
	e.echo = e.listening
	if e.plain && e.they == waits {
		e.ring, e.release = true, heard
	}
}

// theyAsk is a request of the others.
func (e *entry) theyAsk() {
	switch first := e.front(); {
	case e.owner == nobody && (e.plain || first == nobody || first == them):
		e.drop(them)
		e.owner, e.they = them, holds
		return
	case e.owner == nobody:
		e.grant()
	}
	if e.they = waits; !e.plain {
		e.push(them)
	}
}

// theyUnlock is their release: Redisson's knows of no queue.
func (e *entry) theyUnlock() {
	e.owner, e.they = nobody, away
	if e.plain {
		e.echo = e.listening
	} else {
		e.grant()
	}
}

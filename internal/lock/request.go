package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Request is one request to Redis: a *Try, *Join, *Release, *Downgrade, *Keep, *Question or *Busy. It may be executed late, twice or
// never. What it says is in its fields, of which the shell makes keys and arguments. What becomes of it are events of its lock.
type Request interface {
	// Replied is the event that a copy of the request has ended, once for each.
	Replied(m *Moment, c *Copy, r *Reply)
	// Overdue is the event that a reply takes longer than its patience.
	Overdue(m *Moment, c *Copy)
	// Stranded is the event that the connection of a copy is dead: the request is sent over another one.
	Stranded(m *Moment, c *Copy)
}

// Copy is one copy of a request, as it was sent.
type Copy struct {
	Generation uint32 // of what the request asks for
	flight     flight
}

// flight is how far a copy of a request has come.
type flight uint8

const (
	underWay flight = iota // it is awaited, and takes room
	cutOff                 // its connection is dead: it will end without a reply, and takes no room
	landed                 // it has ended, or its request does not wait for it any more
)

// Outcome says what is known about a request's effect on Redis.
type Outcome uint8

const (
	// Answered: the script ran and this is its reply.
	Answered Outcome = iota
	// NotSent: not a byte of the request can have reached Redis.
	NotSent
	// Refused: Redis did not run the script; it may if asked again (LOADING, READONLY, OOM,
	// CLUSTERDOWN, ...).
	Refused
	// Barred: Redis did not run the script, because it does not let this client (NOAUTH,
	// WRONGPASS, NOPERM, or it is of the wrong kind for this server), and it has let it before: passwords are changed and lists of rights
	// are loaded while programs run, so it may again soon.
	Barred
	// Denied: Redis did not run the script and will not until something is
	// changed (ACL, authentication, a command it does not know).
	Denied
	// Failed: the script ended with an error with which it would end each time. What it wrote
	// before that stays.
	Failed
	// Shut: the client is closed. Nothing was sent, and nothing will be.
	Shut
	// Unknown: the script may have run, entirely or up to an error inside it. Asked again, it
	// may succeed: so is each error that is not known to be final, such as those of proxies.
	Unknown
	// Unsent: Close has stopped what sends requests.
	Unsent
)

func (o Outcome) String() string {
	return [...]string{"answered", "not sent", "refused", "barred", "denied", "failed", "shut", "unknown", "unsent"}[o]
}

// Final reports whether asking again would end in the same way.
func (o Outcome) Final() bool { return o == Denied || o == Failed || o == Shut || o == Unsent }

// Says is what an answer says.
type Says uint8

const (
	Nothing Says = iota // it is no answer

	// Of an acquire.
	Granted
	Unacked   // granted, and too few replicas have acknowledged it: Cause says how many
	Held      // another owner is in the way, or the lock is kept for one: State
	OtherKind // a key holds something else: Cause says what
	Buried    // there is a tombstone

	// Of a release or a downgrade.
	Done       // Wanted: others have heard it
	HandedOver // granted to another process, or left to Redisson; or to a waiter here: Next
	Crowded    // free; the next request removes more of the dead who stand in front
	Gone       // the lock has no owner
	Stolen     // another owner does

	Listed // of a keep or a question: Codes, or Wanted
)

// State is that of a lock that others are before the caller of.
type State uint8

const (
	Owned        State = iota // another owner has it, or was offered it
	LeftOpen                  // it is free: it is another one's turn, for TTL
	CrowdedQueue              // it is free, and so many of the dead stand there that one request does not remove them all
	Lingering                 // another owner has it that may linger, and no other waits: it can be asked
	TooMany                   // of a semaphore: it has fewer permits in all
)

// Place is what a waiter wants of the queue if it is not granted the lock.
type Place uint8

const (
	NoPlace   Place = iota // it does not wait
	NewPlace               // a place, or the one that it has
	SamePlace              // the place that it had, or if that was taken away, one in front
	AskPlace               // one until the holder has answered
)

// Kept is what a keep says of one waiter's place.
type Kept uint8

const (
	PlaceKept Kept = iota
	PlaceLost
	PlaceGranted // it has the lock
)

// Reply is the end of a request.
type Reply struct {
	Outcome  Outcome
	Says     Says
	State    State         // Held
	Foreign  bool          // Held: the holder, or the next one, is Redisson's
	Wanted   bool          // Done, Listed: another process waits for the lock, or other clients listen to its channel
	Sent     time.Time     // read before it was handed to the network
	Cause    error         // why there is no answer, or Unacked
	Hopeless error         // likewise, if asking again may be futile
	Token    uint64        // Granted: the last fencing token
	TTL      time.Duration // Held: of the holder; below 0: it has none. Of a free lock, when to ask again
	Clock    int64         // Held: the server's time, milliseconds
	Total    int           // Held: of a semaphore: how many permits there are
	Next     *Hold         // HandedOver: the claim of this process that it was granted to; nil: none
	Notice   wire.Notice   // HandedOver: that grant
	Places   []Kept        // Listed: of each waiter
	Heard    int64         // Listed: how many clients have heard the echo; below 0: it was not sent
}

// A request without answer is sent again over another connection: at once if its connection is known to
// be dead (stranded), and when it has been without answer for its patience (overdue).

// copies is what is known of the copies of one request: Redis may execute each of them late, or never.
type copies struct {
	flying  uint8 // sent, and without reply
	dead    uint8 // of these, on connections that are known to be dead
	unclear bool  // one has ended without telling whether it ran
}

// maxCopies bounds the unanswered copies of one request. Each goes to a connection
// of its own, because the ones before may be dead. One that is known to be on a dead connection takes no room: it ends with
// go-redis's read timeout, which can be an hour. The executor bounds those (command.maxStranded).
const maxCopies = 4

// full reports whether no further copy may be sent before one has ended.
func (c *copies) full() bool { return c.flying-c.dead >= maxCopies }

// strands records that the connection of a copy is dead. The copy may have ended before.
func (c *copies) strands(f *flight) {
	if *f == underWay {
		*f = cutOff
		c.dead++
	}
}

// ends records that a copy has ended.
func (c *copies) ends(f *flight) {
	switch {
	case c.flying == 0 || *f == landed:
		panic("holdfast: bug: a copy has ended that was not under way")
	case *f == cutOff:
		c.dead--
	}
	c.flying--
	*f = landed
}

// stray reports whether a copy may have run, or may still reach Redis.
func (c *copies) stray() bool { return c.flying > 0 || c.unclear }

// doubt records how a copy has ended that brought no answer.
func (c *copies) doubt(o Outcome) {
	c.unclear = c.unclear || o == Unknown || o == Failed
}

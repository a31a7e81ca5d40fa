package protocol

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// TurnsInARow is how many grants to Holdfast's waiters follow each other before a release lets a plain waiter of
// Redisson in, which is in no queue.
const TurnsInARow = 16

// Times in the scripts.
const (
	// A queue whose processes have all died ends by its TTL. It is set again when less than half of it is left.
	queueTTL     = 24 * time.Hour
	queueTTLLeft = queueTTL / 2

	// A waiter of Redisson that comes behind others counts its own time from theirs, this much for each.
	redissonWait = 300 * time.Second

	// A waiter of Redisson has this long to take a lock that it has been offered.
	redissonPlace = 5 * time.Second

	// A request that finds the lock free for others asks again after this time: where it was left open, and where it was
	// offered to a waiter of Redisson.
	openAgain    = 50 * time.Millisecond
	offeredAgain = 250 * time.Millisecond

	// A right of a reader that another client has left without TTL gets this one. It is holdfast.DefaultLease.
	defaultRight = 30 * time.Second

	// A read-write lock that ends this much earlier than its waiter knows is worth a message.
	shorter = 100 * time.Millisecond
)

// Amounts in the scripts. They bound how long one script keeps the server from others.
const (
	deadAtOnce   = 500  // places of dead processes that one script removes
	deadProcess  = 4    // places of dead processes cost as much as one where only a grant shows that the process is dead
	behind       = 8    // places behind a waiter of Redisson that a script looks at, for one of Holdfast to notify
	placesAtOnce = 500  // places that leave reads at a time
	readerHolds  = 1000 // holds of one reader whose rights are looked at
	inspected    = 2000 // fields, and as many rights, that inspect looks at
	shown        = 1000 // holders that it shows
	forced       = 64   // waiters that force_release notifies, and one less of the holders
	fields       = 100  // of what a process says of itself
	clip         = 32   // bytes of a counter that is no number
)

// deafMark is what the time of a place ends with if its process hears no inbox: half a millisecond.
const deafMark = "0.5"

// tokenEnd is where fencing tokens end: up to here the numbers of Lua are exact.
const tokenEnd = 1 << 53

// constants are the texts for @NAME@ in the scripts: the times and amounts above, and the codes of verdict.go.
var constants = map[string]string{
	"ACQUIRE_BURIED":      number(AcquireBuried),
	"ACQUIRE_HELD":        number(AcquireHeld),
	"ACQUIRE_KIND":        number(AcquireKind),
	"BEHIND":              number(behind),
	"CLIP":                number(clip),
	"DEAD":                number(deadAtOnce),
	"DEAD_PROCESS":        number(deadProcess),
	"DEAF":                deafMark,
	"DEFAULT_LEASE":       milliseconds(defaultRight),
	"FIELDS":              number(fields),
	"FORCE_OTHER_OWNER":   number(ForceOtherOwner),
	"FORCED":              number(forced - 1), // the index of the last one
	"INSPECTED":           number(inspected),
	"KEEP_DONE":           number(KeepDone),
	"KEEP_GONE":           number(KeepGone),
	"KEEP_GRANTED":        number(KeepGranted),
	"LINGERS":             wire.LingersPattern,
	"OFFERED_AGAIN":       milliseconds(offeredAgain),
	"OPEN_AGAIN":          milliseconds(openAgain),
	"PLACES":              number(placesAtOnce),
	"QUEUE_TTL":           milliseconds(queueTTL),
	"QUEUE_TTL_LEFT":      milliseconds(queueTTLLeft),
	"READER_HOLDS":        number(readerHolds),
	"REDISSON_PLACE":      milliseconds(redissonPlace),
	"REDISSON_WAIT":       milliseconds(redissonWait),
	"RELEASE_CROWDED":     number(ReleaseCrowded),
	"RELEASE_GONE":        number(ReleaseGone),
	"RELEASE_HANDED_OVER": number(ReleaseHandedOver),
	"RENEW_DONE":          number(RenewDone),
	"RENEW_GONE":          number(RenewGone),
	"RENEW_STOLEN":        number(RenewStolen),
	"SHORTER":             milliseconds(shorter),
	"SHOWN":               number(shown),
	"STATE_CROWDED":       number(StateCrowded),
	"STATE_HELD":          number(StateHeld),
	"STATE_LINGERS":       number(StateLingers),
	"STATE_OFFERED":       number(StateOffered),
	"STATE_OPEN":          number(StateOpen),
	"TOKEN_END":           number(tokenEnd),
	"TOKENS":              number(wire.TokensPerGrant),
	"TURNS":               number(TurnsInARow),
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func milliseconds(d time.Duration) string { return number(d.Milliseconds()) }

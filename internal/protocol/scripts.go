// Package protocol knows what the scripts are and what they answer: each script as Redis gets it, the codes of its
// replies, and which values are none of its replies.
package protocol

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The scripts. Each is a file of that name, with its contract in its header; see scripts/README.md.
var (
	LockAcquire   = script("lock_acquire", givesToken)
	LockRelease   = script("lock_release", givesCount)
	MultiAcquire  = alone("multi_acquire", givesTokens)
	RWAcquire     = script("rw_acquire", givesToken)
	RWRelease     = script("rw_release", givesCount)
	RWDowngrade   = script("rw_downgrade", givesCount)
	Renew         = script("renew", givesCodes)
	RenewRead     = script("renew_read", givesCodes)
	Join          = script("join", givesList)
	Leave         = script("leave", givesCount)
	Keep          = script("keep", givesList)
	Demand        = script("demand", givesList)
	PermitAcquire = script("permit_acquire", givesToken)
	PermitRelease = script("permit_release", givesCount)
	PermitStay    = script("permit_stay", givesCode)
	PermitAttach  = script("permit_attach", givesCode)
	PermitRenew   = script("permit_renew", givesCodes)
	PermitSet     = alone("permit_set", givesProclaimed)
	Busy          = script("busy", givesCode)
	Inspect       = alone("inspect", givesInfo)
	ForceRelease  = alone("force_release", givesCode)
	Stay          = script("stay", givesCode)
	Attach        = script("attach", givesCode)
	Introduce     = alone("introduce", givesCode)
	Introduced    = alone("introduced", givesList)
	Proclaim      = alone("proclaim", givesProclaimed)
	Leader        = alone("leader", givesLeader)
)

// script is for scripts about one lock, or about some in few words: calls of them are merged.
func script(name string, gives func(reply any) bool) *command.Script {
	text := Text(name)
	return command.NewScript(name, text, Many(name, text), gives)
}

// alone is for scripts that are seldom called, or of which one call can take long.
func alone(name string, gives func(reply any) bool) *command.Script {
	return command.NewScript(name, Text(name), "", gives)
}

// givesToken is for scripts that take a lock: a token, or a verdict.
func givesToken(reply any) bool {
	if n, ok := reply.(int64); ok {
		return n >= 0
	}
	return ParseVerdict(reply, new(lock.Reply))
}

// givesTokens is the same for several locks.
func givesTokens(reply any) bool {
	if n, ok := reply.(int64); ok {
		return n >= 0
	}
	_, _, refusal := ParseRefusal(reply, new(lock.Reply))
	return refusal
}

// givesCodes is for scripts that give a code for each hold, or what Redis said instead.
func givesCodes(reply any) bool {
	list, _ := reply.([]any)
	return len(list) > 0 && !slices.ContainsFunc(list, func(code any) bool {
		n, ok := code.(int64)
		_, text := code.(string)
		return !text && (!ok || n < RenewGone || n > RenewStolen)
	})
}

// infoFields is how many fields inspect gives.
const infoFields = 12

func givesInfo(reply any) bool {
	list, _ := reply.([]any)
	return len(list) == infoFields
}

// givesCount is for scripts that give a lock back: how many heard it, a code below 0, or a message.
func givesCount(reply any) bool {
	message, _ := reply.(string)
	return strings.HasPrefix(message, "g ") || givesCode(reply)
}

func givesCode(reply any) bool {
	_, ok := reply.(int64)
	return ok
}

func givesList(reply any) bool {
	list, ok := reply.([]any)
	return ok && len(list) > 0
}

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

	// What a leader has said of itself is kept this long, and only counts while it leads. It is said again well before.
	recordTTL = 24 * time.Hour

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
	queued       = 100  // places in the queue that it shows
	forced       = 64   // waiters that one script notifies, and one less of the holders
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
	"FOREVER":             milliseconds(validity.MaxTTL),
	"FORCE_OTHER_OWNER":   number(ForceOtherOwner),
	"FORCED":              number(forced - 1), // the index of the last one
	"HEARS":               wire.HearsPattern,
	"INSPECTED":           number(inspected),
	"KEEP_DONE":           number(KeepDone),
	"KEEP_GONE":           number(KeepGone),
	"KEEP_GRANTED":        number(KeepGranted),
	"LINGERS":             wire.LingersPattern,
	"OFFERED_AGAIN":       milliseconds(offeredAgain),
	"OPEN_AGAIN":          milliseconds(openAgain),
	"OUR_PERMIT":          wire.PermitPattern,
	"PERMIT_MANAGER":      number(2 * wire.PermitManager), // in hexadecimal digits
	"PERMIT":              number(wire.PermitBytes),
	"PLACES":              number(placesAtOnce),
	"QUEUE_TTL":           milliseconds(queueTTL),
	"QUEUE_TTL_LEFT":      milliseconds(queueTTLLeft),
	"QUEUED":              number(queued),
	"READER_HOLDS":        number(readerHolds),
	"RECORD_TTL":          milliseconds(recordTTL),
	"REDISSON_PLACE":      milliseconds(redissonPlace),
	"REDISSON_WAIT":       milliseconds(redissonWait),
	"RELEASE_CROWDED":     number(ReleaseCrowded),
	"RELEASE_GONE":        number(ReleaseGone),
	"RELEASE_HANDED_OVER": number(ReleaseHandedOver),
	"RENEW_DONE":          number(RenewDone),
	"RENEW_GONE":          number(RenewGone),
	"RENEW_STOLEN":        number(RenewStolen),
	"SEAT_TAKEN":          number(seatTaken),
	"SEAT_VACANT":         number(seatVacant),
	"SHORTER":             milliseconds(shorter),
	"SHOWN":               number(shown),
	"STATE_CROWDED":       number(StateCrowded),
	"STATE_HELD":          number(StateHeld),
	"STATE_LINGERS":       number(StateLingers),
	"STATE_OFFERED":       number(StateOffered),
	"STATE_OPEN":          number(StateOpen),
	"STATE_TOO_MANY":      number(StateTooMany),
	"TOKEN_END":           number(tokenEnd),
	"TOKENS":              number(wire.TokensPerGrant),
	"TURNS":               number(TurnsInARow),
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func milliseconds(d time.Duration) string { return number(d.Milliseconds()) }

// kind is what the requests about holds of a kind of lock, or a side of one, are made of.
type kind struct {
	acquire, renew, release *command.Script

	writes bool // the owner ids of its holds say that they are writers'
	right  bool // a hold ends with a key beside the lock's: its right, or the set of permits
}

var kinds = [...]kind{
	lock.MutexKind:     {acquire: LockAcquire, renew: Renew, release: LockRelease},
	lock.FairKind:      {acquire: LockAcquire, renew: Renew, release: LockRelease},
	lock.SemaphoreKind: {acquire: PermitAcquire, renew: PermitRenew, release: PermitRelease, right: true},
	lock.WriteKind:     {acquire: RWAcquire, renew: Renew, release: RWRelease, writes: true},
	lock.ReadKind:      {acquire: RWAcquire, renew: RenewRead, release: RWRelease, right: true},
}

// RenewScript renews holds of a kind.
func RenewScript(k lock.Kind) *command.Script { return kinds[k].renew }

// Some arguments say several things, in words and whole numbers, because each argument costs Redis about a quarter of a
// microsecond. lib/place.lua and lib/grant.lua take them apart.

// places are the words for what a caller wants of the queue.
var places = [...]string{lock.NoPlace: "none", lock.NewPlace: "new", lock.SamePlace: "same", lock.AskPlace: "ask"}

// Stand says how a caller waits. A deaf process hears no inbox. The place is kept for patience milliseconds.
func Stand(place lock.Place, deaf bool, patience int64) string {
	inbox := "heard"
	if deaf {
		inbox = "deaf"
	}
	return places[place] + " " + inbox + " " + number(patience)
}

// Offer says how to grant a lock to a waiter: for claim milliseconds, as which grant in a row, and whether PUBSUB NUMSUB
// counts all listeners.
func Offer(claim int64, turn int, counted bool) string {
	if counted {
		return number(claim) + " " + strconv.Itoa(turn) + " 1"
	}
	return number(claim) + " " + strconv.Itoa(turn) + " 0"
}

// Wait says in an acquire how a caller waits, and how to grant the lock to another waiter. The command publish tells
// Redisson's.
func Wait(stand, offer, publish string) string { return stand + " " + offer + " " + publish }

package contender

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Library is one way to make a Contender.
type Library struct {
	Name string
	Role Role
	// Open connects to the Redis server at address with a client of its own. Locks get
	// a TTL of lease, which the libraries that can renew it do. Where it is nil, the
	// library is Redisson in the Java program.
	Open func(address string, lease time.Duration) (Contender, error)
	Kind string // of its locks: one of those below or, as the Java program calls the others, "lock"
	// Needs returns why what the library needs cannot be had here: Missing, if it is a
	// tool. It is nil where nothing is needed.
	Needs func() error
	// Direct names commands that the library sends itself although scripts of others
	// call them, and Unseen is how many of a pair cannot be told from those in its own
	// scripts; see load.Usage.
	Direct []string
	Unseen float64
	// Single says that it serves one caller in each process.
	Single bool
}

// Ready returns why the library cannot run here, if it cannot.
func (l Library) Ready() error {
	if l.Needs == nil {
		return nil
	}
	return l.Needs()
}

// Role is what a library is in the comparison.
type Role int

const (
	Rival  Role = iota
	Eventy      // a rival whose waiters are woken and do not poll
	Own         // Holdfast
	Bare        // a floor that no lock can be below
)

// Kinds of locks, as the Java program knows them; those of Go without one are plain. A kind with two sides has an exclusive one and
// a shared one.
const (
	plain   = "lock"
	InOrder = "fair"
	Shared  = "rw"
	Permit  = "permit"  // a permit of one, and of Permits; see semaphore.go
	Weighed = "weighed" // all Permits, and one of them
	Local   = "local"   // a Permit of one process
)

// Libraries that are named in several places.
const (
	Ours      = "holdfast"
	Lingering = "holdfast-linger"
	Unlocked  = "unlocked" // no lock at all, for tests
	message   = "message"  // a baton that processes pass round
	grant     = "grant"    // the same, by the least script that grants a lock
	least     = "least"    // the least lock that processes pass on
)

// libraries are all there are. A name with a pause in it is a setting that only matters
// to waiters.
var libraries = []Library{
	{Name: Unlocked, Open: openUnlocked, Role: Bare},
	{Name: "floor", Open: openFloor, Role: Bare},
	{Name: message, Open: openMessage, Role: Bare, Direct: []string{"publish"}, Single: true},
	{Name: grant, Open: openGrant, Role: Bare, Single: true},
	{Name: least, Open: openLeast, Role: Bare, Single: true},
	{Name: Ours, Open: openHoldfast(mutexes), Role: Own},
	{Name: "holdfast-fenced", Open: openHoldfast(mutexes, holdfast.WithFencing()), Role: Own},
	{Name: Lingering, Open: openHoldfast(mutexes, holdfast.WithLinger(time.Minute)), Role: Own},
	{Name: "holdfast-fair", Open: openHoldfast(fairMutexes), Kind: InOrder, Role: Own},
	{Name: "holdfast-rw", Open: openHoldfast(rwMutexes), Kind: Shared, Role: Own},
	{Name: "holdfast-permit", Open: openHoldfast(permits), Kind: Permit, Role: Own},
	{Name: "holdfast-weighed", Open: openHoldfast(weighed), Kind: Weighed, Role: Own},
	{Name: "holdfast-ticket", Open: openTicket, Role: Own, Single: true},
	{Name: "holdfast-election", Open: openElection, Role: Own},
	{Name: "redsync", Open: openRedsync(0), Direct: []string{"set"}},
	{Name: "redsync-1ms", Open: openRedsync(time.Millisecond), Direct: []string{"set"}},
	{Name: "redislock", Open: openRedislock(100 * time.Millisecond)},
	{Name: "redislock-1ms", Open: openRedislock(time.Millisecond)},
	{Name: "rueidislock", Open: openRueidislock, Role: Eventy},
	{Name: "redisson", Kind: plain, Needs: redissonReady, Role: Eventy, Unseen: latchDel},
	{Name: "redisson-fair", Kind: InOrder, Needs: redissonReady, Role: Eventy, Unseen: latchDel},
	{Name: "redisson-rw", Kind: Shared, Needs: redissonReady, Role: Eventy, Unseen: latchDel},
	{Name: "redisson-permit", Kind: Permit, Needs: redissonReady, Role: Eventy},
	{Name: "redisson-weighed", Kind: Weighed, Needs: redissonReady, Role: Eventy},
	{Name: "r8-pubsub", Open: openPubsub, Role: Eventy},
	{Name: "redsync-names", Open: openRedsyncNames, Kind: Permit, Direct: []string{"set"}},
	{Name: "asynq-rate", Open: openAsynqRate, Kind: Permit, Direct: []string{"zrem"}},
	{Name: "x-sync", Open: openWeighted, Kind: Local, Role: Bare},
}

// latchDel is the DEL that Redisson sends after a release, for the key with which it
// makes that repeatable. Its scripts call DEL too.
const latchDel = 1

// Pick returns libraries by name. It panics if there is none of that name.
func Pick(names ...string) []Library {
	var picked []Library
	for _, name := range names {
		i := slices.IndexFunc(libraries, func(l Library) bool { return l.Name == name })
		picked = append(picked, libraries[i])
	}
	return picked
}

// choose returns the libraries that are as wanted.
func choose(wanted func(Library) bool) []Library {
	return slices.DeleteFunc(slices.Clone(libraries), func(l Library) bool { return !wanted(l) })
}

// OfKind returns the libraries with this kind of lock.
func OfKind(kind string) []Library { return choose(func(l Library) bool { return l.Kind == kind }) }

// InGo returns those that are locks and run in this process.
func InGo() []Library {
	return choose(func(l Library) bool {
		return l.Open != nil && l.Name != Unlocked && l.Kind != Local && !l.Single
	})
}

// Package bench measures Holdfast beside the lock libraries that a Go program would
// use instead, on one Redis, in one run. README.md has the method.
//
// A scenario is one question. It is measured for each of its contenders by a
// function that returns metrics; benchmarks (go test -bench) and the report
// (cmd/report) are two ways to run the same scenarios.
package bench

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// contender is a lock library, reduced to what all of them can do.
type contender interface {
	// Lock waits for the named lock until ctx is done.
	Lock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	Close()
}

// library is one way to make a contender.
type library struct {
	name string
	// open connects to the Redis server at address with a client of its own. Locks get
	// a TTL of lease, which the libraries that can renew it do. Where it is nil, the library is Redisson in the Java program.
	open func(address string, lease time.Duration) (contender, error)
	kind string
	role role
	// direct names commands that the library sends itself although scripts of others
	// call them, and unseen is how many of a pair cannot be told from those in its own
	// scripts; see commandCounter.
	direct []string
	unseen float64
}

// Kinds of locks, as the Java program knows them; those without one are plain.
const (
	plain   = "lock"
	inOrder = "fair"
	shared  = "rw"
)

// ready returns why the library cannot run here, if it cannot.
func (l library) ready() error {
	if l.open == nil && l.kind != "" {
		return redissonReady()
	}
	return nil
}

// role is what a library is in the comparison.
type role int

const (
	rival  role = iota
	eventy      // a rival whose waiters are woken and do not poll
	own
	bare // a floor that no lock can be below
)

// lease is the TTL of locks where a scenario does not say otherwise: Holdfast's
// default.
const lease = 30 * time.Second

// libraries are all there are. Each is set up as well as its options allow; the
// comment at its open function says how and why. A name with a pause in it is a
// setting that only matters to waiters.
var libraries = []library{
	{name: "floor", open: openFloor, role: bare},
	{name: ours, open: openHoldfast(mutexes), role: own},
	{name: "holdfast-fenced", open: openHoldfast(mutexes, holdfast.WithFencing()), role: own},
	{name: "holdfast-slice0", open: openHoldfast(mutexes, holdfast.WithHandoffSlice(0)), role: own},
	{name: "holdfast-fair", open: openHoldfast(fairMutexes), kind: inOrder, role: own},
	{name: "holdfast-rw", open: openHoldfast(rwMutexes), kind: shared, role: own},
	{name: "redsync", open: openRedsync(0), direct: []string{"set"}},
	{name: "redsync-1ms", open: openRedsync(time.Millisecond), direct: []string{"set"}},
	{name: "redislock", open: openRedislock(100 * time.Millisecond)},
	{name: "redislock-1ms", open: openRedislock(time.Millisecond)},
	{name: "rueidislock", open: openRueidislock, role: eventy},
	{name: "redisson", kind: plain, role: eventy, unseen: latchDel},
	{name: "redisson-fair", kind: inOrder, role: eventy, unseen: latchDel},
	{name: "redisson-rw", kind: shared, role: eventy, unseen: latchDel},
	{name: "r1-setnx", open: openPoller(askSetnx), direct: []string{"setnx", "del"}},
	{name: "r2-expire", open: openPoller(askExpire), direct: []string{"setnx", "pexpire", "del"}},
	{name: "r3-getset", open: openPoller(askGetset), direct: []string{"setnx", "get", "getset", "del"}},
	{name: "r4-set", open: openPoller(askSet), direct: []string{"set", "del"}},
	{name: "r5-token", open: openPoller(askToken), direct: []string{"set"}},
	{name: "r6-guard", open: openPoller(askGuard), direct: []string{"set"}},
	{name: "r7-hash", open: openPoller(askHash)},
	{name: "r8-pubsub", open: openPubsub, role: eventy},
}

const ours = "holdfast"

// latchDel is the DEL that Redisson sends after a release, for the key with which it
// makes that repeatable. Its scripts call DEL too.
const latchDel = 1

// pick returns libraries by name. It panics if there is none of that name.
func pick(names ...string) []library {
	var picked []library
	for _, name := range names {
		i := slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
		picked = append(picked, libraries[i])
	}
	return picked
}

// ofKind returns the libraries with this kind of lock.
func ofKind(kind string) []library {
	return slices.DeleteFunc(slices.Clone(libraries), func(l library) bool { return l.kind != kind })
}

// ofRole returns the libraries with this role.
func ofRole(r role) []library {
	return slices.DeleteFunc(slices.Clone(libraries), func(l library) bool { return l.role != r })
}

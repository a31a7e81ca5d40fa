package interop

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// kind is a kind of lock that both sides have.
type kind struct {
	name   string // in the words of the processes
	lock   func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker
	fenced bool   // has tokens
	queue  bool   // waiters of all clients are served in the order they came
	shared bool   // several owners may hold it at a time
	rival  string // the kind whose holder stands in its way; empty: the same
	mode   holdfast.Kind
}

// What a waiter may have to bear under load.
var bounds = struct {
	woken  time.Duration // from a release to the grant it leads to: more is a message that was lost
	grants int           // of Redis to others, while one caller waits beside a crowd of the other side; the median counts
}{
	// Without the message our waiters look after 25 s and Redisson's after 30 s, the TTL, or
	// both after 20 s, the worker's lease. What is in time can take 10 s and more: a waiter of
	// Redisson that is next in a queue has the lock offered for 5 s, several can be in a row,
	// and 3.21.3 sometimes sends its SUBSCRIBE 3 s after it has queued, as MONITOR shows.
	woken:  16 * time.Second,
	grants: 200,
}

// kinds are those that Holdfast has today.
var kinds = []kind{
	{name: "lock", lock: mutex, mode: holdfast.KindMutex},
	{name: "fenced", lock: fenced, mode: holdfast.KindMutex, fenced: true},
	{name: "fair", lock: fair, mode: holdfast.KindMutex, queue: true},
	{name: "write", lock: write, mode: holdfast.KindWrite},
	{name: "read", lock: read, mode: holdfast.KindRead, shared: true, rival: "write"},
}

func mutex(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.Mutex(name, opts...)
}

func fenced(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.Mutex(name, append(opts, holdfast.WithFencing())...)
}

func fair(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.FairMutex(name, append(opts, holdfast.WithLinger(0))...)
}

func write(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.RWMutex(name, opts...)
}

func read(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.RWMutex(name, opts...).RLocker()
}

// against is the kind that a holder must have to keep this one out.
func (k kind) against() string {
	if k.rival != "" {
		return k.rival
	}
	return k.name
}

// channels are the beginnings of the names of the channels that a waiter of Redisson
// listens on.
func (k kind) channel(name string) string {
	prefix := "redisson_lock__channel:"
	if k.name == "read" || k.name == "write" {
		prefix = "redisson_rwlock:"
	} else if k.name == permitKind.name {
		prefix = "redisson_sc:"
	}
	if !strings.Contains(name, "{") {
		name = "{" + name + "}"
	}
	return prefix + name
}

func kindNamed(name string) (kind, error) {
	for _, k := range append(kinds, permitKind) {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("no kind %q", name)
}

// Names that both sides must build the same keys and channels from.
func names(e *env) {
	for _, name := range []string{
		"a:b:c", "{tag}:x", "x{tag}y", "a:{b}:{c}", "Grüße:鎖", `back\slash"quote'`, "redisson_lock", "*?[x]",
	} {
		e := *e
		e.key += ":" + name
		for _, d := range e.directions() {
			e.lockAgainst(d.from, 1, -1)
			e.refused(d.to)
			waiter := e.waiter(d.to, 2)
			e.unlockAgainst(d.from, 1)
			waiter.want("ok")
			e.unlock(d.to, 2)
			e.free()
		}
	}
}

// A name mapper on both sides that does the same leads to the same lock.
func nameMapper(e *env) {
	mapped := *e
	flags := []string{"--prefix", "app1:"}
	fleet := *e.fleet
	fleet.java[0], fleet.golang[0] = e.startJava(e, flags...), e.startGo(e, flags...)
	mapped.fleet = &fleet
	plain := *e
	plain.key = "app1:" + e.key
	for _, d := range mapped.directions() {
		mapped.lockAgainst(d.from, 1, -1)
		mapped.refused(d.to)
		plain.refused(plain.java[1]) // that is where it is
		plain.refused(plain.golang[1])
		e.free() // and not here
		waiter := d.to.start(e, e.thread(2), "lock", e.kind.name, e.key, -1)
		plain.parked(d.to, 2)
		mapped.unlockAgainst(d.from, 1)
		waiter.want("ok")
		mapped.unlock(d.to, 2)
		plain.free()
	}
}

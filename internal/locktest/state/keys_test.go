package state

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Servers and proxies that go by the KEYS of a script refuse it, or send it elsewhere, if it touches another key. Each
// path of each script is taken here, and each key that its commands touch is compared with its KEYS.
//
// The exception is what a caller cannot know: the rights of other readers, which a script of a read-write lock
// finds in the lock or in its queue.
func TestKeys_AreDeclared(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	mon := srv.Monitor(t)
	for name, path := range keyPaths {
		path(&keyPath{T: t, srv: srv, mon: mon, name: name, queue: "redisson_lock_queue:{" + name + "}", times: "redisson_lock_timeout:{" + name + "}"})
	}
	srv.Admin().Echo(t.Context(), "the end of all paths")
	mon.Wait(t, "the end of all paths", locktest.Patience)

	names := scriptNames(t)
	var running *monitored
	seen, rights := map[string]bool{}, 0
	for _, line := range mon.Lines() {
		from, cmd := monitorLine(t, line)
		if from != "lua" {
			if call, ok := libraryCall(names, cmd); ok {
				running = call
				seen[call.name] = true
			} else if _, _, ok := redistest.ScriptCall(cmd); ok {
				running = nil // one of this test
			}
			continue
		}
		if running == nil {
			continue
		}
		for _, key := range touched(t, srv, cmd) {
			switch {
			case slices.Contains(running.keys, key):
			case running.othersRight(key):
				rights++
			default:
				t.Errorf("%s: %q touches %q, which is not among %q", running.name, cmd, key, running.keys)
			}
		}
	}
	for _, name := range names {
		if !seen[name] {
			t.Errorf("%s has not run", name)
		}
	}
	if rights == 0 {
		t.Error("no script has looked at another reader's right: the exception is not needed, or not seen")
	}
}

// keyPath is what a path has to work with: a server, and a name of its own.
type keyPath struct {
	*testing.T
	srv                *redistest.Server
	mon                *redistest.Monitor
	name, queue, times string
}

// sees waits until MONITOR has told of a command of a script.
func (p *keyPath) sees(command string) {
	p.Helper()
	p.mon.Wait(p.T, `lua] `+command, locktest.Patience)
}

// kinds returns the locks of the name, of each kind and side, with fencing and without, and the queue of each.
func (p *keyPath) kinds(m *holdfast.Manager) map[string]func() (holdfast.Locker, string) {
	all := map[string]func() (holdfast.Locker, string){}
	for suffix, opts := range map[string][]holdfast.LockOption{"": nil, " fenced": {holdfast.WithFencing()}} {
		mutex, fair, rw := p.name+" mutex"+suffix, p.name+" fair"+suffix, p.name+" rw"+suffix
		all["mutex"+suffix] = func() (holdfast.Locker, string) {
			return m.Mutex(mutex, opts...), "redisson_lock_queue:{" + mutex + "}"
		}
		all["fair"+suffix] = func() (holdfast.Locker, string) {
			return m.FairMutex(fair, opts...), "redisson_lock_queue:{" + fair + "}"
		}
		all["write"+suffix] = func() (holdfast.Locker, string) { return m.RWMutex(rw, opts...), "holdfast_rw_queue:{" + rw + "}" }
		all["read"+suffix] = func() (holdfast.Locker, string) {
			return m.RWMutex(rw, opts...).RLocker(), "holdfast_rw_queue:{" + rw + "}"
		}
	}
	return all
}

// redissons is the id of a fair waiter of Redisson.
const redissons = "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:8"

// puts puts an id into a queue, until so long from now.
func (p *keyPath) puts(id string, keeps time.Duration) {
	queue := p.srv.Admin()
	queue.RPush(p.Context(), p.queue, id)
	queue.ZAdd(p.Context(), p.times, redis.Z{Score: float64(time.Now().Add(keeps).UnixMilli()), Member: id})
}

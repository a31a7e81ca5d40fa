package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// fleet is the processes that the scenarios share: one server, two JVMs and two
// processes of ours, whose locks have a TTL of 30 s if none is asked for.
type fleet struct {
	line   line
	server *redistest.Server
	java   [2]*peer
	golang [2]*peer
}

func newFleet(t *testing.T, l line) *fleet {
	f := &fleet{line: l, server: redistest.Start(t)}
	for i := range f.java {
		f.java[i] = f.startJava(t)
		f.golang[i] = f.startGo(t)
	}
	return f
}

func (f *fleet) flags(flags []string) []string {
	return append([]string{"--address", f.server.Addr(), "--password", f.server.Password()}, flags...)
}

// startGo starts another process of ours. Flags are those of the Java program.
func (f *fleet) startGo(t testing.TB, flags ...string) *peer {
	t.Helper()
	return awaitReady(t, &peer{side: "go", Process: redistest.StartProcess(t, peerRole, f.flags(flags)...)})
}

// startJava starts another JVM.
func (f *fleet) startJava(t testing.TB, flags ...string) *peer {
	t.Helper()
	args := []string{
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", // many small JVMs, soon ready
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-jar", f.line.jar(),
	}
	return awaitReady(t, &peer{side: "java", Process: redistest.StartProgram(t, "java", append(args, f.flags(flags)...)...)})
}

func awaitReady(t testing.TB, p *peer) *peer {
	t.Helper()
	p.Await(t, "ready", patience)
	return p
}

// env is one scenario's surroundings.
type env struct {
	*testing.T
	*fleet
	kind kind
	key  string // the name of the lock
}

// direction is a pair of processes of different sides.
type direction struct{ from, to *peer }

func (d direction) String() string { return d.from.side + " to " + d.to.side }

// directions are both of them.
func (e *env) directions() []direction {
	return []direction{{e.golang[0], e.java[0]}, {e.java[0], e.golang[0]}}
}

// eventually waits for something that has no event of its own.
func (e *env) eventually(what string, within time.Duration, ok func() bool) {
	e.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			e.Fatalf("not within %v: %s", within, what)
		}
	}
}

// thread is the name of a thread that no other scenario uses.
func (e *env) thread(n int) string {
	return fmt.Sprintf("%s:%d", strings.ReplaceAll(e.Name(), " ", "_"), n)
}

// parked waits until n waiters of the scenario's lock, on any side, have been refused
// and listen for its release; p is the latest.
func (e *env) parked(p *peer, n int) {
	e.Helper()
	e.eventually(p.side+" waits", patience, func() bool {
		if p.side == "go" {
			return p.start(e, e.thread(1000), "waiting", e.kind.name, e.key).answer().value == "true"
		}
		return e.subscribers(e.kind.channel(e.key)) >= n
	})
}

// subscribers counts the subscriptions to the channels whose names begin with prefix.
func (e *env) subscribers(prefix string) int {
	e.Helper()
	ctx := context.Background()
	channels, err := e.server.Admin().PubSubChannels(ctx, "*").Result()
	if err != nil {
		e.Fatal(err)
	}
	channels = slices.DeleteFunc(channels, func(c string) bool { return !strings.HasPrefix(c, prefix) })
	if len(channels) == 0 {
		return 0
	}
	counts, err := e.server.Admin().PubSubNumSub(ctx, channels...).Result()
	if err != nil {
		e.Fatal(err)
	}
	n := 0
	for _, count := range counts {
		n += int(count)
	}
	return n
}

// free fails unless both sides get the lock at once.
func (e *env) free() {
	e.Helper()
	for _, p := range []*peer{e.golang[1], e.java[1]} {
		p.start(e, e.thread(1001), "tryLock", e.kind.name, e.key, 0, -1).want("true")
		p.start(e, e.thread(1001), "unlock", e.kind.name, e.key).want("ok")
	}
}

// refused fails unless p does not get the lock.
func (e *env) refused(p *peer) {
	e.Helper()
	p.start(e, e.thread(1002), "tryLock", e.kind.name, e.key, 0, -1).want("false")
}

// refusedAgainst is refused with the kind that the scenario's kind keeps out.
func (e *env) refusedAgainst(p *peer) {
	e.Helper()
	p.start(e, e.thread(1002), "tryLock", e.kind.against(), e.key, 0, -1).want("false")
}

// lock takes the lock; lease is in milliseconds, -1 for none.
func (e *env) lock(p *peer, thread int, lease int) answer {
	e.Helper()
	return p.start(e, e.thread(thread), "lock", e.kind.name, e.key, lease).want("ok")
}

// lockAgainst is lock with the kind that keeps the scenario's kind out.
func (e *env) lockAgainst(p *peer, thread int, lease int) answer {
	e.Helper()
	return p.start(e, e.thread(thread), "lock", e.kind.against(), e.key, lease).want("ok")
}

func (e *env) unlock(p *peer, thread int) answer {
	e.Helper()
	return p.start(e, e.thread(thread), "unlock", e.kind.name, e.key).want("ok")
}

func (e *env) unlockAgainst(p *peer, thread int) answer {
	e.Helper()
	return p.start(e, e.thread(thread), "unlock", e.kind.against(), e.key).want("ok")
}

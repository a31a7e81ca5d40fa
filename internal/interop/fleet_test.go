package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// fleet is the processes that the scenarios share: a server or a cluster, two JVMs and two
// processes of Holdfast, whose locks have a TTL of 30 s if none is asked for.
type fleet struct {
	line   line
	nodes  []*redistest.Server
	admin  redis.UniversalClient
	flags  []string // of every process
	java   [2]*peer
	golang [2]*peer

	// shortJava and shortGo are a process each whose locks have a short TTL. No scenario stops or kills them: see env.short.
	shortJava, shortGo func() *peer
}

func newFleet(t *testing.T, l line) *fleet { return newServer(t, l).launch(t) }

// newServer is newFleet without the processes.
func newServer(t *testing.T, l line) *fleet {
	server := redistest.Start(t)
	return &fleet{
		line: l, nodes: []*redistest.Server{server}, admin: server.Client(t),
		flags: []string{"--address", server.Addr(), "--password", server.Password()},
	}
}

// ofCluster is newServer on that cluster, whose releases are announced classic or sharded.
func ofCluster(t *testing.T, cluster *redistest.Cluster, l line, messages string) *fleet {
	nodes := cluster.Nodes()
	return &fleet{line: l, nodes: nodes, admin: cluster.Client(t), flags: []string{
		"--address", nodes[0].Addr(), "--password", nodes[0].Password(), "--cluster", "--messages", messages,
	}}
}

func (f *fleet) launch(t *testing.T) *fleet {
	for i := range f.java {
		f.java[i] = f.startJava(t)
		f.golang[i] = f.startGo(t)
	}
	f.shortJava = sync.OnceValue(func() *peer { return f.startJava(t, shortFlags...) })
	f.shortGo = sync.OnceValue(func() *peer { return f.startGo(t, shortFlags...) })
	return f
}

// startGo starts another process of Holdfast. Flags are those of the Java program.
func (f *fleet) startGo(t testing.TB, flags ...string) *peer {
	t.Helper()
	return awaitReady(t, &peer{side: "go", Process: redistest.StartProcess(t, peerRole, slices.Concat(f.flags, flags)...)})
}

// startJava starts another JVM, or another process of the earlier version.
func (f *fleet) startJava(t testing.TB, flags ...string) *peer {
	t.Helper()
	if f.line == earlier {
		return f.startEarlier(t, flags...)
	}
	args := []string{
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", // many small JVMs, soon ready
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-jar", f.line.jar(),
	}
	return awaitReady(t, &peer{side: "java", Process: redistest.StartProgram(t, "java", slices.Concat(args, f.flags, flags)...)})
}

// awaitReady waits for as long as a JVM may take to start beside seven others on a busy machine.
func awaitReady(t testing.TB, p *peer) *peer {
	t.Helper()
	p.Await(t, "ready", 3*time.Minute)
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
	redistest.Eventually(e, within, what, ok)
}

// thread is the name of a thread that no other scenario uses.
func (e *env) thread(n int) string {
	return fmt.Sprintf("%s:%d", strings.ReplaceAll(e.Name(), " ", "_"), n)
}

// waiter makes a thread of p wait for the scenario's lock. It returns when the thread has
// been refused and sleeps.
func (e *env) waiter(p *peer, thread int) *call {
	e.Helper()
	c := p.start(e, e.thread(thread), "lock", e.kind.name, e.key, -1)
	e.parked(p, thread)
	return c
}

// parked waits until that thread sleeps.
func (e *env) parked(p *peer, thread int) {
	e.Helper()
	e.eventually(p.side+" waits", patience, func() bool {
		return p.start(e, e.thread(1000), "waiting", e.kind.name, e.key, e.thread(thread)).answer().value == "true"
	})
}

// subscribers counts the subscriptions, classic and sharded, to the channels whose names
// begin with prefix.
func (e *env) subscribers(prefix string) int {
	e.Helper()
	n := 0
	for _, node := range e.nodes {
		n += e.subscribersAt(node, prefix)
	}
	return n
}

func (e *env) subscribersAt(server *redistest.Server, prefix string) (n int) {
	e.Helper()
	ctx, node := context.Background(), server.Admin()
	count := func(channels *redis.StringSliceCmd, subscribers func(context.Context, ...string) *redis.MapStringIntCmd) {
		e.Helper()
		redistest.Must(e, channels.Err())
		ours := slices.DeleteFunc(channels.Val(), func(c string) bool { return !strings.HasPrefix(c, prefix) })
		if len(ours) == 0 {
			return
		}
		counts, err := subscribers(ctx, ours...).Result()
		redistest.Must(e, err)
		for _, c := range counts {
			n += int(c)
		}
	}
	count(node.PubSubChannels(ctx, "*"), node.PubSubNumSub)
	if server.Sharded() {
		count(node.PubSubShardChannels(ctx, "*"), node.PubSubShardNumSub)
	}
	return n
}

// exists counts those of the keys that exist.
func (e *env) exists(keys ...string) (n int) {
	e.Helper()
	for _, key := range keys { // in a cluster they need not be together
		there, err := e.admin.Exists(context.Background(), key).Result()
		redistest.Must(e, err)
		n += int(there)
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

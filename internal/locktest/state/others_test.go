package state

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// redissons is the id of a fair waiter of Redisson.
const redissons = "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:8"

// otherScripts has a client send other texts in the place of scripts of the library: what another version, or another
// server, would do. It is set up before the first command and not changed.
type otherScripts map[any]any // digest -> digest

// replace puts change's text of a script into the place of the library's.
func (o otherScripts) replace(t *testing.T, srv *redistest.Server, name string, change func(text string) string) {
	t.Helper()
	text := protocol.Text(name)
	other := change(text)
	if other == text {
		t.Fatalf("%s has not what is to be changed", name)
	}
	o[digest(t, srv, text)] = digest(t, srv, other)
}

func digest(t *testing.T, srv *redistest.Server, text string) string {
	t.Helper()
	sum, err := srv.Admin().ScriptLoad(t.Context(), text).Result()
	redistest.Must(t, err)
	return sum
}

func (o otherScripts) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (o otherScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook changes the requests, all of which go through pipelines.
func (o otherScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if args := cmd.Args(); len(args) > 1 && args[0] == "evalsha" && o[args[1]] != nil {
				args[1] = o[args[1]]
			}
		}
		return next(ctx, cmds)
	}
}

// managerWith returns a manager on srv with other scripts.
func managerWith(t *testing.T, srv *redistest.Server, o otherScripts, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	client := srv.Client(t)
	client.AddHook(o)
	m := locktest.ManagerAsIs(t, client, opts...)
	return m
}

// A later version says more in its messages, and its replies have more behind what is known. It and this version hand
// locks over to each other, in both directions, by message: neither polls, and no request asks what a message has said.
func TestVersions_HandOverToEachOther(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	next := otherScripts{}
	more := func(text string) string {
		return strings.NewReplacer(
			"(more and ' 1 ' or ' 0 ') .. token\n", "(more and ' 1 ' or ' 0 ') .. token .. ' 42 some=thing'\n",
			"notify(id, 'o')", "notify(id, 'o', '0 42')",
			"notify(other, 'o')", "notify(other, 'o', '0 42')",
			"notify(next, 'o')", "notify(next, 'o', '0 42')",
			", left)", ", left .. ' 42')",
			", math.max(left, 1))", ", math.max(left, 1) .. ' 42')",
			"foreign and 1 or 0}", "foreign and 1 or 0, 42, 'more'}",
			", now, foreign}", ", now, foreign, 42}",
			"foreign) and 1 or 0}", "foreign) and 1 or 0, 42, 'more'}",
		).Replace(text)
	}
	for _, name := range []string{"lock_acquire", "lock_release", "rw_acquire", "rw_release", "rw_downgrade", "join", "force_release"} {
		next.replace(t, srv, name, more)
	}
	this, later := locktest.ManagerOn(t, srv, locktest.Unasked...), managerWith(t, srv, next, locktest.Unasked...)
	for kind, of := range map[string]func(*holdfast.Manager) holdfast.Locker{
		"mutex":        func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
		"fenced mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a", holdfast.WithFencing()) },
		"fair":         func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") },
		"write":        func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("b") },
		"read":         func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("b").RLocker() },
	} {
		t.Run(kind, func(t *testing.T) {
			times, blocks := "redisson_lock_timeout:{a}", of
			if kind == "write" || kind == "read" {
				times, blocks = "holdfast_rw_timeout:{b}", func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("b") }
			}
			for direction, pair := range map[string][2]*holdfast.Manager{"to the later": {this, later}, "from the later": {later, this}} {
				told := uint64(0)
				for range 4 {
					holder, waiter := pair[0], pair[1]
					held := locktest.MustLock(t, blocks(holder))
					got := locktest.Waits(t, of(waiter))
					redistest.Eventually(t, locktest.Patience, "it hears its inbox, as its place says", func() bool {
						places := srv.Admin().ZRangeWithScores(t.Context(), times, 0, -1).Val()
						return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && locktest.Pending(waiter) == 0
					})
					before := waiter.Stats()
					locktest.MustUnlock(t, held)
					locktest.MustUnlock(t, got())
					told += waiter.Stats().Granted - before.Granted
					if polls := waiter.Stats().Polls - before.Polls; polls != 0 {
						t.Errorf("%s: %d polls", direction, polls)
					}
				}
				if told == 0 { // a message that is late is asked about, which only happens on a machine that stands still
					t.Errorf("%s: no grant was trusted", direction)
				}
			}
		})
	}
	t.Run("forced free", func(t *testing.T) {
		held := locktest.MustLock(t, later.Mutex("c"))
		got := locktest.Waits(t, this.Mutex("c"))
		redistest.Eventually(t, locktest.Patience, "it hears its inbox, as its place says", func() bool {
			places := srv.Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{c}", 0, -1).Val()
			return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && locktest.Pending(this) == 0
		})
		if freed, err := later.ForceUnlock(t.Context(), "c"); !freed || err != nil {
			t.Error(freed, err)
		}
		locktest.MustUnlock(t, got())
		locktest.WantErr(t, held.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
	})
}

// A lock of Redisson that has exactly 50 or 250 ms left is held, and not left open for others or offered to them: once
// its release is told, the waiter asks at once, and not when that time is over.
func TestRedisson_HoldsWhateverTimeIsLeft(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, admin := t.Context(), srv.Admin()
	for _, left := range []string{"50", "250"} {
		next := otherScripts{}
		next.replace(t, srv, "lock_acquire", func(text string) string {
			return strings.Replace(text, "call('pttl', lock), not inbox_of(holder)", left+", not inbox_of(holder)", 1)
		})
		next.replace(t, srv, "rw_acquire", func(text string) string {
			return strings.Replace(text, "redis.call('pttl', lock), now, foreign}", left+", now, foreign}", 1)
		})
		m := managerWith(t, srv, next, locktest.Unasked...)
		for kind, c := range map[string]struct {
			of      func(name string) holdfast.Locker
			channel string
			holder  []any
		}{
			"mutex": {func(name string) holdfast.Locker { return m.Mutex(name) }, "redisson_lock__channel", []any{redissons, 1}},
			"fair":  {func(name string) holdfast.Locker { return m.FairMutex(name) }, "redisson_lock__channel", []any{redissons, 1}},
			"write": {func(name string) holdfast.Locker { return m.RWMutex(name) }, "redisson_rwlock", []any{"mode", "write", redissons + ":write", 1}},
			"read":  {func(name string) holdfast.Locker { return m.RWMutex(name).RLocker() }, "redisson_rwlock", []any{"mode", "write", redissons + ":write", 1}},
		} {
			t.Run(kind+" "+left+" ms", func(t *testing.T) {
				fastest := time.Hour
				for round := range 30 { // a machine that stands still now and then does not do so each time
					name := fmt.Sprint(kind, left, round)
					channel := c.channel + ":{" + name + "}"
					admin.HSet(ctx, name, c.holder...)
					admin.PExpire(ctx, name, time.Minute)
					got := locktest.Waits(t, c.of(name))
					redistest.Eventually(t, locktest.Patience, "it listens", func() bool {
						return admin.PubSubNumSub(ctx, channel).Val()[channel] == 1 && locktest.Pending(m) == 0
					})
					admin.Del(ctx, name)
					start := time.Now()
					admin.Publish(ctx, channel, "0")
					lease := got()
					fastest = min(fastest, time.Since(start))
					locktest.MustUnlock(t, lease)
				}
				redistest.WantMost(t, fastest, 20*time.Millisecond, "the fastest of 30 has noticed after %v")
			})
		}
	}
}

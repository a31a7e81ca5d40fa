package holdfast_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// otherScripts has a client send other texts in the place of scripts of the library: what another version, or another
// server, would do. It is set up before the first command and not changed.
type otherScripts map[any]any // digest -> digest

// replace puts change's text of a script into the place of the library's.
func (o otherScripts) replace(t *testing.T, srv *redistest.Server, name string, change func(text string) string) {
	t.Helper()
	text := holdfast.ScriptText(name)
	other := change(text)
	if other == text {
		t.Fatalf("%s has not what is to be changed", name)
	}
	o[digest(t, srv, text)] = digest(t, srv, other)
}

func digest(t *testing.T, srv *redistest.Server, text string) string {
	t.Helper()
	sum, err := srv.Admin().ScriptLoad(t.Context(), text).Result()
	if err != nil {
		t.Fatal(err)
	}
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
	m, err := holdfast.New(client, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
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
			"'o ' .. number)", "'o ' .. number .. ' 0 42')",
			"'o ' .. its)", "'o ' .. its .. ' 0 42')",
			"' ' .. left))", "' ' .. left .. ' 42'))",
			"foreign and 1 or 0}", "foreign and 1 or 0, 42, 'more'}",
			"o.now, foreign}", "o.now, foreign, 42}",
		).Replace(text)
	}
	for _, name := range []string{"lock_acquire", "lock_release", "rw_acquire", "rw_release", "rw_downgrade", "join", "force_release"} {
		next.replace(t, srv, name, more)
	}
	this, later := managerOn(t, srv, unasked...), managerWith(t, srv, next, unasked...)
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
					held := mustLock(t, blocks(holder))
					got := waits(t, of(waiter))
					redistest.Eventually(t, patience, "it hears its inbox, as its place says", func() bool {
						places := srv.Admin().ZRangeWithScores(t.Context(), times, 0, -1).Val()
						return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && waiter.Pending() == 0
					})
					before := waiter.Stats()
					mustUnlock(t, held)
					mustUnlock(t, got())
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
		held := mustLock(t, later.Mutex("c"))
		got := waits(t, this.Mutex("c"))
		redistest.Eventually(t, patience, "it hears its inbox, as its place says", func() bool {
			places := srv.Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{c}", 0, -1).Val()
			return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && this.Pending() == 0
		})
		if freed, err := later.ForceUnlock(t.Context(), "c"); !freed || err != nil {
			t.Error(freed, err)
		}
		mustUnlock(t, got())
		wantErr(t, held.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
	})
}

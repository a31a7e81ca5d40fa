package docs

import (
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// asLocks has a client be the user that the documents give rights to.
func asLocks(o *redis.Options) { o.Username, o.Password = "locks", "secret" }

// rightsSuffice has one process lock each kind, and another one wait for it and get it, and ends a lock by force. Redis has refused nothing.
func rightsSuffice(t *testing.T, srv *redistest.Server, a, b *holdfast.Manager) {
	t.Helper()
	ctx := t.Context()
	mutex := func(m *holdfast.Manager) holdfast.Locker { return m.Mutex(stock, holdfast.WithFencing()) }
	fair := func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("app:fair") }
	write := func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("app:rw") }
	read := func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("app:rw").RLocker() }
	permit := func(m *holdfast.Manager) holdfast.Locker { return m.Semaphore("app:permits", 1).Locker(1) }
	for _, kind := range []struct {
		held, wanted func(*holdfast.Manager) holdfast.Locker
	}{{mutex, mutex}, {fair, fair}, {write, write}, {read, write}, {permit, permit}} {
		lease := locktest.MustLock(t, kind.held(a))
		_, err := kind.wanted(b).TryLock(ctx)
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		waiter := locktest.Calls(kind.wanted(b).Lock, ctx)
		redistest.Eventually(t, locktest.Patience, "another waits", func() bool { return b.Stats().Waiting == 1 && b.Stats().Subscriptions > 0 })
		if info := locktest.Inspected(t, a, lease.Name()); !info.Held {
			t.Errorf("Inspect: %+v", info)
		}
		locktest.MustUnlock(t, lease)
		locktest.MustUnlock(t, locktest.Granted(t, waiter))
	}
	lease := locktest.MustLock(t, mutex(a))
	locktest.MustForceUnlock(t, b, stock)
	<-lease.Done()
	log, err := srv.Admin().ACLLog(ctx, 10).Result()
	must(t, err)
	for _, entry := range log {
		if !strings.HasPrefix(entry.Object, "client") { // go-redis introduces itself, and does not mind
			t.Errorf("refused: %+v", entry)
		}
	}
}

// As the user of the document everything works and nothing is refused.
func TestOperations_AccessRightsSuffice(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	commands := operations(t, "Access rights")
	if srv.Major() < 7 {
		commands = commands[:1] // there is no dry run
	}
	for _, command := range commands {
		if reply, err := srv.Admin().Do(t.Context(), command...).Result(); err != nil || reply != "OK" {
			t.Errorf("%v: %v, %v", command, reply, err)
		}
	}
	proxy := srv.Proxy(t)
	a, b := operated(t, proxy.ClientWith(t, asLocks)), operated(t, srv.ClientWith(t, asLocks))
	ctx := t.Context()

	// A caller that leaves before it has an answer: a tombstone.
	call := func(cmd []string) bool { return strings.HasPrefix(strings.ToLower(cmd[0]), "eval") }
	proxy.SwallowReply(redistest.All(redistest.Containing(stock), call), 2)
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	troubles := a.Stats().Troubles
	gone := a.Mutex(stock).LockAsync(short)
	redistest.Eventually(t, locktest.Patience, "the second request is under way", func() bool { return a.Stats().Troubles > troubles })
	cancel()
	if r := <-gone; r.Err == nil {
		t.Error("granted without an answer")
	}
	redistest.Eventually(t, locktest.Patience, "a tombstone", func() bool { return srv.Admin().Exists(ctx, "holdfast_tombstones:{"+stock+"}").Val() == 1 })
	redistest.Eventually(t, locktest.Patience, "the lock is free again", func() bool {
		got, err := b.Mutex(stock).TryLock(ctx)
		return err == nil && got.Unlock(ctx) == nil
	})

	lease := locktest.MustLock(t, a.Mutex(stock))
	redistest.Eventually(t, locktest.Patience, "a renewal", func() bool { return a.Stats().Renewals > 0 })
	locktest.MustUnlock(t, lease)
	rightsSuffice(t, srv, a, b)
}

// The list of commands is that of the scripts and of what is sent beside them: nothing
// is missing, and nothing is there that is not needed.
func TestOperations_AccessRightsAreTheLeast(t *testing.T) {
	needed := map[string]bool{"eval": true, "evalsha": true, "ping": true, "subscribe": true, "unsubscribe": true, "publish": true}
	files, err := filepath.Glob("scripts/*.lua")
	libraries, _ := filepath.Glob("scripts/*/*.lua")
	files = append(files, libraries...)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`redis\.p?call\(\s*'(\w+)'(?:, '(\w+)')?`).FindAllStringSubmatch(read(t, file), -1) {
			command := strings.ToLower(m[1])
			if command == "cluster" { // the others have no parts that do harm
				command += "|" + m[2]
			}
			needed[command] = true
		}
	}
	var listed []string
	for _, word := range operations(t, "Access rights")[0] {
		if command, ok := strings.CutPrefix(word.(string), "+"); ok {
			listed = append(listed, command)
		}
	}
	slices.Sort(listed)
	if want := slices.Sorted(maps.Keys(needed)); !slices.Equal(listed, want) {
		t.Errorf("SETUP.md grants\n%q, the scripts and the client need\n%q", listed, want)
	}
}

// Redis does not let the process write its key: the log says so once, and locks work. A right that is given later is used.
func TestIdentity_Denied(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, command := range operations(t, "Access rights")[:1] {
		must(t, srv.Admin().Do(t.Context(), command...).Err())
	}
	lines, logger := locktest.Logged()
	m, err := holdfast.New(srv.ClientWith(t, asLocks), holdfast.WithIdentity("shop"), logger)
	must(t, err)
	lease := locktest.MustLock(t, m.Mutex(stock))
	redistest.Eventually(t, locktest.Patience, "a line", func() bool { return len(lines.With("holdfast: identity not written", "NOPERM")) == 1 })
	if info := locktest.Inspected(t, m, stock); !info.Held || info.Holders[0].Identity != nil {
		t.Errorf("%+v", info)
	}
	locktest.MustUnlock(t, lease)
	redistest.Check(t, m.Close(context.Background()))
	if keys, n := srv.Keys(), len(lines.With("identity")); len(keys) != 0 || n != 1 {
		t.Errorf("%q, %d lines", keys, n)
	}
}

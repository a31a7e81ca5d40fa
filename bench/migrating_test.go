package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
)

// otherLock is a lock that a program has before it comes to Holdfast.
type otherLock struct {
	name    string
	lock    func(ctx context.Context) (unlock func(), err error) // one try
	unheard bool                                                 // its key has another name, so that it and Holdfast do not see each other
	shares  bool                                                 // its key holds what Holdfast's does
	deletes bool                                                 // it deletes what it finds
}

// otherLocks all lock "account:7".
func otherLocks(t *testing.T, client *redis.Client) []otherLock {
	rs, rl := redsync.New(goredis.NewPool(client)), redislock.New(client)
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{testServer.Address()}}, KeyMajority: 1, NoLoopTracking: true,
	})
	must(t, err)
	t.Cleanup(locker.Close)
	return []otherLock{
		{
			name: "redsync",
			lock: func(ctx context.Context) (func(), error) {
				mu := rs.NewMutex("account:7", redsync.WithTries(1))
				return func() { mu.UnlockContext(ctx) }, mu.LockContext(ctx)
			},
		},
		{
			name: "redislock",
			lock: func(ctx context.Context) (func(), error) {
				l, err := rl.Obtain(ctx, "account:7", time.Minute, nil)
				return func() { l.Release(ctx) }, err
			},
		},
		{
			name: "rueidislock",
			lock: func(ctx context.Context) (func(), error) {
				_, cancel, err := locker.TryWithContext(ctx, "account:7")
				return cancel, err
			},
			unheard: true,
		},
		{
			name: "SET NX and DEL",
			lock: func(ctx context.Context) (func(), error) {
				ok, err := client.SetNX(ctx, "account:7", "1", time.Minute).Result()
				if err == nil && !ok {
					err = errors.New("taken")
				}
				return func() { client.Del(ctx, "account:7") }, err
			},
			deletes: true,
		},
		{
			name: "SET NX and compare-and-delete",
			lock: func(ctx context.Context) (func(), error) {
				ok, err := client.SetNX(ctx, "account:7", "token", time.Minute).Result()
				if err == nil && !ok {
					err = errors.New("taken")
				}
				return func() { compareAndDelete.Run(ctx, client, []string{"account:7"}, "token") }, err
			},
		},
		{
			name: "hash of owners and counts",
			lock: func(ctx context.Context) (func(), error) {
				ttl, err := hashLock.Run(ctx, client, []string{"account:7"}, "owner", 60_000).Int()
				if err == nil && ttl != 0 {
					err = errors.New("taken")
				}
				return func() { hashUnlock.Run(ctx, client, []string{"account:7"}, "owner") }, err
			},
			shares: true,
		},
		{
			name: "SETNX and GETSET",
			lock: func(ctx context.Context) (func(), error) {
				if ok, err := client.SetNX(ctx, "account:7", "99999999999", 0).Result(); err != nil || ok {
					return func() { client.Del(ctx, "account:7") }, err
				}
				return nil, fmt.Errorf("taken: %w", client.Do(ctx, "GETSET", "account:7", "99999999999").Err())
			},
			deletes: true,
		},
	}
}

// What people write by hand: the script that most articles show, and the re-entrant one.
var (
	compareAndDelete = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

	hashLock = redis.NewScript(`
		if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
			redis.call('hincrby', KEYS[1], ARGV[1], 1)
			redis.call('pexpire', KEYS[1], ARGV[2])
			return 0
		end
		return redis.call('pttl', KEYS[1])`)

	hashUnlock = redis.NewScript(`
		if redis.call('hexists', KEYS[1], ARGV[1]) == 1 and redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then
			redis.call('del', KEYS[1])
		end
		return 0`)
)

// Every option of the other libraries is in docs/MIGRATING.md: in a table, or as one without a counterpart.
func TestMigrating_EveryOptionIsNamed(t *testing.T) {
	page, n := string(file(t, "../docs/MIGRATING.md")), 0
	names := []string{}
	for pkg, pattern := range map[string]string{
		"github.com/go-redsync/redsync/v4":     `(?m)^func (With\w+)\(`,
		"github.com/bsm/redislock":             `(?ms)^type Options struct \{(.*?)^\}`,
		"github.com/redis/rueidis/rueidislock": `(?ms)^type LockerOption struct \{(.*?)^\}`,
	} {
		out, err := exec.Command("go", "list", "-f", "{{range .GoFiles}}{{$.Dir}}/{{.}}\n{{end}}", pkg).Output()
		must(t, err)
		for _, name := range strings.Fields(string(out)) {
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(file(t, name)), -1) {
				if !strings.Contains(m[1], "\n") {
					names = append(names, m[1])
					continue
				}
				for _, field := range regexp.MustCompile(`(?m)^\t([A-Z]\w+) `).FindAllStringSubmatch(m[1], -1) {
					names = append(names, field[1])
				}
			}
		}
	}
	for _, name := range names {
		n++
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s is not in docs/MIGRATING.md", name)
		}
	}
	if n < 20 {
		t.Errorf("only %q found", names)
	}
}

// What docs/MIGRATING.md says of each lock that has the same name as one of Holdfast.
func TestMigrating_SameNameAsAnotherLock(t *testing.T) {
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: testServer.Address()})
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(holdfast.DefaultLease))
	must(t, err)
	defer locks.Close(ctx)
	ours := locks.Mutex("account:7")

	for _, other := range otherLocks(t, client) {
		t.Run(other.name, func(t *testing.T) {
			// They hold it: we refuse with an error of its own, and leave it as it is.
			unlock, err := other.lock(ctx)
			must(t, err)
			lease, err := ours.TryLock(ctx)
			if other.unheard {
				if err != nil {
					t.Fatalf("Holdfast: %v", err)
				}
				lease.Unlock(ctx)
			} else if want := map[bool]error{false: holdfast.ErrWrongKind, true: holdfast.ErrNotAcquired}[other.shares]; !errors.Is(err, want) {
				t.Errorf("Holdfast: %v, want %v", err, want)
			}
			unlock()

			// We hold it: they do not get it, if they see it.
			lease, err = ours.Lock(ctx)
			must(t, err)
			again, err := other.lock(ctx)
			if got := err == nil; got != other.unheard {
				t.Errorf("while Holdfast holds it: %v", err)
			}
			if err == nil {
				again()
			}
			// A late unlock of the other lock is harmless, unless it deletes whatever is there.
			unlock()
			exists := client.Exists(ctx, "account:7").Val() == 1
			if exists == other.deletes {
				t.Errorf("after their late unlock: our lock exists = %t", exists)
			}
			if err := lease.Unlock(ctx); errors.Is(err, holdfast.ErrLeaseLost) != other.deletes {
				t.Errorf("Unlock: %v", err)
			}
		})
	}
}

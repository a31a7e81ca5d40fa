package state

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Another program has taken the name of a key that is derived from a lock's. The error names that key and what it
// holds, to a caller that does not wait and to one that does.
func TestWrongKey_IsNamed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
	fenced := holdfast.WithFencing()
	locks := map[string]holdfast.Locker{
		"mutex": m.Mutex("a", fenced), "fair": m.FairMutex("a", fenced), "write": m.RWMutex("a", fenced), "read": m.RWMutex("a", fenced).RLocker(),
		"multi": several.Multi(t, m.Mutex("a"), m.Mutex("b")), "multi, fenced": several.Multi(t, m.Mutex("a", fenced), m.Mutex("b", fenced)),
	}
	for kind, l := range locks {
		rw := kind == "write" || kind == "read"
		queue, times := "redisson_lock_queue:{a}", "redisson_lock_timeout:{a}"
		if rw {
			queue, times = "holdfast_rw_queue:{a}", "holdfast_rw_timeout:{a}"
		}
		for _, broken := range []struct {
			key, holds string
			command    []any
			held       bool // while another owner has the lock
		}{
			{"a", "a list", []any{"rpush", "a", "x"}, false},
			{"holdfast_tombstones:{a}", "a string", []any{"set", "holdfast_tombstones:{a}", "x"}, false},
			{"holdfast_tombstones:{a}", "a string", []any{"set", "holdfast_tombstones:{a}", "x"}, true},
			{queue, "a string", []any{"set", queue, "x"}, false},
			{queue, "a string", []any{"set", queue, "x"}, true},
			{times, "a hash", []any{"hset", times, "x", "y"}, true},
			{"redisson_lock_token:{a}", "a list", []any{"rpush", "redisson_lock_token:{a}", "x"}, false},
			{"redisson_lock_token:{a}", `"abc", which is no number below 2^53`, []any{"set", "redisson_lock_token:{a}", "abc"}, false},
			{"redisson_lock_token:{a}", `which is no number below 2^53`, []any{"set", "redisson_lock_token:{a}", "9007199254740992"}, false},
			{"redisson_lock_token:{a}", `"9223372036854775807", which is no number below 2^53`, []any{"set", "redisson_lock_token:{a}", "9223372036854775807"}, false},
			{"redisson_lock_token:{a}", `which is no number below 2^53`, []any{"set", "redisson_lock_token:{a}", "1.5"}, false},
		} {
			if kind == "multi" && (strings.HasPrefix(broken.key, "redisson_lock_token") || broken.key == times) {
				continue // it wants no token, and reads no times of a lock that is held
			}
			t.Run(kind+" "+broken.holds+" in "+broken.key, func(t *testing.T) {
				srv.Admin().FlushAll(t.Context())
				if broken.held {
					holder := holdfast.Locker(other.Mutex("a"))
					if rw {
						holder = other.RWMutex("a")
					}
					held := locktest.MustLock(t, holder)
					defer func() {
						srv.Admin().Del(context.Background(), broken.key)
						locktest.MustUnlock(t, held)
					}()
				}
				srv.Admin().Do(t.Context(), broken.command...)
				calls := []func(context.Context) (*holdfast.Lease, error){l.Lock}
				if !broken.held {
					calls = append(calls, l.TryLock) // else it is refused, whatever the queue is
				}
				for _, call := range calls {
					ctx, cancel := context.WithTimeout(t.Context(), locktest.Patience)
					_, err := call(ctx)
					cancel()
					locktest.WantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrUnavailable)
					if want := "the key " + broken.key + " holds "; err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), broken.holds)) {
						t.Errorf("%v does not say that %s%s", err, want, broken.holds)
					}
				}
			})
		}
	}
}

// What is wrong with a queue keeps no holder from giving the lock back.
func TestWrongKey_DoesNotKeepUnlock(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv)
	for name, l := range map[string]holdfast.Locker{
		"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(),
	} {
		for _, part := range []string{"queue", "timeout"} {
			t.Run(name+" "+part, func(t *testing.T) {
				srv.Admin().FlushAll(t.Context())
				lease := locktest.MustLock(t, l)
				for _, family := range []string{"redisson_lock_", "holdfast_rw_"} {
					srv.Admin().RPush(t.Context(), family+"queue:{a}", "hf-0a:1")
					srv.Admin().Do(t.Context(), "set", family+part+":{a}", "x")
				}
				if err := lease.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				if srv.Admin().Exists(t.Context(), "a").Val() != 0 {
					t.Error("the lock is held")
				}
			})
		}
	}
}

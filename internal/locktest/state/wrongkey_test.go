package state

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Another program has taken the name of a key that is derived from a lock's. The error names that key and what it
// holds, to a caller that does not wait and to one that does. Each case has a lock of its own: a late copy of a request
// for the one before is nothing to it.
func TestWrongKey_IsNamed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
	fenced := holdfast.WithFencing()
	kinds := map[string]func(name string) holdfast.Locker{
		"mutex": func(name string) holdfast.Locker { return m.Mutex(name, fenced) },
		"fair":  func(name string) holdfast.Locker { return m.FairMutex(name, fenced) },
		"write": func(name string) holdfast.Locker { return m.RWMutex(name, fenced) },
		"read":  func(name string) holdfast.Locker { return m.RWMutex(name, fenced).RLocker() },
		"multi": func(name string) holdfast.Locker { return several.Multi(t, m.Mutex(name), m.Mutex("b")) },
		"multi, fenced": func(name string) holdfast.Locker {
			return several.Multi(t, m.Mutex(name, fenced), m.Mutex("b", fenced))
		},
	}
	for kind, locker := range kinds {
		rw := kind == "write" || kind == "read"
		family := "redisson_lock_"
		if rw {
			family = "holdfast_rw_"
		}
		for i, broken := range []struct {
			prefix, holds string // of the key; "": the lock's own
			command       []any  // makes it: the key comes second
			held          bool   // while another owner has the lock
		}{
			{"", "a list", []any{"rpush", "x"}, false},
			{"holdfast_tombstones:", "a string", []any{"set", "x"}, false},
			{"holdfast_tombstones:", "a string", []any{"set", "x"}, true},
			{family + "queue:", "a string", []any{"set", "x"}, false},
			{family + "queue:", "a string", []any{"set", "x"}, true},
			{family + "timeout:", "a hash", []any{"hset", "x", "y"}, true},
			{"redisson_lock_token:", "a list", []any{"rpush", "x"}, false},
			{"redisson_lock_token:", `"abc", which is no number below 2^53`, []any{"set", "abc"}, false},
			{"redisson_lock_token:", `which is no number below 2^53`, []any{"set", "9007199254740992"}, false},
			{"redisson_lock_token:", `"9223372036854775807", which is no number below 2^53`, []any{"set", "9223372036854775807"}, false},
			{"redisson_lock_token:", `which is no number below 2^53`, []any{"set", "1.5"}, false},
		} {
			if kind == "multi" && (broken.prefix == "redisson_lock_token:" || broken.prefix == family+"timeout:") {
				continue // it wants no token, and reads no times of a lock that is held
			}
			name := fmt.Sprintf("%s-%d", kind, i)
			key := name
			if broken.prefix != "" {
				key = broken.prefix + "{" + name + "}"
			}
			t.Run(broken.holds+" in "+key, func(t *testing.T) {
				l := locker(name)
				if broken.held {
					holder := holdfast.Locker(other.Mutex(name))
					if rw {
						holder = other.RWMutex(name)
					}
					held := locktest.MustLock(t, holder)
					defer func() {
						srv.Admin().Del(context.Background(), key)
						locktest.MustUnlock(t, held)
					}()
				}
				command := append([]any{broken.command[0], key}, broken.command[1:]...)
				redistest.Must(t, srv.Admin().Do(t.Context(), command...).Err())
				calls := []func(context.Context) (*holdfast.Lease, error){l.Lock}
				if !broken.held {
					calls = append(calls, l.TryLock) // else it is refused, whatever the queue is
				}
				for _, call := range calls {
					ctx, cancel := context.WithTimeout(t.Context(), locktest.Patience)
					_, err := call(ctx)
					cancel()
					locktest.WantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrUnavailable)
					if want := "the key " + key + " holds "; err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), broken.holds)) {
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
				redistest.Check(t, lease.Unlock(t.Context()))
				redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 0, "the lock is held")
			})
		}
	}
}

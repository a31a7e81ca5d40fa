package several

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Members that are one server refuse each other. The calls say which ones are, instead of waiting for another owner.
func TestTwins(t *testing.T) {
	for says, servers := range map[string][]int{
		"members 1 and 2 are the same server":            {0, 0, 0},
		"members 1 and 3 are the same server":            {0, 1, 0},
		"members 2 and 3 are the same server":            {0, 1, 1},
		"members 2 and 5 are the same server: give each": {0, 1, 2, 3, 1},
	} {
		t.Run(says, redistest.Worlds(func(t *testing.T) {
			var all []*redistest.Server
			for range 4 {
				all = append(all, redistest.Start(t))
			}
			var locks []holdfast.Locker
			for _, s := range servers {
				locks = append(locks, locktest.ManagerOn(t, all[s]).Mutex("a"))
			}
			l, err := holdfast.NewRedlock(locks...)
			redistest.Must(t, err)
			for call, lock := range map[string]func(context.Context) (*holdfast.Lease, error){"Lock": l.Lock, "TryLock": l.TryLock} {
				ctx, cancel := context.WithTimeout(t.Context(), locktest.Patience)
				defer cancel()
				lease, err := lock(ctx)
				if err == nil { // a majority has answered before the twin; the lock is held while that is found out
					redistest.Eventually(t, locktest.Patience, call+" is refused", func() bool {
						_, err = l.TryLock(ctx)
						return errors.Is(err, holdfast.ErrInvalidOption)
					})
					locktest.MustUnlock(t, lease)
				}
				want := "the same server"
				if len(servers) > 3 || servers[1] == 1 {
					want = says
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", call, err)
				}
			}
		}))
	}
}

// Two databases of one server stop together.
func TestTwins_Databases(t *testing.T) {
	var locks []holdfast.Locker
	for db := range 3 {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DB: db})
		t.Cleanup(func() { _ = client.Close() })
		locks = append(locks, locktest.ManagerFor(t, client).Mutex("a"))
	}
	if _, err := holdfast.NewRedlock(locks...); !errors.Is(err, holdfast.ErrInvalidOption) || !strings.Contains(err.Error(), "members 1 and 2 are databases") {
		t.Error(err)
	}
}

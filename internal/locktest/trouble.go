package locktest

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// LimitedOn returns a client of a user who may do everything at first, and a function that changes that.
func LimitedOn(t testing.TB, srv *redistest.Server) (client *redis.Client, allow func(rules ...any)) {
	t.Helper()
	allow = func(rules ...any) {
		t.Helper()
		redistest.Must(t, srv.Admin().Do(context.Background(), append([]any{"ACL", "SETUSER", "limited"}, rules...)...).Err())
	}
	allow("reset", "on", ">secret", "~*", "&*", "+@all")
	opt := srv.Options()
	opt.Username, opt.Password = "limited", "secret"
	client = redis.NewClient(opt)
	t.Cleanup(func() { client.Close() })
	return client, allow
}

// EndsClosed fails unless a call ends soon, and because the client is closed.
func EndsClosed(t testing.TB, what string, call func() error) {
	t.Helper()
	failed := redistest.Begin(func() error { return call() })
	select {
	case err := <-failed:
		WantErr(t, err, holdfast.ErrUnavailable, nil)
		WantErr(t, err, redis.ErrClosed, holdfast.ErrNotAcquired)
	case <-time.After(Patience):
		t.Errorf("%s waits", what)
	}
}

// Hears reports whether the only waiter for the fair lock "a", one of m, has asked again since it hears messages.
func Hears(t testing.TB, srv *redistest.Server, m *holdfast.Manager) bool {
	places := srv.Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{a}", 0, -1).Val()
	return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && Pending(m) == 0
}

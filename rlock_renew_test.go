package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A renewal does not shorten what Extend has added to a reader's right.
func TestRLock_RenewalShortensNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := managerOn(t, srv, holdfast.WithLease(2*time.Second))
	read := mustLock(t, m.RWMutex("a").RLocker())
	mustExtend(t, read, time.Hour)
	n := m.Stats().Renewals
	redistest.Eventually(t, patience, "a renewal", func() bool { return m.Stats().Renewals > n })
	claimsItsRight(t, srv, read, 59*time.Minute)
	mustUnlock(t, read)
}

// Renewals of a reader that Redis denies are none: it ends with its right.
func TestRLock_DeniedRenewalIsNone(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		allow := func(rules ...any) {
			if err := srv.Admin().Do(t.Context(), append([]any{"ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*"}, rules...)...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		allow("+@all")
		m, err := holdfast.New(srv.ClientWith(t, func(o *redis.Options) { o.Username, o.Password = "limited", "secret" }), holdfast.WithLease(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		for _, denied := range []string{"pexpire", "hexists"} {
			read := mustLock(t, m.RWMutex("a").RLocker())
			allow("-" + denied)
			<-read.Done()
			var lost *holdfast.LostError
			if err := read.Err(); !errors.As(err, &lost) || lost.Reason != holdfast.LostDeadline {
				t.Errorf("%s: %v", denied, err)
			}
			allow("+" + denied)
		}
	})
}

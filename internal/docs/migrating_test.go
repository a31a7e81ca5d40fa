package docs

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The functions of docs/MIGRATING.md and docs/REDISSON.md. Whole programs are in the module bench/migrating, which runs them.

func newLocks(client redis.UniversalClient) (*holdfast.Manager, error) {
	return holdfast.New(client,
		holdfast.WithLease(30*time.Second),                                          // lockWatchdogTimeout
		holdfast.WithNameMapper(func(name string) string { return "app1:" + name }), // NameMapper, if there is one
	)
}

func refund(ctx context.Context, locks *holdfast.Manager) error {
	fenced := locks.Mutex("account:7", holdfast.WithFencing()) // redisson.getFencedLock("account:7")
	return holdfast.Do(ctx, fenced, func(ctx context.Context, lease *holdfast.Lease) error {
		token, err := lease.FencingToken()
		if err != nil {
			return err
		}
		return store(ctx, token) // refuses a token that is smaller than the last, from Java or Go
	})
}

func payOrSkip(ctx context.Context, locks *holdfast.Manager) (err error) {
	lease, err := locks.Mutex("account:7", holdfast.WithFixedLease(10*time.Second)).TryLock(ctx) // SET account:7 token PX 10000 NX
	if errors.Is(err, holdfast.ErrNotAcquired) {
		return nil // another process is doing this
	}
	if err != nil {
		return err // usually ErrUnavailable: the lock may or may not be held
	}
	defer lease.UnlockInto(ctx, &err) // deletes the key only if this lease holds it
	return charge(lease.Context(ctx))
}

func payFiveAtATime(ctx context.Context, locks *holdfast.Manager) error {
	payments := locks.Semaphore("payments", 5, holdfast.WithWait(5*time.Second)) // then ErrNotAcquired
	return holdfast.Do(ctx, payments.Locker(1), func(ctx context.Context, lease *holdfast.Lease) error {
		return charge(ctx) // is cancelled if the permit is lost
	})
}

var highest uint64

func store(_ context.Context, token uint64) error {
	if token < highest {
		return errors.New("stale token")
	}
	highest = token
	return nil
}

func charge(ctx context.Context) error { return ctx.Err() }

func TestMigrating_ProgramsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: tests that need a server do not run")
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	locks, err := newLocks(client)
	must(t, err)
	defer locks.Close(t.Context())
	for range 2 {
		for _, program := range []func(context.Context, *holdfast.Manager) error{refund, payOrSkip, payFiveAtATime} {
			redistest.Check(t, program(t.Context(), locks))
		}
	}
	lease, err := locks.Mutex("account:7").Lock(t.Context())
	must(t, err)
	redistest.Want(t, client.Exists(t.Context(), "app1:account:7").Val(), 1, "the name mapper has no effect")
	if err := payOrSkip(t.Context(), locks); err != nil {
		t.Errorf("while it is busy: %v", err)
	}
	lease.Unlock(t.Context())
}

// With the keys and channels that the guide names for an ACL, all kinds of lock work.
func TestMigrating_AccessRights(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	_, text, _ := strings.Cut(read(t, "docs/REDISSON.md"), "- **ACLs**")
	text, _, _ = strings.Cut(text, "\n- ")
	rights := []any{"ACL", "SETUSER", "locks", "reset", "resetchannels", "on", ">secret", "+@all"} // before Redis 7 a new user has all channels
	for _, m := range regexp.MustCompile("`([~&][^`]+)`").FindAllStringSubmatch(text, -1) {
		rights = append(rights, m[1])
	}
	must(t, srv.Admin().Do(t.Context(), rights...).Err())
	managers := make([]*holdfast.Manager, 2)
	for i := range managers {
		var err error
		managers[i], err = newLocks(srv.ClientWith(t, asLocks))
		must(t, err)
		defer managers[i].Close(t.Context())
	}
	rightsSuffice(t, srv, managers[0], managers[1])
}

// Every Go program of both pages is compiled: here, or as a whole in the module bench/migrating.
func TestMigrating_ProgramsAreCompiled(t *testing.T) {
	here, whole := read(t, "internal/docs/migrating_test.go"), make(map[string]bool)
	for _, f := range glob(t, "bench/migrating/*/main.go") {
		whole[read(t, f)] = false
	}
	for _, program := range blocks(read(t, "docs/MIGRATING.md")+read(t, "docs/REDISSON.md"), "go") {
		if _, ok := whole[program]; ok {
			whole[program] = true
		} else if !strings.Contains(here, program) {
			t.Errorf("not compiled:\n%s", program)
		}
	}
	for program, shown := range whole {
		if !shown {
			t.Errorf("on no page:\n%s", program)
		}
	}
}

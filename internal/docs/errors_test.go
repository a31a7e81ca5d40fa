package docs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// The texts of errors: what was wrong and, where it helps, what to do.

// Mistakes that a call can make, with the whole text of the error. No server is needed.
func TestErrors_TextsOfMistakes(t *testing.T) {
	option := func(o ...holdfast.Option) error { return locktest.ErrOf(holdfast.New(locktest.Offline(t), o...)) }
	offline := func() *holdfast.Manager { return locktest.ManagerAsIs(t, locktest.Offline(t)) }
	m, other, third := offline(), offline(), offline()
	name := func(name string, opts ...holdfast.LockOption) error {
		return locktest.ErrOf(m.Mutex(name, opts...).TryLock(t.Context()))
	}
	multi := func(locks ...holdfast.Locker) error { return locktest.ErrOf(holdfast.NewMulti(locks...)) }
	redlock := func(locks ...holdfast.Locker) error { return locktest.ErrOf(holdfast.NewRedlock(locks...)) }
	three, err := holdfast.NewRedlock(m.Mutex("a"), other.Mutex("a"), third.Mutex("a"))
	must(t, err)
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for text, err := range map[string]error{
		"holdfast: invalid option: WithLease(0s): must be between 10ms and 100 years":                                                                             option(holdfast.WithLease(0)),
		"holdfast: invalid option: WithFixedLease(9ms): must be between 10ms and 100 years":                                                                       option(holdfast.WithFixedLease(9 * time.Millisecond)),
		"holdfast: invalid option: WithMaxHold(0s): must be positive and at most 100 years":                                                                       option(holdfast.WithMaxHold(0)),
		"holdfast: invalid option: WithMaxHold(1s): must not be shorter than the lease of 30s":                                                                    option(holdfast.WithMaxHold(time.Second)),
		"holdfast: invalid option: WithPollInterval(0s): must be between 10ms and 100 years":                                                                      option(holdfast.WithPollInterval(0)),
		"holdfast: invalid option: WithHandoffSlice(-1s): must be between 0 and 100 years":                                                                        option(holdfast.WithHandoffSlice(-time.Second)),
		"holdfast: invalid option: WithFairPatience(0s): must be between 100ms and 100 years":                                                                     option(holdfast.WithFairPatience(0)),
		"holdfast: invalid option: WithPublishMode(PublishMode(9)): must be PublishAuto, PublishClassic or PublishSharded":                                        option(holdfast.WithPublishMode(9)),
		"holdfast: invalid option: WithPublishMode(PublishSharded): sharded messages need a *redis.ClusterClient of a cluster":                                    option(holdfast.WithPublishMode(holdfast.PublishSharded)),
		"holdfast: invalid option: WithReplicas(-1, 1s): n must not be negative, and the timeout must be at least 1ms":                                            option(holdfast.WithReplicas(-1, time.Second)),
		"holdfast: invalid option: WithReplicas(20s): must not be more than half of the lease of 30s":                                                             option(holdfast.WithReplicas(1, 20*time.Second)),
		"holdfast: invalid option: WithReplicas(6s): must be below the client's ReadTimeout of 5s":                                                                option(holdfast.WithReplicas(1, 6*time.Second)),
		"holdfast: WithTracerProvider: provider is nil":                                                                                                           option(holdfast.WithTracerProvider(nil)),
		"holdfast: WithMeterProvider: provider is nil":                                                                                                            option(holdfast.WithMeterProvider(nil)),
		"holdfast: invalid option: New(*redis.Ring): a ring is not supported: processes may disagree about which shards are up, and lock one name on two of them": locktest.ErrOf(holdfast.New(ring)),
		`holdfast: invalid lock name: "": the name is empty`:                                                                                                      name(""),
		`holdfast: invalid lock name: "a{b": the name has unbalanced or empty braces; use at most one non-empty {tag}`:                                            name("a{b"),
		`holdfast: invalid lock name: "{a}": the name must not be a single {tag}: it would share its queue with the lock named "tag"`:                             name("{a}"),
		`holdfast: invalid lock name: "holdfast_x": the name begins with holdfast_, or is that of a key derived from another lock's name`:                         name("holdfast_x"),
		`holdfast: invalid lock name: "` + strings.Repeat("x", 64) + `"…: the name has 131072 bytes, and may have 1024: use a shorter one, such as a digest`:      name(strings.Repeat("x", 1<<17)),
		"holdfast: invalid option: NewMulti(a): the lock is named twice, and would wait for itself":                                                               multi(m.Mutex("a"), m.Mutex("a")),
		"holdfast: invalid option: NewMulti(*holdfast.Redlock): lock 1 is of a type that it does not take":                                                        multi(three),
		"holdfast: NewMulti: no locks given":                                                      multi(),
		"holdfast: invalid option: NewRedlock(2): needs at least three locks":                     redlock(m.Mutex("a"), other.Mutex("a")),
		"holdfast: invalid option: NewRedlock(b): two members of one Manager are not independent": redlock(m.Mutex("a"), m.Mutex("b"), other.Mutex("a")),
		"holdfast: invalid option: NewRedlock(a): read sides and other locks must not be mixed":   redlock(m.Mutex("a"), other.RWMutex("a").RLocker(), third.Mutex("a")),
		`holdfast: invalid option: WithIdentity(""): must have 1 to 100 bytes`:                    option(holdfast.WithIdentity("")),
		"holdfast: TryLock: no Manager has made this lock":                                        locktest.ErrOf(new(holdfast.Mutex).TryLock(t.Context())),
		"holdfast: New: client is nil":                                                            locktest.ErrOf(holdfast.New(nil)),
		"holdfast: New: client is a nil *redis.Client":                                            locktest.ErrOf(holdfast.New((*redis.Client)(nil))),
		"holdfast: New: option 2 is nil":                                                          option(holdfast.WithFencing(), nil),
		"holdfast: WithNameMapper: mapper is nil":                                                 option(holdfast.WithNameMapper(nil)),
		"holdfast: WithLogger: logger is nil":                                                     option(holdfast.WithLogger(nil)),
		"holdfast: NewMulti: lock 2 is nil":                                                       multi(m.Mutex("a"), nil),
		"holdfast: NewRedlock: lock 3 is nil":                                                     redlock(m.Mutex("a"), m.Mutex("b"), (*holdfast.Mutex)(nil)),
		`holdfast: option 2 of lock "a" is nil`:                                                   name("a", holdfast.WithFencing(), nil),
		"holdfast: Do: lock is nil":                                                               holdfast.Do(t.Context(), nil, nil),
		"holdfast: Unlock: no lock has granted this lease":                                        new(holdfast.Lease).Unlock(t.Context()),
	} {
		if fmt.Sprint(err) != text {
			t.Errorf("%v\nwant %s", err, text)
		}
		if !errors.Is(err, holdfast.ErrInvalidOption) && !errors.Is(err, holdfast.ErrInvalidName) {
			t.Errorf("%v matches neither ErrInvalidOption nor ErrInvalidName", err)
		}
	}
}

func TestErrors_TextsOfSentinels(t *testing.T) {
	lost := &holdfast.LostError{Name: "stock:42", Reason: holdfast.LostDeleted}
	release := &holdfast.ReleaseError{Name: "stock:42", Err: holdfast.ErrUnavailable}
	for err, text := range map[error]string{
		holdfast.ErrNotAcquired:   "holdfast: lock not acquired",
		holdfast.ErrLeaseLost:     "holdfast: lease lost",
		holdfast.ErrMaxHold:       "holdfast: maximum hold time reached",
		holdfast.ErrReleased:      "holdfast: lease released",
		holdfast.ErrNotHeld:       "holdfast: lease already released",
		holdfast.ErrNotReleased:   "holdfast: release not confirmed",
		holdfast.ErrNoLeader:      "holdfast: no leader",
		holdfast.ErrClosed:        "holdfast: manager closed",
		holdfast.ErrWouldDeadlock: "holdfast: would deadlock",
		holdfast.ErrWrongKind:     "holdfast: key is of another kind",
		holdfast.ErrInvalidName:   "holdfast: invalid lock name",
		holdfast.ErrInvalidOption: "holdfast: invalid option",
		holdfast.ErrUnavailable:   "holdfast: redis unavailable",

		lost:    `holdfast: lease lost: "stock:42": deleted`,
		release: `holdfast: release not confirmed: "stock:42": holdfast: redis unavailable`,
		&holdfast.ReplicaError{Want: 2, Acked: 1}:                     "acknowledged by 1 of 2 replicas",
		&holdfast.ReplicaError{Want: 2, Err: errors.New("no answer")}: "could not confirm acknowledgement by 2 replicas: no answer",
	} {
		if err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

package holdfast_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// severalOf returns a lease of several locks, of one of two kinds, and the servers that they are on.
func severalOf(t *testing.T, kind string, opts ...holdfast.Option) (*holdfast.Lease, electorate) {
	t.Helper()
	if kind == "multi" {
		all := servers(t, 1)
		m := managerOn(t, all[0], opts...)
		return mustLock(t, multi(t, m.Mutex("a"), m.Mutex("b"))), all
	}
	all := servers(t, 3)
	lease := mustLock(t, all.candidate(t, opts...))
	all.heldBy(t, 3)
	return lease, all
}

// givenBack are the lines of a release.
var givenBack = regexp.MustCompile(`lua\] "hdel" "\w+" "hf-[^"]+:\d+"`)

// A stuck holder has until the TTLs to notice that its time is over, as it has with a single lock: none of the
// locks is given back before, unless it calls Unlock.
func TestGroup_SetEndLeavesTheLocks(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]holdfast.Option{
		"WithMaxHold": holdfast.WithMaxHold(4 * time.Second), "WithFixedLease": holdfast.WithFixedLease(4 * time.Second),
	} {
		for _, kind := range []string{"multi", "redlock"} {
			for _, unlocked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/unlocked=%v", name, kind, unlocked), func(t *testing.T) {
					t.Parallel()
					lease, all := severalOf(t, kind, holdfast.WithLease(4*time.Second), end)
					var monitors []*redistest.Monitor
					for _, srv := range all {
						monitors = append(monitors, srv.Monitor(t))
						for _, key := range srv.Keys() {
							if unlocked { // it is not their TTL that ends them
								srv.Admin().PExpire(t.Context(), key, time.Minute)
							}
						}
					}
					<-lease.Done()
					if unlocked {
						if err := lease.Unlock(t.Context()); err == nil {
							t.Error("Unlock knows of no end")
						}
					}
					for i, srv := range all {
						redistest.Eventually(t, patience, "nothing is left", func() bool { return srv.Admin().Exists(t.Context(), "a", "b", vote).Val() == 0 })
						srv.Admin().Echo(t.Context(), "looked")
						monitors[i].Wait(t, `"echo" "looked"`, patience)
						n := len(givenBack.FindAllString(strings.Join(monitors[i].Lines(), "\n"), -1))
						if (n > 0) != unlocked {
							t.Errorf("%d locks were given back", n)
						}
					}
				})
			}
		}
	}
}

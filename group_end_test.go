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
	const ttl = 4 * time.Second
	for name, end := range map[string]holdfast.Option{"WithMaxHold": holdfast.WithMaxHold(ttl), "WithFixedLease": holdfast.WithFixedLease(ttl)} {
		for _, kind := range []string{"multi", "redlock"} {
			for _, unlocked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/unlocked=%v", name, kind, unlocked), func(t *testing.T) {
					redistest.InWorlds(t, func(t *testing.T) {
						begun := time.Now()
						lease, all := severalOf(t, kind, holdfast.WithLease(ttl), end)
						var monitors []*redistest.Monitor
						for _, srv := range all {
							monitors = append(monitors, srv.Monitor(t))
							for _, key := range srv.Keys() {
								if unlocked { // it is not their TTL that ends them
									srv.Admin().PExpire(t.Context(), key, time.Minute)
								}
							}
						}
						left := func(srv *redistest.Server) int64 { return srv.Admin().Exists(t.Context(), "a", "b", vote).Val() }
						<-lease.Done()
						for _, srv := range all {
							if n := left(srv); n < int64(max(1, 2/len(all))) && time.Since(begun) < ttl {
								t.Errorf("%d locks are left %v after the first was taken", n, time.Since(begun))
							}
						}
						if unlocked {
							if err := lease.Unlock(t.Context()); err == nil {
								t.Error("Unlock knows of no end")
							}
						}
						for i, srv := range all {
							redistest.Eventually(t, patience, "nothing is left", func() bool { return left(srv) == 0 })
							srv.Admin().Echo(t.Context(), "looked")
							monitors[i].Wait(t, `"echo" "looked"`, patience)
							if unlocked && !givenBack.MatchString(strings.Join(monitors[i].Lines(), "\n")) {
								t.Error("no lock was given back")
							}
						}
					})
				})
			}
		}
	}
}

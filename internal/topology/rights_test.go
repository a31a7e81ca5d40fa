package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// rights are those of docs/SETUP.md: what every server, a cluster and WithReplicas
// need.
func rights(t *testing.T) (base, cluster, replicas []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/SETUP.md")
	redistest.Must(t, err)
	lines := regexp.MustCompile(`(?m)^ACL SETUSER locks (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) != 4 { // the last is that of WithIdentity
		t.Fatalf("%d lines of rights", len(lines))
	}
	return strings.Fields(lines[0][1]), strings.Fields(lines[1][1]), strings.Fields(lines[2][1])
}

// permit makes a user with these rights and no others on every server.
func permit(t *testing.T, servers []*redistest.Server, user string, rights ...[]string) {
	t.Helper()
	for _, s := range servers {
		args := append([]any{"acl", "setuser", user, "reset"}, s.Rights(slices.Concat(rights...))...)
		redistest.Must(t, s.Admin().Do(within(t), args...).Err())
	}
}

// refusals are what the servers have refused the user, but for go-redis's introduction.
func refusals(t *testing.T, servers []*redistest.Server, user string) (objects []string) {
	t.Helper()
	for _, s := range servers {
		entries, err := s.Admin().ACLLog(within(t), 100).Result()
		redistest.Must(t, err)
		for _, e := range entries {
			if e.Username == user && !strings.HasPrefix(e.Object, "client") {
				objects = append(objects, e.Object)
			}
		}
	}
	return objects
}

// app is a lock that the document's user may have.
const app = "app:stock"

// locker is the user's manager in a cluster; its waiters are woken by messages.
func locker(t *testing.T, c *redistest.Cluster, user string) *holdfast.Manager {
	client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, "secret" })
	return manager(t, client, holdfast.WithLease(3*time.Second), holdfast.WithReplicas(1, acksWithin), holdfast.WithHandoffSlice(0))
}

// exercise has two managers use a lock: wait for Redisson, wait for each other, renew,
// release, force, and renew once more while its slot is half-way to another master. It ends
// with the first error, or soon after ctx.
func exercise(ctx context.Context, t *testing.T, c *redistest.Cluster, a, b *holdfast.Manager) error {
	lock := func(m *holdfast.Manager) *holdfast.Mutex { return m.Mutex(app, holdfast.WithFencing()) }
	reached := func(what string, ok func() bool) error {
		redistest.Eventually(t, patience, what, func() bool { return ok() || ctx.Err() != nil })
		return ctx.Err()
	}
	f := newForeigner(t, c, holdfast.PublishAuto)
	f.lock(app)
	waiter := lock(b).LockAsync(ctx)
	err := reached("it waits for Redisson", func() bool { return b.Stats().Polls > 0 })
	f.unlock(app)
	r := <-waiter
	if r.Err != nil {
		return r.Err
	}
	waiter = lock(a).LockAsync(ctx)
	if err == nil {
		err = reached("it waits for the other", func() bool { return a.Stats().Waiting == 1 && a.Stats().Subscriptions > 0 })
	}
	if err := errors.Join(err, r.Lease.Unlock(ctx)); err != nil {
		return err
	}
	if r = <-waiter; r.Err != nil {
		return r.Err
	}
	if _, err := a.Inspect(ctx, app); err != nil {
		return err
	}
	m := c.StartMigration(app, c.OtherMaster(app)) // half-way, Redis sends a client that asks to the other master
	m.MoveKeys()
	renewals := a.Stats().Renewals
	err = reached("renewals there", func() bool { return a.Stats().Renewals > renewals+1 })
	m.Finish()
	if err != nil {
		return err
	}
	_, err = a.ForceUnlock(ctx, app)
	return err
}

// exerciseSemaphore has two managers use a semaphore: wait for each other, set how many permits it has, look at it, and force one free.
func exerciseSemaphore(ctx context.Context, t *testing.T, name string, a, b *holdfast.Manager) {
	t.Helper()
	one, other := a.Semaphore(name, 2, holdfast.WithIdleTTL(time.Hour)), b.Semaphore(name, 2)
	held, err := one.Acquire(ctx, 2)
	redistest.Must(t, err)
	waiter := other.AcquireAsync(ctx, 1)
	redistest.Eventually(t, patience, "it waits", func() bool { return b.Stats().Waiting == 1 && b.Stats().Subscriptions > 0 })
	locktest.MustUnlock(t, held)
	r := <-waiter
	redistest.Must(t, r.Err)
	redistest.Must(t, one.SetPermits(ctx, 3))
	info, err := a.Inspect(ctx, name)
	redistest.Must(t, err)
	if info.Permits != 3 || len(info.Holders) != 1 {
		t.Fatalf("Redis knows %+v", info)
	}
	freed, err := a.ForceUnlockOf(ctx, name, info.Holders[0].Owner)
	redistest.Must(t, err)
	if err := r.Lease.Unlock(ctx); !freed || !errors.Is(err, holdfast.ErrLeaseLost) {
		t.Errorf("forced: %v, then its Unlock returned %v", freed, err)
	}
}

// In a cluster, and with WithReplicas, the rights of the document suffice.
func TestRights_SufficeInCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	base, cluster, replicas := rights(t)
	permit(t, c.Nodes(), "locks", base, cluster, replicas)
	a, b := locker(t, c, "locks"), locker(t, c, "locks")
	redistest.Check(t, exercise(within(t), t, c, a, b))
	exerciseSemaphore(within(t), t, "app:downloads", a, b)
	redistest.Eventually(t, patience, "nothing is subscribed", func() bool { return b.Stats().Subscriptions == 0 })
	if got := refusals(t, c.Nodes(), "locks"); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
}

// Each of the rights that the document adds is needed: without it something is refused.
func TestRights_AreNeededInCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	base, cluster, replicas := rights(t)
	var added []string
	for _, right := range c.Nodes()[0].Rights(slices.Concat(cluster, replicas)) {
		added = append(added, right.(string))
	}
	for i, right := range added {
		user := fmt.Sprint("without", i)
		permit(t, c.Nodes(), user, base, slices.Delete(slices.Clone(added), i, i+1))
		ctx, cancel := context.WithCancel(within(t))
		a, b := locker(t, c, user), locker(t, c, user)
		ended := redistest.Begin(func() error { return exercise(ctx, t, c, a, b) })
		refused := strings.TrimPrefix(right, "+")
		if c.Nodes()[0].Major() < 7 { // its log has no subcommands
			refused, _, _ = strings.Cut(refused, "|")
		}
		redistest.Eventually(t, patience, "it is refused "+right, func() bool { return slices.Contains(refusals(t, c.Nodes(), user), refused) })
		cancel()
		t.Logf("without %s: %v", right, <-ended)
		f := c.Owner(app).Admin()
		_ = f.Del(within(t), app).Err() // what it could not give back
	}
}

// Who may not subscribe to sharded channels finds out by asking that Redisson has released a lock. Its inbox is
// heard, and no connection ends because of it.
func TestRights_ShardedChannelsDenied(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	if !sharded(c) {
		t.Skip("the servers have no sharded channels")
	}
	permit(t, c.Nodes(), "locks", []string{"on", ">secret", "~*", "&*", "+@all", "-ssubscribe"})
	client := func() *redis.ClusterClient {
		return c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "locks", "secret" })
	}
	a := manager(t, client(), holdfast.WithPollInterval(200*time.Millisecond))
	f := newForeigner(t, c, holdfast.PublishAuto)
	f.lock(app)
	got := wait(t, a, app)
	redistest.Eventually(t, patience, "it is denied", func() bool {
		return slices.Contains(refusals(t, c.Nodes(), "locks"), "ssubscribe")
	})
	redistest.Eventually(t, patience, "nothing but its inbox is heard", func() bool { return a.Stats().Subscriptions == 1 && a.Stats().Polls > 3 })
	f.unlock(app)
	lease := <-got
	b := manager(t, client(), unpolled...)
	got = wait(t, b, app)
	redistest.Eventually(t, patience, "it waits", func() bool { return b.Stats().Waiting == 1 && b.Stats().Subscriptions == 1 })
	released := time.Now()
	locktest.MustUnlock(t, lease)
	lease = <-got
	wantPrompt(t, released)
	locktest.MustUnlock(t, lease)
	redistest.WantMost(t, a.Stats().Reconnects+b.Stats().Reconnects, 0, "%d reconnections")
}

// WithReplicas on servers that are no cluster needs its own addition only.
func TestRights_SufficeWithReplicas(t *testing.T) {
	t.Parallel()
	srv, _ := followed(t, 1)
	base, _, replicas := rights(t)
	servers := []*redistest.Server{srv}
	permit(t, servers, "locks", base, replicas)
	user := func(o *redis.Options) { o.Username, o.Password = "locks", "secret" }
	m := replicated(t, srv.ClientWith(t, user), 1, acksWithin)
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(app)))
	if got := refusals(t, servers, "locks"); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
	permit(t, servers, "locks", base)
	if _, err := m.Mutex(app).TryLock(within(t)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("without the right to ask for acknowledgements: %v, want ErrUnavailable", err)
	}
}

// What the document adds for names with a tag and for databases suffices, and is needed.
func TestRights_OfTagsAndDatabases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/SETUP.md")
	redistest.Must(t, err)
	tags := regexp.MustCompile("so add `(.*?)`").FindSubmatch(text)
	database := regexp.MustCompile("whose `DB` is not 0 needs `(.*?)`").FindSubmatch(text)
	if tags == nil || database == nil {
		t.Fatal("the document does not name them")
	}
	srv := redistest.Start(t)
	servers := []*redistest.Server{srv}
	base, _, _ := rights(t)
	added := append(strings.Fields(string(tags[1])), string(database[1]))
	permit(t, servers, "locks", base, added)
	user := func(o *redis.Options) { o.Username, o.Password, o.DB = "locks", "secret", 1 }
	one := manager(t, srv.ClientWith(t, user), holdfast.WithHandoffSlice(0))
	other := manager(t, srv.ClientWith(t, user), holdfast.WithHandoffSlice(0))
	const tagged = "app:{eu}:stock"
	type lock interface {
		holdfast.Locker
		LockAsync(context.Context) <-chan holdfast.Result
	}
	for _, of := range []func(*holdfast.Manager) lock{
		func(m *holdfast.Manager) lock { return m.Mutex(tagged, holdfast.WithFencing()) },
		func(m *holdfast.Manager) lock { return m.FairMutex(tagged, holdfast.WithFencing()) },
		func(m *holdfast.Manager) lock { return m.RWMutex(tagged, holdfast.WithFencing()) },
	} {
		held := locktest.MustLock(t, of(one))
		waiter := of(other).LockAsync(within(t))
		redistest.Eventually(t, patience, "it waits", func() bool { return other.Stats().Waiting == 1 })
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, locktest.Granted(t, waiter))
	}
	exerciseSemaphore(within(t), t, "app:{eu}:downloads", one, other)
	if got := refusals(t, servers, "locks"); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
	for i, right := range added {
		permit(t, servers, "locks", base, slices.Delete(slices.Clone(added), i, i+1))
		m := manager(t, srv.ClientWith(t, user), holdfast.WithPollInterval(100*time.Millisecond))
		_, _ = m.Mutex(tagged, holdfast.WithFencing()).TryLock(within(t))
		_, _ = m.RWMutex(tagged).TryLock(within(t))
		_, _ = m.ForceUnlock(within(t), tagged)
		if len(refusals(t, servers, "locks")) == 0 {
			t.Errorf("nothing is refused without %s", right)
		}
		srv.Admin().ACLLogReset(within(t))
		srv.Admin().FlushAll(within(t))
	}
}

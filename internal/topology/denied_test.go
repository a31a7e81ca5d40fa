package topology

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// subscribeLines is a log handler that keeps the lines about channels that are denied or permitted.
type subscribeLines struct {
	slog.Handler
	mu  sync.Mutex
	all []string // guarded by mu
}

func (*subscribeLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *subscribeLines) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	return nil
}

// count returns how many lines contain all texts.
func (l *subscribeLines) count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			n++
		}
	}
	return n
}

// denials returns how many commands of a user the servers have refused, but for those of scripts and go-redis's introduction.
func denials(t *testing.T, servers []*redistest.Server, user string) (n int64) {
	t.Helper()
	for _, s := range servers {
		entries, err := s.Admin().ACLLog(within(t), 1000).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Username == user && e.Context == "toplevel" && !strings.HasPrefix(e.Object, "client") {
				n += e.Count
			}
		}
	}
	return n
}

// A waiter whose user may subscribe to nothing, in either mode of publishing, polls as often as the poll interval says
// and is served within it, by Redisson's release and by Holdfast's. The log tells once of each family of channels, and
// that the user has got the right; then messages wake the waiter.
func TestDenied_InCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	const poll, least = 400 * time.Millisecond, 320 * time.Millisecond
	const told, healed = "holdfast: not permitted to subscribe; polling instead", "holdfast: permitted to subscribe now"
	families := []string{"holdfast_inbox:*", "redisson_lock__channel:*"}
	all := strings.Fields("on >secret ~* &* +@all")
	var cases sync.WaitGroup
	for _, mode := range publishModes(c)[:2] {
		for user, rights := range map[string]string{"channels": "resetchannels", "commands": "-subscribe -ssubscribe"} {
			cases.Go(func() {
				t.Run(fmt.Sprint(mode, user), func(t *testing.T) {
					user, name := fmt.Sprint(user, mode), fmt.Sprint("denied:", user, mode)
					permit(t, c.Nodes(), user, all, strings.Fields(rights))
					log := &subscribeLines{Handler: slog.DiscardHandler}
					client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, "secret" })
					m := manager(t, client, holdfast.WithPollInterval(poll), holdfast.WithPublishMode(mode), holdfast.WithLogger(slog.New(log)))
					f := newForeigner(t, c, mode)
					f.lock(name)
					begun, got := time.Now(), wait(t, m, name)
					for _, family := range families {
						redistest.Eventually(t, patience, "the log tells of "+family, func() bool { return log.count(told, family) == 1 })
					}
					since, before := time.Now(), m.Stats()
					var now holdfast.Stats
					redistest.Eventually(t, patience, "it polls", func() bool { now = m.Stats(); return now.Polls >= before.Polls+8 })
					took := time.Since(since)
					polls, commands := now.Polls-before.Polls, now.Commands-before.Commands
					if most := uint64(took/least) + 2; polls > most || commands > polls+2 { // the timer was set before, and a part of an interval
						t.Errorf("%d polls and %d commands in %v, want at most %d", polls, commands, took, most)
					}
					f.unlock(name)
					lease := <-got
					holder := manager(t, c.Client(t), holdfast.WithPublishMode(mode))
					mustUnlock(t, lease)
					lease = mustLock(t, holder.Mutex(name))
					got = wait(t, m, name)
					redistest.Eventually(t, patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
					mustUnlock(t, lease)
					mustUnlock(t, <-got)
					// Each channel is asked for at once, and then after 1, 2 and 4 s.
					if n, most := denials(t, c.Nodes(), user), int64(len(families))*(2+int64(time.Since(begun)/time.Second)); n > most {
						t.Errorf("%d commands were denied in %v, want at most %d", n, time.Since(begun), most)
					}
					if s := m.Stats(); s.Reconnects > 0 || log.count(told) != len(families) {
						t.Errorf("%+v, %d lines", s, log.count(told))
					}
					f.lock(name)
					got = wait(t, m, name)
					permit(t, c.Nodes(), user, all)
					for _, family := range families {
						redistest.Eventually(t, patience, "the log tells of the end for "+family, func() bool { return log.count(healed, family) == 1 })
					}
					f.awaitListeners(name, 1)
					f.unlock(name)
					mustUnlock(t, <-got)
				})
			})
		}
	}
	cases.Wait()
}

// A channel that is denied is asked for again after pauses. Others of the same master are heard meanwhile, and no
// connection ends because of it.
func TestPublish_OneChannelIsForbidden(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	f := newForeigner(t, c, holdfast.PublishAuto)
	permit(t, c.Nodes(), "some", strings.Fields("resetchannels on >secret ~* +@all &holdfast_* &redisson_*{fine*"))
	client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "some", "secret" })
	pauses := make(pausesLogged, 1000)
	m := manager(t, client, append(unpolled, holdfast.WithLogger(slog.New(pauses)))...)
	var fine []string
	for i := 0; len(fine) < 5; i++ {
		if n := fmt.Sprint("fine", i); c.Owner(n) == c.Owner(name) {
			fine = append(fine, n)
		}
	}
	got := make(map[string]<-chan *holdfast.Lease)
	for _, n := range append(fine, name) {
		f.lock(n)
		got[n] = wait(t, m, n)
	}
	for most := time.Duration(0); most < time.Second/2; {
		select {
		case d := <-pauses:
			most = max(most, d)
		case <-time.After(patience):
			t.Fatalf("no pause was longer than %v", most)
		}
	}
	for _, n := range fine {
		f.awaitListeners(n, 1)
		f.unlock(n)
		mustUnlock(t, <-got[n])
		delete(got, n)
	}
	if n := m.Stats().Reconnects; n > 0 {
		t.Errorf("%d reconnections", n)
	}
	f.unlock(name)
	permit(t, c.Nodes(), "some", strings.Fields("on >secret ~* +@all &*"))
	for _, g := range got {
		mustUnlock(t, <-g)
	}
}

// pausesLogged is a log handler that passes on how long the subscriber waits.
type pausesLogged chan time.Duration

func (pausesLogged) Enabled(context.Context, slog.Level) bool { return true }
func (p pausesLogged) WithAttrs([]slog.Attr) slog.Handler     { return p }
func (p pausesLogged) WithGroup(string) slog.Handler          { return p }

func (p pausesLogged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "retry_in" {
			p <- a.Value.Duration()
		}
		return true
	})
	return nil
}

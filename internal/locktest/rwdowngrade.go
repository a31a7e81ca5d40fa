package locktest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// downgradeOf matches the downgrade of a lock, and releaseOfRW a release: both have the
// channel as their second key, and only the former says a TTL behind how to hand over.
func downgradeOf(key string) redistest.Match {
	return func(cmd []string) bool {
		return script(cmd) && len(cmd) > 8 && cmd[3] == key && strings.HasPrefix(cmd[4], "redisson_rwlock:") &&
			cmd[2] == "4" && !strings.HasSuffix(cmd[7], ":write") && len(strings.Fields(cmd[9])) == 4 &&
			cmd[10] == milliseconds(lease)
	}
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// bothSides takes both sides under one owner and returns their leases.
func (e *Env) bothSides(l *holdfast.RWMutex) (write, read *holdfast.Lease) {
	e.Helper()
	write = e.MustLock(l)
	read, err := l.RLock(write.Context(bg))
	if err != nil {
		e.Fatal(err)
	}
	return write, read
}

// readHeld fails unless the lock is held in read mode, by n readers.
func (e *Env) readHeld(n int) {
	e.Helper()
	mode := e.srv.Admin().HGet(bg, e.Key, "mode").Val()
	holders := e.Holders()
	for id := range holders {
		if strings.HasSuffix(id, ":write") {
			e.Errorf("%s is still there", id)
		}
	}
	if mode != "read" || len(holders) != n || len(e.Rights()) != n {
		e.Errorf("mode %q, holders %v, rights %v", mode, holders, e.Rights())
	}
}

var rwDowngradeScenarios = map[string]func(*Env){
	// AC-68, AC-73: readers everywhere are woken, Redisson's as well; writers are not.
	"ReadersComeInAndWritersDoNot": func(e *Env) {
		m, other := e.Manager(byMessage...), e.Manager(byMessage...)
		l := e.RW(m)
		write, read := e.bothSides(l)
		p := redistest.StartProcess(e, HolderRole, "read", e.srv.Addr(), e.srv.Password(), e.Key, "20s")
		e.Queued(1)
		remote := e.Later(e.RW(other).RLocker())
		e.Queued(2)
		local := e.Later(l.RLocker())
		e.Parked(m, 1)
		sub := e.srv.Client(e).Subscribe(bg, e.Channel(e.Key))
		defer sub.Close()
		if _, err := sub.Receive(bg); err != nil {
			e.Fatal(err)
		}
		e.MustUnlock(write)
		in := e.Soon("a reader of another manager", remote)
		select {
		case msg := <-sub.Channel():
			if msg.Payload != "1" {
				e.Errorf("message %q", msg.Payload)
			}
		case <-time.After(patience):
			e.Error("Redisson's readers are not told")
		}
		p.Expect(e, "held")
		here := e.Soon("a reader of this one", local)
		e.readHeld(3)
		e.Busy(e.RW(other).TryLock)
		e.Busy(l.TryLock)
		p.Send("unlock")
		e.Eventually("the process's reader has left", func() bool { return len(e.Holders()) == 2 })
		e.MustUnlock(in)
		e.MustUnlock(here)
		if !read.Valid() {
			e.Error("the read right is gone")
		}
		e.MustUnlock(read)
		sub.Close()
		e.Clean(m)
		e.Clean(other)
	},

	// The right that is left is renewed for as long as it is held, and then free.
	"IsRenewed": func(e *Env) {
		m := e.Manager()
		l := e.RW(m)
		write, read := e.bothSides(l)
		e.MustUnlock(write)
		e.readHeld(1)
		waiting := e.Later(e.RW(e.Manager()))
		e.Queued(1)
		for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if ttl := e.PTTL(); ttl < lease/4 || !read.Valid() {
				e.Fatalf("TTL %v, valid %v", ttl, read.Valid())
			}
		}
		e.readHeld(1)
		e.MustUnlock(read)
		e.MustUnlock(e.Soon("the writer", waiting))
		e.Clean(m)
	},

	// The whole ladder under one owner; the write side lasts until its last lease ends.
	"HappensWithTheLastWriteLease": func(e *Env) {
		m := e.Manager()
		l := e.RW(m, holdfast.WithFencing())
		write, read := e.bothSides(l)
		again, err := l.Lock(read.Context(bg))
		if err != nil {
			e.Fatal(err)
		}
		e.MustUnlock(write)
		e.Busy(e.RW(e.Manager()).TryRLock)
		e.MustUnlock(again)
		e.readHeld(1)
		_, err = l.Lock(read.Context(bg))
		e.WantErr(err, holdfast.ErrWouldDeadlock)
		if read.Token() != write.Token() || read.Token() == 0 {
			e.Errorf("tokens %d, %d", write.Token(), read.Token())
		}
		joined := e.MustRLock(l)
		if joined.Token() != read.Token() {
			e.Errorf("readers that share a hold have tokens %d, %d", joined.Token(), read.Token())
		}
		e.MustUnlock(joined)
		e.MustUnlock(read)
		next := e.MustLock(l)
		if next.Token() <= read.Token() {
			e.Errorf("token %d after %d", next.Token(), read.Token())
		}
		e.MustUnlock(next)
		e.Clean(m, Tokens)
	},

	// A write lease is not cut by the read release of its owner (Redisson cuts it to what
	// the other read holds have left).
	"ReadReleaseLeavesTheWriteSide": func(e *Env) {
		m := e.Manager()
		l := e.RW(m)
		write, read := e.bothSides(l)
		two, err := l.RLock(write.Context(bg))
		if err != nil {
			e.Fatal(err)
		}
		e.MustUnlock(read)
		e.MustUnlock(two)
		if n := e.Holders(); len(n) != 1 || len(e.Rights()) != 0 {
			e.Errorf("holders %v, rights %v", n, e.Rights())
		}
		for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if ttl := e.PTTL(); ttl < lease/4 || !write.Valid() {
				e.Fatalf("TTL %v, valid %v", ttl, write.Valid())
			}
		}
		e.Busy(e.RW(e.Manager()).TryRLock)
		e.MustUnlock(write)
		e.Clean(m)
	},

	// The reply is lost, or the request: it is repeated, and nothing else happens.
	"SurvivesLostMessages": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m)
		e.MustUnlock(e.MustLock(l))
		for range 3 {
			for _, lose := range []func(redistest.Match, int){p.LoseReply, p.LoseRequest} {
				write, read := e.bothSides(l)
				lose(downgradeOf(e.Key), 1)
				e.MustUnlock(write)
				e.Eventually("downgraded", func() bool { return e.srv.Admin().HGet(bg, e.Key, "mode").Val() == "read" })
				e.readHeld(1)
				n := m.Stats().Renewals
				e.Eventually("renewed", func() bool { return m.Stats().Renewals > n })
				if !read.Valid() {
					e.Errorf("the read right is gone: %v", read.Err())
				}
				e.MustUnlock(read)
			}
		}
		e.Clean(m, Tombstones)
	},

	// The owner leaves, closes or loses the lock while nobody knows whether it was
	// downgraded: the request is on its way or its reply is.
	"EndsWhileUnanswered": func(e *Env) {
		e.Server()
		for name, end := range map[string]func(m *holdfast.Manager, read *holdfast.Lease){
			"unlocked": func(_ *holdfast.Manager, read *holdfast.Lease) { _ = read.Unlock(bg) },
			"closed":   func(m *holdfast.Manager, _ *holdfast.Lease) { _ = m.Close(bg) },
			"lost": func(m *holdfast.Manager, read *holdfast.Lease) {
				e.WantLost(read, holdfast.LostDeadline)
				e.WantErr(read.Unlock(bg), holdfast.ErrLeaseLost)
			},
		} {
			for _, request := range []bool{true, false} {
				m, p := e.Via()
				l := e.RW(m)
				e.MustUnlock(e.MustLock(l))
				write, read := e.bothSides(l)
				var gates []*redistest.Gate
				for range 8 { // every copy
					if request {
						gates = append(gates, p.HoldRequest(downgradeOf(e.Key)))
					} else {
						gates = append(gates, p.HoldReply(downgradeOf(e.Key)))
					}
				}
				begun := make(chan struct{})
				go func() { defer close(begun); _ = write.Unlock(bg) }()
				gates[0].Wait(e)
				end(m, read)
				<-begun
				for _, g := range gates {
					g.Release() // the copies arrive now
				}
				got := e.Soon(name+": the lock is free", e.Later(e.RW(e.Manager())))
				e.srv.RequireTTLs(e)
				if n := e.Holders(); len(n) != 1 {
					e.Errorf("%s, request %v: holders %v", name, request, n)
				}
				e.MustUnlock(got)
				e.Clean(m, Tombstones)
			}
		}
	},

	// The server stands still when the owner downgrades, for less than the lease: it goes
	// on. For longer: it is lost, in time, and nothing is left for longer than its TTL.
	"SilentServer": func(e *Env) {
		m := e.Manager()
		l := e.RW(m)
		write, read := e.bothSides(l)
		e.srv.Pause()
		err := write.Unlock(bg)
		e.WantErr(err, holdfast.ErrUnavailable)
		e.srv.Resume()
		e.Eventually("downgraded", func() bool { return e.srv.Admin().HGet(bg, e.Key, "mode").Val() == "read" })
		if err := read.Err(); err != nil {
			e.Fatalf("the read right is gone: %v", err)
		}
		in := e.Soon("a reader", e.Later(e.RW(e.Manager()).RLocker()))
		e.MustUnlock(in)
		e.MustUnlock(read)

		write, read = e.bothSides(l)
		e.srv.Pause()
		_ = write.Unlock(bg)
		e.WantLost(read, holdfast.LostDeadline)
		e.srv.Resume()
		e.MustUnlock(e.Soon("the next writer", e.Later(e.RW(e.Manager()))))
		e.srv.RequireTTLs(e)
		e.WantErr(read.Unlock(bg), holdfast.ErrLeaseLost)
		e.Clean(m, Tombstones)
	},

	// Somebody deletes the lock at that moment.
	"OfADeletedLock": func(e *Env) {
		m := e.Manager()
		write, read := e.bothSides(e.RW(m))
		e.srv.Admin().Del(bg, e.Key)
		e.WantErr(write.Unlock(bg), holdfast.ErrLeaseLost)
		e.WantLost(read, holdfast.LostDeleted)
		e.WantErr(read.Unlock(bg), holdfast.ErrLeaseLost)
		e.Clean(m, Tombstones)
	},

	// A renewal of the write side that Redis executes behind the downgrade finds no
	// writer. That is no loss.
	"OvertakesARenewal": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m)
		write, read := e.bothSides(l)
		renewal := func(cmd []string) bool {
			return script(cmd) && len(cmd) == 7 && cmd[2] == "1" && cmd[3] == e.Key && strings.HasSuffix(cmd[6], ":write")
		}
		gate := p.HoldRequest(renewal)
		gate.Wait(e)
		done := make(chan error, 1)
		go func() { done <- write.Unlock(bg) }()
		e.Eventually("downgraded", func() bool { return e.srv.Admin().HGet(bg, e.Key, "mode").Val() == "read" })
		mon := e.srv.Monitor(e)
		gate.Release()
		mon.Wait(e, `:write"`, patience)
		if err := <-done; err != nil {
			e.Errorf("Unlock: %v", err)
		}
		n := m.Stats().Renewals
		e.Eventually("the read right is renewed", func() bool { return m.Stats().Renewals > n+1 || read.Err() != nil })
		if err := read.Err(); err != nil {
			e.Errorf("a false loss: %v", err)
		}
		_ = read.Unlock(bg)
		e.Clean(m, Tombstones)
	},

	// An ACL that forbids a step of it: the lock stays what it was, with a TTL.
	"DeniedCommands": func(e *Env) {
		admin := e.Server().Admin()
		for _, acl := range []string{"-pexpire", "-set", "-publish"} {
			if err := admin.Do(bg, "ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "&*", "+@all").Err(); err != nil {
				e.Fatal(err)
			}
			opt := e.srv.Options()
			opt.Username, opt.Password = "limited", "secret"
			m := e.ManagerOn(e.client(opt))
			l := e.RW(m)
			write, read := e.bothSides(l)
			admin.PExpire(bg, e.Key, lease/2) // so that it is to be prolonged
			admin.Do(bg, "ACL", "SETUSER", "limited", acl)
			err := write.Unlock(bg)
			if acl == "-publish" && err != nil || acl != "-publish" && err == nil {
				e.Errorf("%s: %v", acl, err)
			}
			e.srv.RequireTTLs(e)
			if n := e.Holders(); len(n) != 1 {
				e.Errorf("%s: holders %v", acl, n)
			}
			_ = read.Unlock(bg)
			e.Eventually("free", func() bool { return e.srv.Admin().Exists(bg, e.Key).Val() == 0 })
			admin.Do(bg, "ACL", "SETUSER", "limited", "+@all")
			e.Clean(m, Tombstones)
		}
	},

	// Cancelling the wait for a lock that is being downgraded leaves nothing.
	"WithWaitersThatLeave": func(e *Env) {
		a, b := e.Manager(), e.Manager()
		l := e.RW(a)
		for i := range 50 {
			write, read := e.bothSides(l)
			ctx, cancel := context.WithCancel(bg)
			waiting := []<-chan holdfast.Result{e.RW(b).RLockAsync(ctx), l.RLockAsync(ctx), e.RW(b).LockAsync(ctx)}
			if i%2 == 0 {
				e.Queued(1)
			}
			go cancel()
			e.MustUnlock(write)
			for _, w := range waiting {
				if r := <-w; r.Err == nil {
					e.MustUnlock(r.Lease)
				}
			}
			e.MustUnlock(read)
		}
		e.Clean(a, Tombstones)
		e.Clean(b, Tombstones)
		if keys := slices.DeleteFunc(e.srv.Keys(), func(k string) bool { return strings.HasPrefix(k, Tombstones) }); len(keys) > 0 {
			e.Errorf("keys %q", keys)
		}
	},
}

package locktest

import (
	"errors"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// rwDowngradeFaultScenarios are about downgrades that are not answered, refused, or meet something else.
var rwDowngradeFaultScenarios = map[string]func(*Env){
	// The reply is lost, or the request: it is repeated, and nothing else happens.
	"DowngradesSurviveLostMessages": func(e *Env) {
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
				e.Renews(m, 1)
				if !read.Valid() {
					e.Errorf("the read right is gone: %v", read.Err())
				}
				e.MustUnlock(read)
			}
		}
		e.Clean(m, Tombstones)
	},

	// H2: the owner leaves, closes or loses the lock while it is unknown whether it was
	// downgraded: the request is on its way or its reply is.
	"EndsWhileUnanswered": func(e *Env) {
		e.Server()
		for name, end := range map[string]func(m *holdfast.Manager, read *holdfast.Lease){
			"unlocked": func(_ *holdfast.Manager, read *holdfast.Lease) { e.MustUnlock(read) },
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
				hold := p.HoldReply
				if request {
					hold = p.HoldRequest
				}
				gate := hold(downgradeOf(e.Key))
				begun := redistest.Begin(func() error { return write.Unlock(bg) })
				gate.Wait(e)
				end(m, read)
				if err := <-begun; name == "unlocked" && err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
					e.Errorf("request %v: %v", request, err)
				}
				gate.Release() // the copies arrive now
				got := e.Soon(name+": the lock is free", e.Locking(e.RW(e.Manager())))
				e.srv.RequireTTLs(e)
				if n := e.Holders(); len(n) != 1 {
					e.Errorf("%s, request %v: holders %v", name, request, n)
				}
				e.MustUnlock(got)
				e.Clean(m, Tombstones)
			}
		}
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
		gate := p.HoldFirstRequest(renewal)
		gate.Wait(e)
		done := redistest.Begin(func() error { return write.Unlock(bg) })
		e.Eventually("downgraded", func() bool { return e.srv.Admin().HGet(bg, e.Key, "mode").Val() == "read" })
		mon := e.srv.Monitor(e)
		gate.Release()
		mon.Wait(e, `:write"`, patience)
		if err := <-done; err != nil {
			e.Errorf("Unlock: %v", err)
		}
		n := m.Stats().Renewals
		e.Eventually("the read right is renewed", func() bool { return m.Stats().Renewals > n+1 || read.Err() != nil })
		redistest.Check(e, read.Err())
		_ = read.Unlock(bg)
		e.Clean(m, Tombstones)
	},

	// An ACL that forbids a step of it: the lock stays what it was, with a TTL.
	"DeniedCommands": func(e *Env) {
		for _, acl := range []string{"-pexpire", "-set", "-publish"} {
			client, allow := e.limited()
			m := e.ManagerOn(client)
			l := e.RW(m)
			write, read := e.bothSides(l)
			e.srv.Admin().PExpire(bg, e.Key, lease/2) // so that it is to be prolonged
			allow(acl)
			err := write.Unlock(bg)
			if acl == "-publish" && err != nil || acl != "-publish" && err == nil {
				e.Errorf("%s: %v", acl, err)
			}
			e.srv.RequireTTLs(e)
			if n := e.Holders(); len(n) != 1 {
				e.Errorf("%s: holders %v", acl, n)
			}
			if acl != "-publish" {
				e.Busy(e.RW(e.Manager()).TryRLock)
			}
			_ = read.Unlock(bg)
			e.Eventually("free", func() bool { return e.srv.Admin().Exists(bg, e.Key).Val() == 0 })
			allow("+@all")
			e.Clean(m, Tombstones)
		}
	},
}

package locktest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// hostScenarios are about the machines: a processor that is busy, a disk that is full,
// a clock that is wrong, a network that comes back.
var hostScenarios = map[string]func(*Env){
	// AC-36, F17: one thread, and the section never gives it up.
	"BusyProcessorLosesNothing": func(e *Env) {
		p := redistest.StartProcess(e, SpinnerRole, e.kind.Name, e.Server().Addr(), e.srv.Password(), e.Key, "3s")
		p.Expect(e, "spun, valid true, unlock <nil>")
		e.srv.RequireNoKeys(e, Tombstones)
	},

	// F1, S11: a process that stood still looks at the clock before it refuses a lock for a
	// lease of its own: that has ended, though no timer has had the time to say so.
	"ResumedProcessDoesNotRefuseForALeaseThatIsOver": func(e *Env) {
		for range 3 {
			const ttl = 3 * time.Second // a busy machine stops the process before it ends
			p := redistest.StartProcess(e, RefuserRole, e.kind.Name, e.Server().Addr(), e.srv.Password(), e.Key, ttl.String())
			p.Expect(e, "held")
			held := time.Now()
			p.Pause()
			e.Eventually("the lease is over in Redis, as the process knows", func() bool {
				return e.srv.Admin().Exists(bg, e.Key).Val() == 0 && time.Since(held) > ttl
			})
			p.Resume()
			p.Expect(e, "granted")
			p.Kill()
			e.srv.Admin().Del(bg, e.Key)
		}
	},

	// AC-52: waiting costs neither processor nor commands.
	"WaitingIsIdle": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		const waiters, wait = 20, 3 * time.Second
		long, brief := e.StartWaiter(lease, 5*time.Second), e.StartWaiter(lease, 5*time.Second)
		for i := range waiters {
			long.Send(fmt.Sprint("take ", i))
		}
		e.Listening(1)
		if e.kind.Places {
			e.Queued(waiters)
		}
		before := e.srv.CommandCalls("eval", "evalsha", "publish", "subscribe")
		time.Sleep(wait) // nothing changes, and little may happen
		commands := e.srv.CommandCalls("eval", "evalsha", "publish", "subscribe") - before
		for i := range waiters { // the same in a process that does not wait long: what remains is the price of the wait
			brief.Send(fmt.Sprint("take ", i))
		}
		e.Listening(2)
		if e.kind.Places {
			e.Queued(2 * waiters)
		}
		e.MustUnlock(held)
		for range waiters {
			long.Expect(e, "took ")
			brief.Expect(e, "took ")
		}
		for _, p := range []*redistest.Process{long, brief} {
			redistest.Check(e, p.Wait())
		}
		used := max(0, long.CPU()-brief.CPU())
		e.Logf("%d waiters: %v of processor time in %v, %d commands", waiters, used, wait, commands)
		e.Attr("H7:commands-of-20-waiters-in-3s", strconv.FormatInt(commands, 10))
		if used > wait/6 { // of a loop it would be all of it
			e.Errorf("%v of processor time in %v", used, wait)
		}
		if most := int64(waiters*3 + 100); commands > most {
			e.Errorf("%d commands, want at most %d", commands, most)
		}
	},

	// AC-51: a caller whose time is shorter than the first answer.
	"LeavesBeforeTheFirstAnswer": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m, p := e.Via()
		_, _ = e.Lock(m).TryLock(bg) // connected, and the script is known
		gate := p.HoldReply(acquireOf(e.Key))
		ctx, cancel := context.WithTimeout(bg, 60*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := e.Lock(m).Lock(ctx)
		d := time.Since(start)
		redistest.WantMost(e, d, e.bound(60*time.Millisecond+prompt), "returned after %v")
		e.WantErr(err, context.DeadlineExceeded)
		gate.Wait(e) // Redis has put it into the queue
		gate.Release()
		e.Eventually("nothing known of the lock", func() bool { return m.Stats().Locks == 0 })
		e.Eventually("no place in a queue", func() bool {
			return e.srv.Admin().Exists(bg, e.queueKeys()...).Val() == 0
		})
		e.MustUnlock(held)
		e.Clean(m)
	},

	// AC-61, F16: nothing that a client sends is a time of day, so that its clock may show
	// any: the places in a queue are kept by the server's.
	"SendsNoTimeOfDay": func(e *Env) {
		holder, hp := e.Via()
		m, p := e.Via(holdfast.WithFairPatience(400 * time.Millisecond))
		hp.Record()
		p.Record()
		held := e.MustLock(e.Lock(holder))
		got := e.Locking(e.Lock(m))
		e.Listening(1)
		e.Renews(holder, 2)
		e.Passes(held, "the waiter", got)
		number := regexp.MustCompile(`\d+`)
		checked := 0
		for _, cmd := range append(hp.Commands(), p.Commands()...) {
			if !script(cmd) {
				continue
			}
			for _, arg := range cmd[3:] {
				if strings.HasPrefix(arg, "hf-") || strings.Contains(arg, e.Key) {
					continue
				}
				for _, digits := range number.FindAllString(arg, -1) {
					checked++
					if isTimeOfDay(digits) {
						e.Errorf("%q is a time of day, in %q", digits, cmd[3:])
					}
				}
			}
		}
		if checked < 10 {
			e.Errorf("only %d numbers were sent", checked)
		}
	},

	// AC-21: an Unlock that failed keeps no later lease of the manager from being renewed.
	"RenewsAfterAFailedUnlock": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m))
		p.BlackHole(true)
		e.WantErr(l.Unlock(bg), holdfast.ErrUnavailable)
		p.BlackHole(false)
		p.Cut()
		again := e.MustLock(e.Lock(m))
		e.Renews(m, 6)
		if !again.Valid() || e.PTTL() <= 0 {
			e.Errorf("valid %v, TTL %v", again.Valid(), e.PTTL())
		}
		e.MustUnlock(again)
		e.Clean(m)
	},

	// AC-25: the disk is full. Redis refuses every write, of releases as well: an error,
	// and the TTL is the bound.
	"FullDiskIsAnErrorAndTheTTLBounds": func(e *Env) {
		const ttl = time.Minute
		m := e.Manager(holdfast.WithLease(ttl))
		admin := e.Server().Admin()
		l := e.MustLock(e.Lock(m))
		config := func(key, value string) {
			redistest.Must(e, admin.ConfigSet(bg, key, value).Err())
		}
		// A directory where the dump is to go: saving fails for every user.
		dir := admin.ConfigGet(bg, "dir").Val()["dir"]
		redistest.Must(e, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700))
		config("save", "3600 1000000")
		admin.BgSave(bg)
		e.Eventually("saving has failed", func() bool {
			return strings.Contains(admin.Info(bg, "persistence").Val(), "rdb_last_bgsave_status:err")
		})
		_, err := e.kind.Lock(m, e.Key+":other").TryLock(bg)
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantNotErr(err, holdfast.ErrNotAcquired)
		if err != nil && !strings.Contains(err.Error(), "MISCONF") {
			e.Errorf("%v does not say MISCONF", err)
		}
		e.WantErr(l.Unlock(bg), holdfast.ErrUnavailable)
		if left := e.PTTL(); left <= 0 || left > ttl {
			e.Errorf("TTL %v", left)
		}
		config("stop-writes-on-bgsave-error", "no")
		e.Eventually("released in the background", func() bool { return admin.Exists(bg, e.Key).Val() == 0 })
		e.Clean(m)
	},
}

// isTimeOfDay reports whether digits are a Unix time of about now, in any unit.
func isTimeOfDay(digits string) bool {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return false
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		if d := n - time.Now().UnixNano()/int64(unit); -int64(24*time.Hour/unit) < d && d < int64(24*time.Hour/unit) {
			return true
		}
	}
	return false
}

// queueKeys are the two keys of the lock's queue.
func (e *Env) queueKeys() []string {
	if e.kind.Permits {
		return []string{"holdfast_permit_queue:{" + e.Key + "}", "holdfast_permit_timeout:{" + e.Key + "}"}
	}
	if e.kind.Write {
		return []string{"holdfast_rw_queue:{" + e.Key + "}", "holdfast_rw_timeout:{" + e.Key + "}"}
	}
	return []string{"redisson_lock_queue:{" + e.Key + "}", "redisson_lock_timeout:{" + e.Key + "}"}
}

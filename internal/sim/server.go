package sim

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// server is one Redis. Its fields are guarded by World.mu.
type server struct {
	w        *World
	n        int
	addr     string
	redis    *vredis.Server
	down     int            // reasons for which it does not run
	empty    bool           // it has no data when it runs again
	frozen   int            // reasons for which nothing is executed
	acking   int            // replicas that acknowledge
	lacking  time.Duration  // when that changed
	refusals map[string]int // faults under which it refuses requests
	trouble  time.Duration  // until then something can be wrong that has to do with it
	units    []*unit        // the locks on it that judges look at
	back     atomic.Int64   // how far its clock has been set back, nanoseconds; its Redis reads it without the mutex
}

func newServer(w *World, n int) *server {
	s := &server{w: w, n: n, addr: "127.0.0.1:" + string(rune('1'+n)) + "000", refusals: map[string]int{}}
	began := time.Now()
	drift := w.plan.Drift * float64(1-2*(n%2))
	s.redis = vredis.New(vredis.Options{Addr: s.addr, Now: func() time.Time {
		passed := time.Since(began)
		return began.Add(passed + time.Duration(float64(passed)*drift) + time.Duration(n)*time.Minute - time.Duration(s.back.Load()))
	}})
	if w.plan.Options.Replicas > 0 {
		s.ackedLocked(2)
	}
	return s
}

// clock is the server's time, in its microseconds.
func (s *server) clock() int64 {
	t := s.redis.Do("time").([]any)
	return number(t[0])*1e6 + number(t[1])
}

// executeLocked executes one command that has come over c.
func (s *server) executeLocked(c *link, args []string, raw []byte) {
	w := s.w
	w.stats.Commands++
	name := strings.ToLower(args[0])
	calls := callsOf(args)
	if name == "evalsha" && s.redis.Do("script", "exists", args[1]).([]any)[0] != int64(1) {
		c.executeLocked(raw) // NOSCRIPT: it comes again, in full
		return
	}
	if len(calls) == 0 {
		c.executeLocked(raw)
		switch name {
		case "subscribe", "unsubscribe":
			s.subscribedLocked(c, name, args[1:])
		case "ping", "hello", "client", "script":
		default:
			w.noteLocked("%v    %s", c.p, strings.Join(args, " "))
		}
		return
	}
	script := calls[0].script
	loss := c.p.lossLocked(script)
	if loss != nil {
		if loss.then == "hole" {
			c.p.graveLocked(2 * time.Second)
		} else {
			c.p.troubleLocked(2 * time.Second)
		}
	}
	if loss != nil && loss.request {
		w.noteLocked("%v    %s of %q is lost on its way", c.p, script, calls[0].keys[0])
		c.afterwards = loss.then
		c.loseLocked()
		return
	}
	if c.p.prefix[s.n] == "" {
		c.p.prefix[s.n] = calls[0].prefixIn()
	}
	before := map[*unit]judge.State{}
	for _, call := range calls {
		for _, u := range s.touched(call.keys) {
			u.loadLocked()
			before[u] = u.State
			if strings.HasSuffix(script, "stay") {
				for _, id := range call.holders(call.args[1]) {
					u.Stayed[id] = true // judges look while it runs
				}
			}
		}
	}
	if loss != nil {
		w.noteLocked("%v    the reply to %s of %q is lost", c.p, script, calls[0].keys[0])
		c.swallow, c.afterwards = true, loss.then
	}
	if len(calls) > 1 {
		w.stats.Merged++
		w.noteLocked("%v    %d calls as one", c.p, len(calls))
	}
	for _, call := range calls {
		w.noteLocked("%v    %s %q", c.p, script, call.args)
		w.judge.beforeLocked(call, s.touched(call.keys))
		if call.listens() {
			c.relying++
			c.replied++
		}
	}
	s.looksLocked(c.p, calls)
	c.executeLocked(raw)
	for _, call := range calls {
		touched := s.touched(call.keys)
		for _, u := range touched {
			u.dirty = true
			if !strings.HasPrefix(script, "renew") { // which afterLocked looks at
				u.loadLocked()
				u.untold = u.untold && script != "proclaim"
				was := before[u]
				if !strings.HasSuffix(script, "attach") { // what stands for the lock changes its name
					w.judge.Order(&u.Lock, &was, script)
				}
			}
			if strings.HasSuffix(script, "_acquire") {
				c.acquiredLocked(u, call.args[0])
			}
		}
		w.judge.afterLocked(call, touched)
	}
	if strings.HasPrefix(script, "renew") {
		c.p.renewedLocked(s)
	}
	c.p.answeredLocked(script)
}

// touched returns the units that keys are the locks of.
func (s *server) touched(keys []string) (all []*unit) {
	for _, u := range s.units {
		for _, k := range keys {
			if k == u.Name {
				all = append(all, u)
				break
			}
		}
	}
	return all
}

// refusesLocked reports whether it may refuse what it is asked for.
func (s *server) refusesLocked() bool {
	for _, n := range s.refusals {
		if n > 0 {
			return true
		}
	}
	return false
}

// subscribedLocked follows who hears the inbox of its process.
func (s *server) subscribedLocked(c *link, command string, channels []string) {
	for _, channel := range channels {
		s.w.noteLocked("%v    %s %s", c.p, command, channel)
		for _, u := range s.units {
			if command == "unsubscribe" && strings.HasSuffix(channel, ":{"+u.Name+"}") {
				u.left[c.p] = s.w.now()
			}
		}
		if id, ok := strings.CutPrefix(channel, "holdfast_inbox:"); ok {
			if c.p.prefix[s.n] == "" {
				c.p.prefix[s.n] = "hf-" + id + ":"
			}
			if c.inbox = s.w.now(); command == "unsubscribe" {
				c.inbox = -1
				s.w.judge.leftLocked(c.p, s)
			}
		}
	}
}

// troubleLocked says that something is wrong with the server for d from now on, and with what goes on there for the
// time that it takes to recover.
func (s *server) troubleLocked(d time.Duration) {
	s.trouble = max(s.trouble, s.w.now()+d+recovery)
}

// ackedLocked says how many of the two replicas acknowledge.
func (s *server) ackedLocked(n int) {
	if s.acking != n {
		s.acking, s.lacking = n, s.w.now()
		s.redis.SetReplicas(2, n)
	}
}

// stopLocked ends it with its connections, until as many calls of startLocked.
func (s *server) stopLocked() {
	s.down++
	s.redis.Stop()
}

// startLocked begins again, without data if one of those calls says so.
func (s *server) startLocked(keep bool) {
	s.empty = s.empty || !keep
	if s.down--; s.down == 0 {
		s.redis.Start(!s.empty)
		s.empty = false
		s.w.judge.touchLocked(s)
	}
}

// freezeLocked has it execute nothing for d.
func (s *server) freezeLocked(d time.Duration) {
	s.frozen++
	s.w.afterLocked(d, func() {
		s.frozen--
		s.w.flushLocked()
	})
}

// number reads an integer of a reply.
func number(v any) int64 {
	if text, ok := v.(string); ok {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	n, _ := v.(int64)
	return n
}

// rememberLocked keeps what the server has promised before its data is lost: a vote of a member counts until then, since the member
// gives no other one meanwhile.
func (s *server) rememberLocked() {
	for _, u := range s.units {
		u.dirty = true
		u.loadLocked()
		u.Promised = append(u.Promised, u.State.Holders...)
	}
}

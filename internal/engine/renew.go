package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// renewBatch is how many locks one renewal request carries: a script of 100 keys
// blocks Redis for about a tenth of a millisecond and, with names of usual length,
// fits into the 16 KB that Redis reads from a connection at a time. Redisson's default
// is the same.
const renewBatch = 100

// renew is called by the scheduler with what is due: holds to be renewed, and claims
// that are to keep their places in the queues of fair locks.
func (eng *Engine) renew(due []*hold) {
	batches := make(map[batchKey][]*hold)
	for _, h := range due {
		if key, ok := h.batch(); ok {
			batches[key] = append(batches[key], h)
		}
	}
	var calls []*command.Call
	for key, holds := range batches {
		most := renewBatch
		if key.queue != nil {
			most = keepBatch
		} else if eng.cluster || eng.oneSlot.Load() {
			most = 1 // keys of one script must share a slot; the requests share a pipeline
		}
		for n := 0; len(holds) > 0; holds = holds[n:] {
			n = min(most, len(holds))
			if key.queue != nil {
				calls = append(calls, key.queue.newKeep(holds[:n:n]))
			} else {
				calls = append(calls, eng.newRenewal(key.ttl, holds[:n:n]...))
			}
		}
	}
	eng.Executor.Submit(time.Now(), calls...) // refused only once Close has ended all holds
}

// batchKey is what the holds of one request have in common.
type batchKey struct {
	script *command.Script
	ttl    time.Duration
	queue  *entry // claims: whose queue they stand in
}

// batch tells which request h goes into; false if it has ended since.
func (h *hold) batch() (batchKey, bool) {
	h.entry.mu.Lock()
	defer h.entry.mu.Unlock()
	now := time.Now()
	switch h.phase {
	case standing:
		return batchKey{queue: h.entry}, true
	case held:
		if !now.Before(h.deadline) {
			return batchKey{}, false // it would keep a lock that is lost
		}
		if h.entry.reads.converts(h) {
			return batchKey{}, false // which side Redis has is not known; the answer schedules it again
		}
		// What Extend has added makes it a request of its own.
		return batchKey{script: h.kind.renewScript(), ttl: max(h.cfg.TTL, h.rest(now))}, true
	}
	return batchKey{}, false
}

// renewRequest is one request for the renewal of several holds.
type renewRequest struct {
	engine *Engine
	ttl    time.Duration
	holds  []*hold
	call   command.Call
	again  atomic.Bool // another request asks for the same
}

func (eng *Engine) newRenewal(ttl time.Duration, holds ...*hold) *command.Call {
	r := &renewRequest{engine: eng, ttl: ttl, holds: holds}
	script, args := renewArgs(ttl, holds...)
	r.call = command.Call{
		Script:   script,
		Args:     args,
		Handler:  r,
		Patience: eng.askPatience(),
		Lapses:   true, // the scheduler asks again
	}
	return &r.call
}

// renewArgs builds the request that sets the TTL of holds to at least ttl. All are read
// holds, or none is.
func renewArgs(ttl time.Duration, holds ...*hold) (*command.Script, []any) {
	script := holds[0].kind.renewScript()
	list := make([]any, 0, 2+3*len(holds))
	for _, h := range holds {
		list = append(list, h.keys.Lock)
		if script == protocol.RenewRead {
			list = append(list, h.right())
		}
	}
	keys := len(list)
	list = append(list, validity.Milliseconds(ttl), holds[0].entry.engine.owners)
	for _, h := range holds {
		list = append(list, h.tail())
	}
	return script, script.Args(keys, list...)
}

// Replied is called by the executor with the end of the request.
func (r *renewRequest) Replied(_ *command.Call, reply command.Reply) {
	eng := r.engine
	if len(r.holds) > 1 && crossesSlots(reply.Err) {
		eng.oneSlot.Store(true)
		eng.renew(r.holds)
		return
	}
	if len(r.holds) > 1 && deniesKey(reply.Err) { // whose is not said: the others go on
		for _, h := range r.holds {
			eng.Executor.Submit(time.Now(), eng.newRenewal(r.ttl, h))
		}
		return
	}
	codes, ok := reply.Value.([]any)
	if reply.Outcome != command.Answered && r.again.Load() {
		return
	}
	if reply.Outcome != command.Answered || !ok || len(codes) != len(r.holds) {
		for _, h := range r.holds {
			eng.scheduler.Retry(&h.item)
		}
		cause := reply.Err
		if cause == nil {
			cause = Unexpected(reply.Value)
		}
		eng.renewalFailed(len(r.holds), cause, reply.Outcome == command.Answered)
		return
	}
	renewed, refused, cause := 0, 0, error(nil)
	for i, h := range r.holds {
		switch codes[i] {
		case int64(protocol.RenewDone):
			if r.ttl < h.cfg.TTL {
				continue // checkNow: it is there, and that is all
			}
			renewed++
			if eng.Telemetry.MeasuresSlack() {
				eng.Telemetry.Slack(h.slack(time.Now()))
			}
			h.entry.prolonged(h, reply.Sent, r.ttl)
		case int64(protocol.RenewGone):
			h.entry.notFound(h, lostDeleted)
		case int64(protocol.RenewStolen):
			h.entry.notFound(h, lostStolen)
		default:
			refused, cause = refused+1, saidInstead(codes[i])
			eng.scheduler.Retry(&h.item)
		}
	}
	eng.Stats.Renewals.Add(uint64(renewed))
	eng.Telemetry.Renewed("renewed", renewed)
	if refused > 0 {
		eng.renewalFailed(refused, cause, true)
	}
}

// deniesKey reports whether an ACL forbids one of a script's keys.
func deniesKey(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOPERM") && strings.Contains(err.Error(), " key")
}

// renewalFailed records that n holds were not renewed and will be sent again. Redis has refused, or has not
// answered.
func (eng *Engine) renewalFailed(n int, cause error, refused bool) {
	eng.Stats.RenewalFailures.Add(uint64(n))
	eng.Telemetry.Renewed("failed", n)
	if eng.life.Err() == nil {
		eng.Journal.RenewalFailed(n, cause, refused, eng.Executor.Suspicious())
	}
}

// saidInstead is the error in the answer of a renew script that is no code.
func saidInstead(answer any) error {
	return fmt.Errorf("redis refused to prolong the lease: %s", command.LegibleText(fmt.Sprint(answer)))
}

// Overdue does nothing: the scheduler hands the holds out again by itself.
func (r *renewRequest) Overdue(*command.Call) {}

// Stranded is called by the executor when the connection is dead: with a short lease the scheduler
// would come too late.
func (r *renewRequest) Stranded(*command.Call) {
	live := slices.DeleteFunc(slices.Clone(r.holds), func(h *hold) bool { _, ok := h.batch(); return !ok })
	if len(live) > 0 && r.engine.Executor.Submit(time.Now(), r.engine.newRenewal(r.ttl, live...)) {
		r.again.Store(true)
	}
}

// expire is called by the scheduler when a deadline has passed.
func (eng *Engine) expire(h *hold) {
	e := h.entry
	m := e.moment()
	e.mu.Lock()
	switch {
	case h.phase == over:
	case h.phase == owed:
		if h.prolongable() && !eng.scheduler.Has(&h.item) { // else it has ended while this was about to be called
			e.settleOwedLocked(&m, h, h.leases)
		}
	case eng.scheduler.Has(&h.item):
		// It was the end of a place in a queue, and the lock has been granted since.
	case h.phase == standing:
		// Redis has been silent for long and the place may be lost, not the claim.
		m.schedule(plan{h, planRenew, m.now(), eng.patience, eng.patience})
	default:
		e.loseLocked(&m, h, lostDeadline)
		e.stepLocked(&m)
	}
	e.unlock(&m)
}

// slack is which part of the lease is left at now.
func (h *hold) slack(now time.Time) float64 {
	h.entry.mu.Lock()
	defer h.entry.mu.Unlock()
	ttl := h.cfg.TTL
	if h.short && h.renewed == 0 {
		ttl = h.cfg.claim
	}
	window := ttl - validity.Margin(ttl)
	return min(max(0, h.deadline.Sub(now).Seconds()/window.Seconds()), 1)
}

// oweLocked is for h, which has ended early and may still be in Redis: Unlock releases it. Redis may execute a
// renewal or an Extend after the deadline, and its answer can be lost, which would keep the lock for another TTL.
// So h is released at the end of its known TTL, if Unlock has not been called by then.
func (e *entry) oweLocked(m *moment, h *hold) {
	h.phase = owed
	if h.prolongable() {
		m.schedule(plan{hold: h, what: planEnd, at: h.deadline.Add(validity.Margin(h.cfg.TTL))})
	}
}

// prolongable reports whether Redis may have given h another TTL than the first.
func (h *hold) prolongable() bool { return !h.cfg.Fixed || h.extended }

// settleOwedLocked releases a hold that ended early, and is owed. One of its leases names it.
func (e *entry) settleOwedLocked(m *moment, h *hold, l *Lease) {
	e.missed.add(missedLock)
	r := e.releaseLocked(m, h, nil)
	r.owed, r.lease = true, l
	e.stepLocked(m)
}

// prolonged records that a request sent at sent has set the TTL of h to at least ttl. Two of them may come in
// either order.
func (e *entry) prolonged(h *hold, sent time.Time, ttl time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.phase != held {
		return // what is in the schedule is its end, see oweLocked
	}
	if at := sent.Sub(e.engine.Epoch); at > h.renewed {
		h.renewed, h.roundTrip = at, uint32(min(time.Since(sent).Microseconds(), math.MaxUint32))
	}
	if deadline, ok := e.engine.scheduler.Confirm(&h.item, sent, ttl, h.cfg.TTL); ok && deadline.After(h.deadline) {
		h.deadline = deadline
	}
}

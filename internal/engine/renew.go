package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// renewBatch is how many locks one renewal request carries: a script of 100 keys
// blocks Redis for about a tenth of a millisecond and, with names of usual length,
// fits into the 16 KB that Redis reads from a connection at a time. Redisson's default
// is the same. With long names it is fewer: measured with 1 KiB, 100 took 2.7 times as long.
const renewBatch = 100

// renew is called by the scheduler with what is due: holds to be renewed, and claims
// that are to keep their places in the queues of fair locks.
func (eng *Engine) renew(due []*lock.Hold) {
	batches := make(map[batchKey][]*lock.Hold)
	longest := 0 // of the names
	for _, h := range due {
		e := entryOf(h.Lock)
		longest = max(longest, len(e.mapped()))
		if key, ok := e.batchOf(h); ok {
			batches[key] = append(batches[key], h)
		}
	}
	var calls []*command.Call
	for key, holds := range batches {
		most := 0
		switch {
		case key.queue != nil:
			most = lock.KeepBatch
		case eng.cluster || eng.oneSlot.Load():
			most = 1 // keys of one script must share a slot; the requests share a pipeline
		default:
			most = command.Together(renewBatch, longest)
		}
		for n := 0; len(holds) > 0; holds = holds[n:] {
			n = min(most, len(holds))
			if key.queue != nil {
				claims := holds[:n:n]
				key.queue.do(func(m *lock.Moment) { key.queue.lock.Keep(m, claims) })
			} else {
				calls = append(calls, eng.newRenewal(key.script, key.ttl, holds[:n:n]...))
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

// batchOf tells which request h goes into; false if it has ended since.
func (e *entry) batchOf(h *lock.Hold) (batchKey, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.IsStanding() {
		return batchKey{queue: e}, true
	}
	ttl, ok := h.Renewal(time.Now())
	return batchKey{script: protocol.RenewScript(h.Kind), ttl: ttl}, ok
}

// renewRequest is one request for the renewal of several holds.
type renewRequest struct {
	engine *Engine
	ttl    time.Duration
	holds  []*lock.Hold
	call   command.Call
	again  atomic.Bool // another request asks for the same
}

// newRenewal makes the request by a script that is for all of these holds.
func (eng *Engine) newRenewal(script *command.Script, ttl time.Duration, holds ...*lock.Hold) *command.Call {
	r := &renewRequest{engine: eng, ttl: ttl, holds: holds}
	r.call = command.Call{
		Script:   script,
		Args:     eng.Process.Renew(script, ttl, holds...),
		Handler:  r,
		Patience: eng.askPatience(),
		Lapses:   true, // the scheduler asks again
	}
	return &r.call
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
			eng.Executor.Submit(time.Now(), eng.newRenewal(r.call.Script, r.ttl, h))
		}
		return
	}
	codes, ok := reply.Value.([]any)
	if reply.Outcome != lock.Answered && r.again.Load() {
		return
	}
	if reply.Outcome != lock.Answered || !ok || len(codes) != len(r.holds) {
		for _, h := range r.holds {
			eng.scheduler.Change(&h.Item, renewal.Plan{What: renewal.Retry})
		}
		cause := reply.Err
		if cause == nil {
			cause = protocol.Unexpected(reply.Value)
		}
		eng.renewalFailed(len(r.holds), cause, reply.Outcome == lock.Answered)
		return
	}
	renewed, refused, cause := 0, 0, error(nil)
	for i, h := range r.holds {
		switch codes[i] {
		case int64(protocol.RenewDone):
			if r.ttl < h.Terms.TTL {
				continue // checkNow: it is there, and that is all
			}
			renewed++
			if eng.Telemetry.MeasuresSlack() {
				eng.Telemetry.Slack(slack(h))
			}
			entryOf(h.Lock).prolonged(h, reply.Sent, r.ttl)
		case int64(protocol.RenewGone):
			entryOf(h.Lock).notFound(h, lock.LostDeleted)
		case int64(protocol.RenewStolen):
			entryOf(h.Lock).notFound(h, lock.LostStolen)
		default:
			refused, cause = refused+1, saidInstead(codes[i])
			eng.scheduler.Change(&h.Item, renewal.Plan{What: renewal.Retry})
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

// Stranded is called by the executor when the connection is dead: the scheduler would come later, and the end of this request would
// count as a failure.
func (r *renewRequest) Stranded(*command.Call) {
	live := slices.DeleteFunc(slices.Clone(r.holds), func(h *lock.Hold) bool { _, ok := entryOf(h.Lock).batchOf(h); return !ok })
	if len(live) > 0 && r.engine.Executor.Submit(time.Now(), r.engine.newRenewal(r.call.Script, r.ttl, live...)) {
		r.again.Store(true)
	}
}

// slack is which part of the lease is left.
func slack(h *lock.Hold) float64 {
	e := entryOf(h.Lock)
	e.mu.Lock()
	defer e.mu.Unlock()
	return h.Slack(time.Now())
}

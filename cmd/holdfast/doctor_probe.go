package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const (
	probeTTL  = 10 * time.Second // of what the doctor writes
	probePing = 200
)

func randomName() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// measure finds out how long Redis takes to answer, and what time it has there.
func (d *doctor) measure(ctx context.Context) {
	took, err := pings(ctx, d.at.client, probePing)
	if err != nil {
		d.add(checkRoundTrip, failed, "", "a PING has failed: %s", plain(err))
		return
	}
	d.judgeRoundTrip(took)
	begin := time.Now()
	there, err := d.at.client.Time(ctx).Result()
	if err != nil {
		d.add(checkClock, note, "", "not known: %s", plain(err))
		return
	}
	d.judgeClock(there.Sub(begin.Add(time.Since(begin) / 2)))
}

// judgeRoundTrip takes sorted times.
func (d *doctor) judgeRoundTrip(took []time.Duration) {
	longest := took[len(took)-1]
	what := fmt.Sprintf("p50 %.2f ms, p99 %.2f ms, longest %.2f ms of %d", ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(longest), len(took))
	switch {
	case longest > d.lease/3:
		d.add(checkRoundTrip, failed, "LATENCY LATEST", "%s: more than a third of a lease of %v, so renewals are late", what, d.lease)
	case longest > d.lease/10:
		d.add(checkRoundTrip, warned, "LATENCY LATEST", "%s: more than a tenth of a lease of %v", what, d.lease)
	default:
		d.add(checkRoundTrip, good, "", "%s: fine for a lease of %v", what, d.lease)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (d *doctor) judgeClock(ahead time.Duration) {
	side := "ahead"
	if ahead < 0 {
		side = "behind"
	}
	if ahead.Abs() > 5*time.Second {
		d.add(checkClock, warned, "chronyc tracking", "the server is %v %s of this host: a clock that is set right by a step ends or prolongs leases", ahead.Abs().Round(time.Millisecond), side)
		return
	}
	if ahead.Abs() < time.Millisecond {
		d.add(checkClock, good, "", "less than 1 ms from this host's")
		return
	}
	d.add(checkClock, good, "", "the server is %v %s", ahead.Abs().Round(time.Millisecond), side)
}

// needed are the commands that Holdfast needs, in a form that does no harm to a key that only the doctor uses.
// PING, EVAL, EVALSHA, SUBSCRIBE and UNSUBSCRIBE are checked by using them.
var needed = [][]string{
	{"del", "K"}, {"pexpire", "K", "10000"}, {"exists", "K"}, {"get", "K"}, {"type", "K"}, {"pttl", "K"},
	{"hset", "K", "f", "1"}, {"hdel", "K", "f"}, {"hexists", "K", "f"}, {"hget", "K", "f"}, {"hgetall", "K"}, {"hkeys", "K"},
	{"hlen", "K"}, {"hscan", "K", "0"}, {"incrby", "K", "1"}, {"set", "K", "1", "px", "10000"}, {"lindex", "K", "0"}, {"llen", "K"}, {"lpop", "K"},
	{"lpush", "K", "v"}, {"rpush", "K", "v"}, {"lrange", "K", "0", "0"}, {"lrem", "K", "1", "v"}, {"lset", "K", "0", "v"},
	{"zadd", "K", "1", "m"}, {"zcount", "K", "0", "1"}, {"zrange", "K", "0", "1"}, {"zrem", "K", "m"}, {"zremrangebyscore", "K", "0", "1"}, {"zscore", "K", "m"},
	{"time"}, {"publish", "C", "doctor"}, {"pubsub", "numsub", "C"}, {"cluster", "info"},
}

// tryAll calls each command on KEYS[1], which it leaves deleted, and returns the errors beside the commands' numbers.
// Without the rights to delete a key or to give it a TTL, it calls only these two.
const tryAll = `local errs, n = {}, 0
for words in string.gmatch(ARGV[2], '[^\n]+') do
	n = n + 1
	local call = {}
	for w in string.gmatch(words, '[^ ]+') do
		if w == 'K' then w = KEYS[1] elseif w == 'C' then w = ARGV[1] end
		call[#call + 1] = w
	end
	local r = redis.pcall(unpack(call))
	if type(r) == 'table' and r.err then errs[#errs + 1] = n; errs[#errs + 1] = r.err end
	if n == 2 and #errs > 0 then return errs end
end
redis.pcall('del', KEYS[1])
return errs`

// denied reports whether Redis has refused err's command to the user.
func denied(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	for _, said := range []string{"NOPERM", "ACL failure", "can't run this command", "can't access"} {
		if strings.Contains(text, said) {
			return true
		}
	}
	return false
}

// plain is the text of an error, for a terminal.
func plain(err error) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, withoutPrefix(err))
}

// unknown reports whether the server does not have err's command.
func unknown(err error) bool { return strings.Contains(strings.ToLower(err.Error()), "unknown") }

// lockKeys yields one key of each form that a lock has, and the pattern of all with that form.
func (d *doctor) lockKeys() iter.Seq2[string, string] {
	name := strings.TrimPrefix(d.probe, d.prefix)
	return func(yield func(key, pattern string) bool) {
		for _, k := range append(wire.InspectKeys(d.probe), wire.NewKeys(d.probe).Tombstones) {
			key := fmt.Sprint(k)
			if !yield(key, strings.Replace(key, name, "*", 1)) {
				return
			}
		}
		right := wire.ReadRight(d.probe, "hf-doctor:1")
		before, _, _ := strings.Cut(right, name)
		yield(right, before+"*")
	}
}

// grant is what to type so that the user may use keys of these patterns. Without a prefix that would be all keys.
func (d *doctor) grant(patterns []string) string {
	if d.prefix == "" || strings.ContainsAny(d.prefix, " *?[]") {
		return "ACL GETUSER " + d.user
	}
	rule := "ACL SETUSER " + d.user
	for _, p := range slices.Compact(patterns) {
		rule += " ~" + p
	}
	return printable(rule)
}

// checkAccess finds out whether the user may use the keys of a lock, and the commands.
func (d *doctor) checkAccess(ctx context.Context) {
	var refused []string
	for key, pattern := range d.lockKeys() {
		err := d.at.client.Eval(ctx, "return 1", []string{key}).Err()
		switch {
		case err == nil:
		case denied(err) && strings.Contains(err.Error(), "access"): // or it may not run EVAL
			refused = append(refused, pattern)
		default:
			d.add(checkKeys, note, "", "not checked: EVAL fails")
			d.judgeCommands([]refusal{{"eval", err}})
			return
		}
	}
	if len(refused) > 0 {
		d.add(checkKeys, failed, d.grant(refused), "the user may not use keys such as %s; if your locks have a prefix, give it with --prefix", printable(strings.Join(slices.Compact(refused), ", ")))
		d.add(checkCommands, note, "", "not checked: without the keys, the commands cannot be tried")
		return
	}
	d.add(checkKeys, good, "", "all keys of a lock")
	var refusals []refusal
	if err := d.at.client.EvalSha(ctx, strings.Repeat("0", 40), []string{d.probe}).Err(); denied(err) || unknown(err) { // or NOSCRIPT
		refusals = append(refusals, refusal{"evalsha", err})
	}
	var lines []string
	for _, words := range needed {
		lines = append(lines, strings.Join(words, " "))
	}
	errs, err := d.at.client.Eval(ctx, tryAll, []string{d.probe}, "holdfast_inbox:doctor", strings.Join(lines, "\n")).Slice()
	if err != nil {
		refusals = append(refusals, refusal{"eval", err})
	}
	for i := 0; i+1 < len(errs); i += 2 {
		if n, ok := errs[i].(int64); ok && n > 0 && int(n) <= len(needed) {
			command, err := needed[n-1][0], errors.New(fmt.Sprint(errs[i+1]))
			if denied(err) || unknown(err) && command != "cluster" { // a server that is no cluster says so
				refusals = append(refusals, refusal{command, err})
			}
		}
	}
	d.judgeCommands(refusals)
}

// refusal is what Redis said to a command.
type refusal struct {
	command string
	err     error
}

func (d *doctor) judgeCommands(refusals []refusal) {
	var missing, renamed []string
	for _, r := range refusals {
		switch {
		case denied(r.err):
			missing = append(missing, r.command)
		case unknown(r.err):
			renamed = append(renamed, r.command)
		default:
			d.add(checkCommands, failed, "", "%s fails: %s", strings.ToUpper(r.command), plain(r.err))
			return
		}
	}
	switch {
	case len(missing) > 0:
		d.add(checkCommands, failed, "ACL SETUSER "+d.user+" +"+strings.Join(missing, " +"), "the user lacks rights that Holdfast needs: %s", strings.Join(missing, ", "))
	case len(renamed) > 0:
		d.add(checkCommands, failed, "", "the server does not know %s: rename-command, or a proxy, hides commands that scripts call by name", strings.Join(renamed, ", "))
	default:
		d.add(checkCommands, good, "", "all commands")
	}
}

// tryPermit takes and releases a permit, with a manager of its own. The claim of a call that fails leaves a tombstone, so all keys are
// deleted when the manager has been closed and nothing is under way.
func (d *doctor) tryPermit(ctx context.Context, name string, lease holdfast.LockOption) error {
	m, err := holdfast.New(d.at.client, holdfast.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	held, err := m.Semaphore(name, 1, lease, holdfast.WithIdleTTL(probeTTL)).TryAcquire(ctx, 1)
	if err == nil {
		err = held.Unlock(ctx)
	}
	_ = m.Close(ctx)
	var keys []string
	for _, key := range append(wire.SemaphoreKeys(name), wire.NewKeys(name).Tombstones) {
		keys = append(keys, fmt.Sprint(key))
	}
	_ = d.at.client.Del(ctx, keys...).Err() // or they expire
	return err
}

// checkLocking takes and releases a lock of each kind, and a permit.
func (d *doctor) checkLocking(ctx context.Context) {
	name := strings.TrimPrefix(d.probe, d.prefix) // the manager puts the prefix before it
	lease := holdfast.WithLease(probeTTL)
	begin := time.Now()
	for _, l := range []struct {
		kind string
		lock holdfast.Locker
	}{
		{"mutex", d.at.locks.Mutex(name, lease)}, {"fair lock", d.at.locks.FairMutex(name+":fair", lease)},
		{"write lock", d.at.locks.RWMutex(name+":rw", lease)}, {"read lock", d.at.locks.RWMutex(name+":rw", lease).RLocker()},
	} {
		held, err := l.lock.TryLock(ctx)
		if err == nil {
			err = held.Unlock(ctx)
		}
		if err != nil {
			d.add(checkLocking, failed, "", "a %s could not be taken and released: %s", l.kind, plain(err))
			return
		}
	}
	if err := d.tryPermit(ctx, d.probe+":permit", lease); err != nil {
		d.add(checkLocking, failed, "", "a permit of a semaphore could not be taken and released: %s", plain(err))
		return
	}
	d.add(checkLocking, good, "", "a lock of each kind and a permit were taken and released, in %.1f ms", ms(time.Since(begin)))
}

// checkLocks looks for locks with something wrong.
func (d *doctor) checkLocks(ctx context.Context) {
	looks, err := d.all.run(ctx, []*site{d.at})
	switch {
	case denied(err):
		d.add(checkLocks, note, "", "not looked at: the user may not use SCAN")
		return
	case err != nil:
		d.add(checkLocks, failed, "", "the locks cannot be listed: %s", plain(err))
		return
	}
	if d.all.part {
		d.add(checkLocks, note, "", "only about %d keys were looked at, in %v: --for allows more", d.all.looked, d.all.most)
	}
	var forever, stale []string
	for _, l := range looks {
		switch l.State {
		case stateNoTTL:
			forever = append(forever, printable(l.Name))
		case stateStale:
			stale = append(stale, printable(l.Name))
		}
	}
	switch {
	case len(forever) > 0:
		slices.Sort(forever)
		d.add(checkLocks, warned, "holdfast inspect "+forever[0], "%d of %d locks have no TTL, so nothing frees them", len(forever), len(looks))
	case len(stale) > 0:
		slices.Sort(stale)
		d.add(checkLocks, warned, "holdfast inspect "+stale[0], "%d of %d locks have a dead waiter in their queue", len(stale), len(looks))
	default:
		d.add(checkLocks, good, "", "%d are held, all have a TTL", len(looks))
	}
	d.noteRedisson(ctx, looks)
}

package chaos

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// seededBug is a bug and the rule that must show it.
type seededBug struct {
	Bug
	finds []string // any of these rules
}

// bugs are what the suite must find, each in one short run. They are planted on the
// wire, where a rewritten script does what a wrong one would do, or in the client
// process, between the workers and the library.
var bugs = []seededBug{
	{Bug{Name: "acquire does not look at the holder", Wire: lua("acquire", `
		if not begun then begun = true; server.call('del', KEYS[1]) end`)},
		[]string{"overlap"}},
	{Bug{Name: "release without owner check", Wire: lua("release", `
		if cmd == 'hexists' then return 1 end
		if cmd == 'hdel' then server.call('del', KEYS[1]) return 1 end`)},
		[]string{"hold deleted", "overlap"}},
	{Bug{Name: "TTL omitted", Wire: lua("", `
		if cmd == 'pexpire' then return 1 end`)},
		[]string{"ttl"}},
	{Bug{Name: "grant trusted beyond its age", Wire: lua("acquire", `
		if cmd == 'pexpire' and key == KEYS[1] then return call(cmd, key, 400) end`), Overstay: 10},
		[]string{"overlap", "claim without hold"}},
	{Bug{Name: "deadline from the reply's time", Seam: "deadline from the reply", Prepare: slowLink, Overstay: 25},
		[]string{"overlap", "claim without hold"}},
	{Bug{Name: "deadline ignored", Seam: "deadline ignored"},
		[]string{"overlap", "claim without hold"}},
	{Bug{Name: "one owner id for all", Wire: oneOwner},
		[]string{"overlap"}},
	{Bug{Name: "token not increased", Wire: lua("", `
		if string.find(cmd, 'incr', 1, true) and string.find(key, 'token', 1, true) then
			return tonumber(server.call('get', key)) or call(cmd, key, ...)
		end`)},
		[]string{"token"}},
	{Bug{Name: "token bumped on re-entry", Seam: "token bumped"},
		[]string{"token"}},
	{Bug{Name: "messages not sent", Wire: lua("", `
		if string.find(cmd, 'publish', 1, true) then return 1 end`)},
		[]string{"lost wake-up"}},
	{Bug{Name: "grants without message, and poll disabled", Seam: "poll disabled", Wire: lua("", `
		if string.find(cmd, 'publish', 1, true) then return 1 end`)},
		[]string{"lost wake-up"}},
	{Bug{Name: "grant to the dead that never expires", Prepare: killSome, Wire: lua("release", `
		if cmd == 'pexpire' and key == KEYS[1] then return call(cmd, key, 60000) end
		if cmd == 'pubsub' then return {(...), 1} end
		if cmd == 'publish' then call(cmd, key, ...) return 1 end`)},
		[]string{"forsaken hold"}},
	{Bug{Name: "one grant sent to two", Wire: lua("release", `
		local message = ...
		if cmd == 'publish' and string.sub(message, 1, 2) == 'g ' then
			local manager, number = string.match(server.call('lindex', KEYS[2], 1) or '', '^hf%-([%x%-]+):(%d+)')
			if manager then
				server.call('publish', 'holdfast_inbox:' .. manager, (string.gsub(message, '^g %d+', 'g ' .. number)))
			end
		end`)},
		[]string{"overlap"}},
	{Bug{Name: "grant that ends before it says", Wire: lua("release", `
		if cmd == 'pexpire' and key == KEYS[1] and call == server.pcall then return call(cmd, key, 2) end`)},
		[]string{"overlap", "claim without hold"}},
	{Bug{Name: "queue served from its end", Wire: lua("release", `
		if cmd == 'lindex' and tonumber((...)) == 0 then return call(cmd, key, -1) end
		if cmd == 'lpop' then return call('rpop', key) end`)},
		[]string{"order"}},
	{Bug{Name: "readers cut short by one that leaves", Wire: lua("rw_release", `
		if cmd == 'pexpire' and key == KEYS[1] and call == server.call then return call(cmd, key, 2) end`)},
		[]string{"overlap", "claim without hold"}},
	{Bug{Name: "downgrade that leaves nothing", Wire: lua("rw_downgrade", `
		if cmd == 'hdel' then return call('del', key) end`), Downgrade: 25},
		[]string{"overlap", "claim without hold"}},
	{Bug{Name: "one of several locks is not kept", Wire: lua("multi_acquire", `
		if cmd == 'pexpire' and key == KEYS[1] then server.call('hdel', key, ARGV[1] .. ARGV[2]) return 1 end`), Several: 40},
		[]string{"claim without hold", "overlap"}},
	{Bug{Name: "renewal prolongs nothing", Wire: lua("renew", `
		if cmd == 'pexpire' then return 1 end`)},
		[]string{"claim without hold", "overlap"}},
	{Bug{Name: "tokens of readers not increased", Wire: lua("rw_acquire", `
		if string.find(cmd, 'incr', 1, true) then
			return tonumber(server.call('get', key)) or call(cmd, key, ...)
		end`)},
		[]string{"token"}},
	{Bug{Name: "cancel without clean-up", Seam: "cancel forgets"},
		[]string{"forsaken hold", "locks", "lost wake-up"}},
	{Bug{Name: "Unlock forgets to release", Seam: "unlock forgets"},
		[]string{"forsaken hold", "locks"}},
	{Bug{Name: "the end of a lease is announced late", Seam: "done late", Overstay: 10},
		[]string{"told late"}},
	{Bug{Name: "Unlock of a lost lease is nil", Seam: "loss hidden", Overstay: 10},
		[]string{"impossible answers"}},
	{Bug{Name: "TryLock refuses without asking", Seam: "refusal invented"},
		[]string{"impossible answers"}},
	{Bug{Name: "renewal adds the owner again", Prepare: deleteSteady, Wire: lua("renew", `
		if cmd == 'hexists' and call(cmd, key, ...) == 0 then
			server.call('hset', key, ..., 1)
			server.call('pexpire', key, 1000)
			return 1
		end`)},
		[]string{"resurrection"}},
	{Bug{Name: "release leaves a key", Wire: lua("release", `
		if not begun then begun = true; server.call('set', KEYS[1] .. ':left', 1, 'px', 60000) end`)},
		[]string{"keys"}},
	{Bug{Name: "acquire leaves a goroutine", Seam: "goroutine left"},
		[]string{"goroutines"}},
	{Bug{Name: "renewals aborted by one bad key", Prepare: spoilDecoys, Wire: lua("renew", `
		call = server.call`)},
		[]string{"lost without cause"}},
	{Bug{Name: "no message that an idle lock is wanted", Wire: lua("", `
		if string.find(cmd, 'publish', 1, true) and string.sub((...), 1, 2) == 'w ' then return 1 end
		if cmd == 'llen' and string.find(key, 'queue', 1, true) then return 0 end`)},
		[]string{"lost wake-up"}},
}

// The suite is as good as the bugs it finds. Each is planted, and must be shown by the
// judge that is there for it, mostly in a short run.
func TestChaos_FindsSeededBugs(t *testing.T) {
	found := make([]string, len(bugs))
	t.Cleanup(func() {
		table := "| bug | judge: what it found | seconds into the run |\n|---|---|---|\n" + strings.Join(found, "\n")
		t.Logf("\n%s", table)
		if !t.Failed() {
			publish(t, "bugs", table)
		}
	})
	slots := make(chan struct{}, 5) // each run has several processes of its own
	for i, bug := range bugs {
		t.Run(strings.ReplaceAll(bug.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			cfg := Config{Duration: 4 * time.Second, Seed: uint64(i), Clients: 3, Workers: 2, Linger: 600 * time.Millisecond, Peaceful: true, Bug: &bug.Bug}
			r, v := bug.hunt(t, cfg)
			for again := 0; again < 4 && v == nil; again++ { // a busy machine, or no kill at the right moment
				cfg.Duration, cfg.Seed = 16*time.Second, cfg.Seed+uint64(len(bugs))
				r, v = bug.hunt(t, cfg)
			}
			if v == nil {
				t.Fatalf("not found:\n%v", r)
			}
			found[i] = fmt.Sprintf("| %s | %s: %s | %.1f |", bug.Name, v.Judge, v.Rule, time.Duration(v.At-r.History.Start).Seconds())
		})
	}
}

// hunt makes a run and returns the first violation that is the bug's.
func (b *seededBug) hunt(t *testing.T, cfg Config) (*Report, *Violation) {
	h, residue := Run(t, cfg)
	r := Judge(h, residue, patience/10) // a bug can make very many orders possible
	for i, v := range r.Violations {
		if slices.Contains(b.finds, v.Rule) {
			return r, &r.Violations[i]
		}
	}
	return r, nil
}

// Without a bug the same run is green: the judges do not cry wolf.
func TestChaos_QuietRunIsGreen(t *testing.T) {
	t.Parallel()
	h, residue := Run(t, Config{Duration: 4 * time.Second, Seed: 1, Clients: 3, Workers: 2, Peaceful: true})
	r := Judge(h, residue, patience)
	if len(r.Violations) > 0 || h.takenUp() == 0 {
		t.Errorf("%v", r)
	}
}

// lua plants code in front of every command of the scripts whose name contains part.
// The code sees the command in lower case, its key, and its other arguments as "...";
// it may return instead, or change call.
func lua(part, code string) func() redistest.Rewriter {
	return func() redistest.Rewriter {
		prologue := `local server, begun = redis, false
local redis = setmetatable({}, {__index = server})
local function planted(call, cmd, key, ...)
	cmd = string.lower(cmd)
	if key == nil then return call(cmd) end -- TIME
	` + code + `
	return call(cmd, key, ...)
end
redis.call = function(...) return planted(server.call, ...) end
redis.pcall = function(...) return planted(server.pcall, ...) end
`
		return func(cmd []string) []string {
			called, ok := library.of(cmd)
			if !ok || !strings.Contains(called.name, part) {
				return cmd
			}
			out := slices.Clone(cmd)
			out[0], out[1] = "EVAL", prologue+called.text
			return out
		}
	}
}

// oneOwner makes all processes and holds one owner.
func oneOwner() redistest.Rewriter {
	id := regexp.MustCompile(`hf-[0-9a-f-]{36}:\d+`)
	return func(cmd []string) []string {
		out := slices.Clone(cmd)
		for i := range out {
			out[i] = id.ReplaceAllString(out[i], "hf-00000000-0000-4000-8000-000000000000:1")
		}
		return out
	}
}

// slowLink gives all clients but one a slow way back, so that their replies are late.
func slowLink(r *run) {
	for _, c := range r.members[1:] {
		c.proxy.Delay(80*time.Millisecond, 20*time.Millisecond)
	}
}

func deleteSteady(r *run) {
	r.nemesis(0).commit(fault{name: "delete", do: func(n *nemesis) Fault {
		name := steadyName(n.members[0].ID)
		n.admin("del", name)
		return Fault{Proc: -1, Name: name}
	}})
}

// killSome kills two clients, one after the other, that were waiting for locks.
func killSome(r *run) {
	for i := range 2 {
		<-time.After(500 * time.Millisecond)
		r.nemesis(uint64(i)).commit(fault{name: "kill a client", do: func(n *nemesis) Fault {
			c := n.members[i]
			n.replace(c)
			return Fault{Proc: c.ID}
		}})
	}
}

// spoilDecoys does it again when the decoys are locked anew: a loss counts only where the
// machine does not stall.
func spoilDecoys(r *run) {
	for i := range 3 * len(r.members) {
		if i > 0 && i%len(r.members) == 0 {
			<-time.After(4 * time.Second)
		}
		i %= len(r.members)
		r.nemesis(0).commit(fault{name: "spoil", do: func(n *nemesis) Fault {
			name := decoyName(n.members[i].ID)
			n.admin("set", name, "spoilt", "px", 3000)
			return Fault{Proc: -1, Name: name}
		}})
	}
}

// seams are the bugs in the client process.
var seams = map[string]Seam{
	"deadline from the reply": {Deadline: func(_, granted time.Time, ttl time.Duration) time.Time {
		return granted.Add(ttl - 25*time.Millisecond)
	}},
	"deadline ignored": {Deadline: func(_, granted time.Time, ttl time.Duration) time.Time { return granted.Add(10 * ttl) }},
	"token bumped": {Token: func(token uint64, reentry bool) uint64 {
		if reentry && token != 0 {
			token++
		}
		return token
	}},
	"poll disabled":    {Options: []holdfast.Option{holdfast.WithPollInterval(time.Hour)}},
	"cancel forgets":   {Locker: func(l holdfast.Locker) holdfast.Locker { return forgetful{l} }},
	"unlock forgets":   {Unlock: func(*holdfast.Lease) error { return nil }},
	"refusal invented": {Locker: func(l holdfast.Locker) holdfast.Locker { return &lazy{Locker: l} }},
	"done late": {Done: func(l *holdfast.Lease) <-chan struct{} {
		late := make(chan struct{})
		context.AfterFunc(l.Context(context.Background()), func() { time.AfterFunc(400*time.Millisecond, func() { close(late) }) })
		return late
	}},
	"goroutine left": {Locker: func(l holdfast.Locker) holdfast.Locker { go func() { select {} }(); return l }},
	"loss hidden": {Unlock: func(l *holdfast.Lease) error {
		if err := l.Unlock(context.Background()); !errors.Is(err, holdfast.ErrLeaseLost) {
			return err
		}
		return nil
	}},
}

// forgetful returns when the context ends and leaves the request to itself.
type forgetful struct{ holdfast.Locker }

func (f forgetful) Lock(ctx context.Context) (*holdfast.Lease, error) {
	type result struct {
		lease *holdfast.Lease
		err   error
	}
	done := make(chan result, 1)
	go func() {
		lease, err := f.Locker.Lock(context.WithoutCancel(ctx))
		done <- result{lease, err}
	}()
	select {
	case r := <-done:
		return r.lease, r.err
	case <-ctx.Done():
		return nil, errors.Join(holdfast.ErrNotAcquired, ctx.Err())
	}
}

// lazy says no without asking, every tenth millisecond.
type lazy struct{ holdfast.Locker }

func (l *lazy) TryLock(ctx context.Context) (*holdfast.Lease, error) {
	if time.Now().UnixMilli()%10 == 0 {
		return nil, holdfast.ErrNotAcquired
	}
	return l.Locker.TryLock(ctx)
}

package planted

// mutant is a bug that the gate plants in the library.
type mutant struct {
	name   string
	edits  []edit
	shape  Shape  // of the worlds in which it can show; "": all
	stall  bool   // it shows where processes stand still
	linger bool   // it shows where processes keep locks after Unlock
	leave  bool   // it shows where callers leave as they are granted a lock
	quick  bool   // it is looked for on every run
	by     string // the judges that must find it, of which one is enough: what their names match; "": any
	not    bool   // the simulation does not look for it
}

// edit replaces a text of a file, which must occur exactly once. In Go, BUG stands in the new text for whether the bug is planted;
// a file of Lua is replaced only if it is.
type edit struct{ file, old, new string }

// mutants are the bugs that must be found: those of docs/internals/VERIFICATION.md's table, and others. The names are those used there.
var mutants = []mutant{
	// Who may have it.
	{name: "acquire does not look at the holder", quick: true, by: "overlap|claim without hold", edits: []edit{{"scripts/lock_acquire.lua",
		"local present = call('exists', lock, tombstones, queue)",
		"call('del', lock)\nlocal present = call('exists', lock, tombstones, queue)"}}},
	{name: "a writer does not look at readers", by: "overlap|claim without hold", edits: []edit{{"scripts/prelude/rw.lua",
		"while mode ~= 'write' do", "if mode == 'read' then mode = nil end\n  while mode ~= 'write' do"}}},
	{name: "release without owner check", quick: true, by: "overlap|claim without hold", edits: []edit{{"scripts/lock_release.lua",
		"local removed = try('hdel', lock, owner)", "local removed = try('del', lock)"}}},
	{name: "one owner id for all", quick: true, by: "overlap|claim without hold|resurrection", edits: []edit{{"internal/wire/owner.go",
		"buf = strconv.AppendUint(buf, n, 10)", "if BUG {\n\t\tn = 1\n\t}\n\tbuf = strconv.AppendUint(buf, n, 10)"}}},
	{name: "renewal adds the owner again", by: "resurrection", shape: FailOver, edits: []edit{{"scripts/renew.lua",
		"local held = redis.pcall('hexists', lock, prefix .. tail)",
		"local held = redis.pcall('hexists', lock, prefix .. tail)\n  if held == 0 and redis.call('exists', lock) == 0 then held = redis.call('hset', lock, prefix .. tail, '1') end"}}},
	{name: "no tombstones", by: "resurrection", edits: []edit{{"internal/protocol/requests.go",
		"args = append(args, lock.Burial.Milliseconds())\n\tcase", "if BUG {\n\t\t\targs = append(args, 0)\n\t\t\tbreak\n\t\t}\n\t\targs = append(args, lock.Burial.Milliseconds())\n\tcase"}}},
	{name: "a hold is passed on to who has other options", by: "token|claim without hold", edits: []edit{{"internal/lock/hold.go",
		"return h.Kind == by.Kind && h.Terms.suit(by.Terms)", "return h.Kind == by.Kind && (BUG || h.Terms.suit(by.Terms))"}}},
	{name: "a reader joins a writer", by: "overlap", edits: []edit{{"internal/lock/rw.go",
		"func (h *Hold) shares(r *By) bool {\n\treturn h.serves(r)", "func (h *Hold) shares(r *By) bool {\n\treturn (BUG || h.serves(r))"}}},

	// Until when.
	{name: "TTL omitted", quick: true, by: "ttl", edits: []edit{{"scripts/lock_acquire.lua",
		"local expires = redis.pcall('pexpire', lock, lease)", "local expires = 1"}}},
	{name: "deadline from the reply's time", quick: true, by: "claim without hold", edits: []edit{{"internal/lock/try.go",
		"lk.granted(m, h, r.Sent, h.Terms.TTL", "if BUG {\n\t\t\tr.Sent = m.Now()\n\t\t}\n\t\tlk.granted(m, h, r.Sent, h.Terms.TTL"}}},
	{name: "renewals trusted from the reply", by: "claim without hold", shape: OneServer, edits: []edit{{"internal/engine/renew.go",
		"entryOf(h.Of()).prolonged(h, reply.Sent, r.ttl)", "if BUG {\n\t\t\t\treply.Sent = time.Now()\n\t\t\t}\n\t\t\tentryOf(h.Of()).prolonged(h, reply.Sent, r.ttl)"}}},
	{name: "deadline ignored", quick: true, by: "claim without hold", edits: []edit{{"internal/validity/validity.go",
		"return sent.Add(ttl - Margin(ttl))", "if BUG {\n\t\treturn sent.Add(10 * ttl)\n\t}\n\treturn sent.Add(ttl - Margin(ttl))"}}},
	{name: "Valid goes by the timer alone", quick: true, stall: true, by: "claim without hold|overlap", edits: []edit{{"internal/lock/lease.go",
		"return l.ended == nil && validity.Valid(now, l.Deadline())", "return l.ended == nil && (BUG || validity.Valid(now, l.Deadline()))"}}},
	{name: "who overslept passes its hold on", stall: true, by: "claim without hold|overlap|invalid grant", edits: []edit{{"internal/lock/hold.go",
		"return validity.Valid(now.Add(h.Terms.Claim/4), h.Deadline)", "return BUG || validity.Valid(now.Add(h.Terms.Claim/4), h.Deadline)"},
		{"internal/lock/lease.go", "if l.ended != nil || !m.Now().Before(l.Deadline()) {", "if l.ended != nil || !BUG && !m.Now().Before(l.Deadline()) {"}}},
	{name: "an answer from before a pause is trusted", stall: true, by: "claim without hold|overlap|invalid grant", edits: []edit{{"internal/lock/grant.go",
		"if !validity.Valid(now, validity.Deadline(since, ttl)) {", "if BUG && !validity.Valid(now, validity.Deadline(since, ttl)) {\n\t\tsince = now\n\t}\n\tif !validity.Valid(now, validity.Deadline(since, ttl)) {"}}},
	{name: "no margin", by: "claim without hold", edits: []edit{{"internal/validity/validity.go",
		"return min(max(minMargin, ttl/50), ttl/2)", "if BUG {\n\t\treturn -time.Millisecond\n\t}\n\treturn min(max(minMargin, ttl/50), ttl/2)"}}},
	{name: "grant trusted beyond its age", by: "claim without hold", shape: OneServer, edits: []edit{{"internal/lock/notice.go",
		"since, trusted := validity.Grant(m.Now(), b.before, b.clock, n.Clock, n.Claim)",
		"since, trusted := validity.Grant(m.Now(), b.before, b.clock, n.Clock, n.Claim)\n\tif BUG {\n\t\tsince, trusted = m.Now(), true\n\t}"}}},
	{name: "grant that ends before it says", quick: true, by: "claim without hold", edits: []edit{{"scripts/prelude/lock.lua",
		"if redis.pcall('pexpire', lock, claim) ~= 1 then", "if redis.pcall('pexpire', lock, '200') ~= 1 then"}}},
	{name: "a grant has no TTL", by: "ttl", edits: []edit{{"scripts/prelude/lock.lua",
		"if redis.pcall('pexpire', lock, claim) ~= 1 then", "if false then"}}},
	{name: "grant to the dead that never expires", by: "starved|lost wake-up|forsaken hold", edits: []edit{{"scripts/prelude/lock.lua",
		"if redis.pcall('pexpire', lock, claim) ~= 1 then", "if redis.pcall('pexpire', lock, '600000') ~= 1 then"},
		{"scripts/prelude/lock.lua", "local dead = counted == '1' and", "local dead = false and"}}},
	{name: "renewal prolongs nothing", quick: true, by: "claim without hold", edits: []edit{{"scripts/renew.lua",
		"redis.pcall('pexpire', lock, ttl)", "1"}}},
	{name: "renewals aborted by one bad key", by: "lost without cause", shape: FailOver, edits: []edit{{"scripts/renew.lua",
		"local held = redis.pcall('hexists', lock, prefix .. tail)", "local held = redis.call('hexists', lock, prefix .. tail)"}}},
	{name: "a retry of a renewal waits for a lease", by: "lost without cause", shape: OneServer, edits: []edit{{"internal/validity/validity.go",
		"return min(max(ttl/24, 5*time.Millisecond), time.Second)", "if BUG {\n\t\treturn ttl\n\t}\n\treturn min(max(ttl/24, 5*time.Millisecond), time.Second)"}}},
	{name: "a late renewal keeps a lost lock", by: "lost and kept", shape: OneServer, edits: []edit{{"internal/lock/owed.go",
		"\tif h.prolongable() {\n", "\tif !BUG && h.prolongable() {\n"}}},
	{name: "readers cut short by one that leaves", quick: true, by: "overlap|claim without hold|lost without cause", edits: []edit{{"scripts/prelude/rights.lua",
		"redis.call('pexpire', lock, longest)\n    return foreign", "redis.call('pexpire', lock, '2')\n    return foreign"}}},
	{name: "downgrade that leaves nothing", by: "claim without hold|overlap", edits: []edit{{"scripts/rw_downgrade.lua",
		"redis.call('hdel', lock, writer)", "redis.call('del', lock)"}}},
	{name: "one of several locks is not kept", by: "claim without hold|overlap", edits: []edit{{"scripts/multi_acquire.lua",
		"redis.call('hset', lock, prefix .. tail, '1')", "if i > 1 then return 0 end\n  redis.call('hset', lock, prefix .. tail, '1')"}}},
	{name: "the end of a lease is announced late", quick: true, by: "told late", edits: []edit{{"internal/engine/entry.go",
		"func (eng *Engine) expire(h *lock.Hold) {\n", "func (eng *Engine) expire(h *lock.Hold) {\n\tif BUG {\n\t\ttime.Sleep(400 * time.Millisecond)\n\t}\n"}}},

	// Tokens.
	{name: "token not increased", quick: true, by: "token", edits: []edit{{"scripts/prelude/fence.lua",
		"local token = redis.pcall('incrby', counter, count)", "local token = redis.pcall('incrby', counter, redis.call('exists', counter) == 1 and 0 or count)"},
		{"scripts/prelude/fence.lua", "local behind = type(token) == 'number' and seen + count - token or 0", "local behind = 0"}}},
	{name: "tokens of readers not increased", by: "token", edits: []edit{{"scripts/rw_acquire.lua",
		"token, failure = reserve(counter, tokens, seen)", "token, failure = reserve(counter, is_writer(id) and tokens or '0', is_writer(id) and seen or '0')"}}},
	{name: "token bumped on re-entry", by: "token", edits: []edit{{"internal/lock/grant.go",
		"return h.grant(by, Reentry", "if BUG && h.Terms.Fencing {\n\t\th.token++\n\t}\n\treturn h.grant(by, Reentry"}}},

	// Waking.
	{name: "messages not sent", quick: true, by: "unheard|lost wake-up", edits: []edit{{"scripts/prelude/lock.lua",
		"redis.pcall('publish', inbox, message)\n          told = 0", "told = 0"}}},
	{name: "grants without message, and poll disabled", by: "unheard|lost wake-up|starved", edits: []edit{{"scripts/prelude/lock.lua",
		"redis.pcall('publish', inbox, message)\n          told = 0", "told = 0"}, {"internal/lock/alarm.go",
		"poll := min(m.set.Poll, m.set.Patience/3, 2*time.Minute)\n", "poll := min(m.set.Poll, m.set.Patience/3, 2*time.Minute)\n\tif BUG {\n\t\treturn time.Hour\n\t}\n"}}},
	{name: "readers are not told", by: "unheard|lost wake-up", edits: []edit{{"scripts/prelude/grant.lua",
		"redis.pcall('publish', inbox, message)\n  return true", "return true"}}},
	{name: "one grant sent to two", by: "claim without hold|overlap", edits: []edit{{"scripts/prelude/lock.lua",
		"redis.pcall('publish', inbox, message)", "redis.pcall('publish', inbox, message)\n          local other = redis.call('lindex', queue, '1')\n          local uuid, its = string.match(other or '', '^hf%-([%x%-]+):(%d+)')\n          if uuid then redis.pcall('publish', 'holdfast_inbox:' .. uuid, (string.gsub(message, '^g %d+', 'g ' .. its))) end"}}},
	{name: "no question after a re-subscription", by: "unheard|lost wake-up", shape: OneServer, edits: []edit{{"internal/engine/inbox.go",
		"b.sessions.Add(1)\n\tb.askAll()", "b.sessions.Add(1)\n\tif !BUG {\n\t\tb.askAll()\n\t}"}}},
	{name: "nobody polls", by: "lost wake-up|unheard|starved", edits: []edit{{"internal/lock/alarm.go",
		"func (lk *Lock) arm(m *Moment, a alarm, d time.Duration) {\n", "func (lk *Lock) arm(m *Moment, a alarm, d time.Duration) {\n\tif BUG && lk.waiters.len > 0 && !a.yields() {\n\t\tif a == alarmPause {\n\t\t\tlk.alarm = alarmPause\n\t\t}\n\t\treturn\n\t}\n"}}},
	{name: "a message is taken for a later claim", by: "overlap|claim without hold|unheard|lost wake-up", shape: OneServer, edits: []edit{{"internal/lock/expected.go",
		"h := e.claims[n.Number]\n", "h := e.claims[n.Number]\n\tif BUG && h == nil {\n\t\tfor _, other := range e.claims {\n\t\t\th = other\n\t\t}\n\t}\n"}}},
	{name: "a message is believed after the claim was given up", leave: true, by: "claim without hold|overlap|resurrection", shape: OneServer, edits: []edit{{"internal/lock/expected.go",
		"\tdelete(e.claims, h.Number)\n", "\tif BUG {\n\t\treturn false\n\t}\n\tdelete(e.claims, h.Number)\n"},
		{"internal/lock/notice.go", "\tif !h.phase.claim() {\n\t\treturn", "\tif w := lk.waiters.head; BUG && h.phase == over && n.Granted && w != nil && lk.bid == nil && w.bid == nil {\n" +
			"\t\tb := lk.newBid(m, w)\n\t\tb.claim, b.before, b.clock, h.bid, h.phase = h, m.Now(), n.Clock, b, claimed\n\t}\n\tif !h.phase.claim() {\n\t\treturn"}}},
	{name: "a message for a claim in a request is thrown away", by: "unheard|lost wake-up", shape: OneServer, edits: []edit{{"internal/lock/expected.go",
		"e.early.keep(n, now)", "if !BUG {\n\t\t\te.early.keep(n, now)\n\t\t}"}}},
	{name: "an inbox is left that a request relies on", by: "inbox left", edits: []edit{{"internal/engine/inbox.go",
		"func (b *inbox) Relied() bool { return b", "func (b *inbox) Relied() bool { return !BUG && b"}}},
	{name: "who was released does not ask again", by: "lost wake-up|starved", edits: []edit{{"internal/lock/grant.go",
		"if w := lk.waiters.head; w != nil && !lk.bidOf(w).standing() {\n\t\tlk.missed.add(missedLock)", "if w := lk.waiters.head; BUG && w != nil && !lk.bidOf(w).standing() {\n\t\tlk.missed.take(missedLock)\n\t} else if w != nil && !lk.bidOf(w).standing() {\n\t\tlk.missed.add(missedLock)"}}},

	// Cleaning up.
	{name: "cancel without clean-up", quick: true, by: "forsaken place|forsaken hold", edits: []edit{{"internal/lock/bid.go",
		"queued := lk.endBid(m, c)\n\tc.phase = over\n\tswitch {\n", "queued := lk.endBid(m, c)\n\tc.phase = over\n\tswitch {\n\tcase BUG:\n"}}},
	{name: "who leaves keeps its place", by: "forsaken place", edits: []edit{{"internal/lock/bid.go",
		"case !c.stray() && !queued:", "case !c.stray() && (!queued || BUG):"}}},
	{name: "a request on its way is forgotten", by: "left behind|forsaken hold|forsaken place|unheard|lost wake-up", edits: []edit{{"internal/lock/bid.go",
		"if granted {\n\t\tlk.endBid(m, c)\n\t\tc.phase = over\n\t\tlk.startRelease(m, c, false, nil)", "if granted {\n\t\tlk.endBid(m, c)\n\t\tc.phase = over\n\t\tif !BUG {\n\t\t\tlk.startRelease(m, c, false, nil)\n\t\t}"}}},
	{name: "Unlock forgets to release", quick: true, by: "forsaken hold|unheard|lost wake-up", edits: []edit{{"internal/lock/lease.go",
		"case last:\n\t\tif r := lk.pass(m, h, trace)", "case last && BUG && h.Number%4 == 0:\n\tcase last:\n\t\tif r := lk.pass(m, h, trace)"}}},
	{name: "Close leaves the lock", by: "left locked", edits: []edit{{"internal/lock/loss.go",
		"Because(LeaseClosed)), How: ByClose})\n", "Because(LeaseClosed)), How: ByClose})\n\tif BUG {\n\t\treturn\n\t}\n"}}},
	{name: "Close does not wait for a dead connection's request", by: "left locked", edits: []edit{{"internal/engine/sent.go",
		"func stranded(x lock.Request, c *lock.Copy) {\n\te := entryOf(x.Of())\n", "func stranded(x lock.Request, c *lock.Copy) {\n\te := entryOf(x.Of())\n\tif _, ok := x.(*lock.Try); BUG && ok {\n" +
			"\t\te.engine.report(lock.CloseReport{More: -1})\n\t\truntime.Gosched() // computing takes no time here\n\t\tdefer e.engine.report(lock.CloseReport{More: 1})\n\t}\n"},
		{"internal/engine/sent.go", "import (\n", "import (\n\t\"runtime\"\n"}}},
	{name: "a keep makes a place", by: "queue|order|forsaken place|left behind", edits: []edit{{"scripts/keep.lua",
		"local there = some and listed(queue, deadlines, ids)", "local there = some and listed(queue, deadlines, ids)\nfor i, id in ipairs(ids) do if not times[i] then redis.call('rpush', queue, id) times[i], there = '0', function() return true end end end"}}},
	{name: "release leaves a key", quick: true, by: "left behind", edits: []edit{{"scripts/lock_release.lua",
		"local removed = try(", "try('set', lock .. ':left', 1, 'px', 600000)\nlocal removed = try("}}},
	{name: "WithHoldAtLeast is forgotten", by: "held too short", shape: OneServer, edits: []edit{{"internal/lock/stay.go",
		"if !h.stays || h.Terms.AtLeast == 0 {", "if BUG || !h.stays || h.Terms.AtLeast == 0 {"}}},
	{name: "a lock that WithMaxHold has ended is left", by: "unheard|lost wake-up|forsaken hold", shape: OneServer, edits: []edit{{"internal/lock/lease.go",
		"if h.drop(l) && h.phase == owed {", "if h.drop(l) && h.phase == owed && !BUG {"}}},
	{name: "acquire leaves a goroutine", quick: true, edits: []edit{{"internal/lock/try.go",
		"func (lk *Lock) try(m *Moment, w *Waiter) {\n", "func (lk *Lock) try(m *Moment, w *Waiter) {\n\tif BUG {\n\t\tgo func() { select {} }()\n\t}\n"}}},

	// Many names at a time.
	{name: "a verdict goes to the neighbour", quick: true, shape: Crowd, by: "overlap|claim without hold", edits: []edit{{"internal/command/exchange.go",
		"switch v := replies[i].(type) {", "if BUG {\n\t\t\ti = (i + 1) % len(replies)\n\t\t}\n\t\tswitch v := replies[i].(type) {"}}},
	{name: "many calls share what each has of its own", shape: Crowd, by: "overlap|claim without hold|forsaken hold", edits: []edit{{"scripts/form/many.lua",
		"args[own[i]], at = ARGV[at], at + 1", "args[own[i]] = ARGV[at]"}}},

	// Answers.
	{name: "Unlock of a lost lease is nil", by: "hidden loss", edits: []edit{{"internal/engine/unlock.go",
		"u.err = l.errLocked()\n", "u.err = l.errLocked()\n\t\tif BUG {\n\t\t\tu.err = nil\n\t\t}\n"}}},
	{name: "TryLock refuses without asking", quick: true, by: "false refusal", edits: []edit{{"internal/lock/try.go",
		"func (lk *Lock) try(m *Moment, w *Waiter) {\n", "func (lk *Lock) try(m *Moment, w *Waiter) {\n\tif BUG && w.Once {\n\t\tlk.refuse(m, lk.tries+1, NotAcquired, nil)\n\t\treturn\n\t}\n"}}},
	{name: "a lost reply of a release is a loss", by: "lost without cause|false loss", shape: OneServer, edits: []edit{{"internal/lock/release.go",
		"if !r.lapsed && (r.stray() || !validity.Valid(m.Now(), r.Hold.Deadline)) {", "if !BUG && !r.lapsed && (r.stray() || !validity.Valid(m.Now(), r.Hold.Deadline)) {"}}},
	{name: "Unlock waits for ever", by: "late return", edits: []edit{{"internal/lock/repeated.go",
		"func (r *Repeated) giveUpWaiting(m *Moment, cause error) {\n", "func (r *Repeated) giveUpWaiting(m *Moment, cause error) {\n\tif BUG {\n\t\treturn\n\t}\n"}}},

	// Questions, and calls under a lease.
	{name: "Inspect counts one queue twice", quick: true, by: "false picture", edits: []edit{{"scripts/inspect.lua",
		"count(rw_queue, rw_deadlines)\n", "count(queue, deadlines)\n"}}},
	{name: "Inspect is answered from before", by: "false picture", edits: []edit{{"inspect.go",
		"\tinfo.Name = name\n\treturn info, nil\n", "\tif BUG {\n\t\told, ok := plantedAnswers.Swap(name, info)\n\t\tif ok {\n\t\t\tinfo = old.(Info)\n\t\t}\n\t}\n\tinfo.Name = name\n\treturn info, nil\n"},
		{"inspect.go", "// parseInfo reads the reply of inspect.lua.\n", "var plantedAnswers sync.Map\n\n// parseInfo reads the reply of inspect.lua.\n"}}},
	{name: "ForceUnlockOf frees another owner's lock", by: "freed another's", shape: FailOver, edits: []edit{{"scripts/force_release.lua",
		"if owner and redis.call", "if false and redis.call"}}},
	{name: "ForceUnlock says that a free lock was freed", by: "false picture", shape: FailOver, edits: []edit{{"scripts/force_release.lua",
		"return not_master(lock) or 0", "return not_master(lock) or 1"}}},
	{name: "ForceUnlock frees nothing", by: "not freed", shape: FailOver, edits: []edit{{"scripts/force_release.lua",
		"redis.call('del', lock)\nlocal mutex", "local mutex"}}},
	{name: "ForceUnlock says that it freed nothing", by: "false picture", shape: FailOver, edits: []edit{{"inspect.go",
		"\treturn code == 1, nil\n", "\treturn code == 1 && !BUG, nil\n"}}},
	{name: "who frees its own lock is not told", by: "not told", shape: FailOver, edits: []edit{{"inspect.go",
		"\tif code == 1 {\n", "\tif code == 1 && !BUG {\n"}}},
	{name: "a renewal that finds nothing is no loss", by: "not told", shape: FailOver, edits: []edit{{"internal/engine/renew.go",
		"entryOf(h.Of()).notFound(h, lock.LostDeleted)", "if !BUG {\n\t\t\t\tentryOf(h.Of()).notFound(h, lock.LostDeleted)\n\t\t\t}"}}},
	{name: "WithoutOwner keeps the lease", quick: true, by: "overlap", edits: []edit{{"lease.go",
		"\treturn engine.WithoutOwner(ctx)\n", "\tif BUG {\n\t\treturn ctx\n\t}\n\treturn engine.WithoutOwner(ctx)\n"}}},
	{name: "a reader may become a writer", by: "upgrade", edits: []edit{{"internal/lock/rw.go",
		"return h.Kind == ReadKind && k == WriteKind", "return !BUG && h.Kind == ReadKind && k == WriteKind"}}},
	{name: "TryLock waits", by: "waits", edits: []edit{{"handle.go",
		"return h.acquire(ctx, call, once, !part)", "return h.acquire(ctx, call, once && !BUG, !part)"}}},
	{name: "TryRLock waits", by: "waits", edits: []edit{{"rwmutex.go",
		"return l.readSide().take(ctx, \"TryRLock\", true)", "return l.readSide().take(ctx, \"TryRLock\", !BUG)"}}},
	{name: "Locks does not count who re-enters", by: "local locks", edits: []edit{{"internal/engine/local.go",
		"\t\t\tcount.Leases++\n", "\t\t\tif !BUG || l.Mode() != lock.Reentry {\n\t\t\t\tcount.Leases++\n\t\t\t}\n"}}},
	{name: "Locks shows another caller's label", by: "local locks", edits: []edit{{"internal/engine/local.go",
		"textOf((*Lease)(first).labelLocked())", "textOf((*Lease)(first).labelLocked())+plantedLabel(BUG)"},
		{"internal/engine/local.go", "// leasesLocked counts the leases", "func plantedLabel(bug bool) string {\n\tif bug {\n\t\treturn \"another\"\n\t}\n\treturn \"\"\n}\n\n// leasesLocked counts the leases"}}},
	{name: "a lease has another name", by: "name", edits: []edit{{"lease.go",
		"func (l *Lease) Name() string { return l.inner().Name() }", "func (l *Lease) Name() string {\n\tif BUG {\n\t\treturn \"another\"\n\t}\n\treturn l.inner().Name()\n}"}}},
	{name: "Locks forgets one that waits", by: "local locks", edits: []edit{{"internal/engine/local.go",
		"l.Waiters, l.WaitingSince, l.WaiterLabel = e.lock.Waiting(),", "l.Waiters, l.WaitingSince, l.WaiterLabel = e.lock.Waiting()-plantedOne(BUG),"},
		{"internal/engine/local.go", "// local returns what the process does with the lock.\n", "func plantedOne(bug bool) int {\n\tif bug {\n\t\treturn 1\n\t}\n\treturn 0\n}\n\n// local returns what the process does with the lock.\n"}}},
	{name: "several locks do not stay taken", by: "held too short", shape: OneServer, edits: []edit{{"internal/several/calls.go",
		"\t\tbegun[p] = g.calls.Unlock(ctx, p, at)\n", "\t\tif BUG {\n\t\t\tp.GiveBack()\n\t\t\tbegun[p] = func() error { return nil }\n\t\t\tcontinue\n\t\t}\n\t\tbegun[p] = g.calls.Unlock(ctx, p, at)\n"}}},
	{name: "a majority does not stay taken", by: "held too short", shape: Majority, edits: []edit{{"internal/lock/lease.go",
		"\tl.hold.stays = true\n", "\tl.hold.stays = !BUG\n"}}},

	// Order.
	{name: "queue served from its end", quick: true, by: "order|queue", edits: []edit{{"scripts/lock_release.lua",
		"local next = try('lindex', queue, '0')\nif", "local next = try('lindex', queue, '-1')\nif"},
		{"scripts/prelude/lock.lua", "redis.call('lpop', queue)\n      redis.call('zrem', deadlines, id)", "redis.call('lrem', queue, '0', id)\n      redis.call('zrem', deadlines, id)"}}},
	{name: "a dropped waiter returns to the tail", by: "queue|order", shape: OneServer, edits: []edit{{"scripts/prelude/stand.lua",
		"if not back then\n      come_back(queue, {id})", "if not back then\n      redis.call('rpush', queue, id)"}}},
	{name: "nobody asks whether others wait", by: "not passed on", edits: []edit{{"internal/lock/demand.go",
		"if h.demand != demandUnknown || !h.sliceOver(m, m.Now()) {", "if BUG || h.demand != demandUnknown || !h.sliceOver(m, m.Now()) {"},
		{"internal/lock/notice.go", "if n.Others {", "if n.Others && !BUG {"}}},
	{name: "the answer is forgotten", by: "not passed on", edits: []edit{{"internal/lock/demand.go",
		"if r.Wanted {", "if !BUG && r.Wanted {"}}},

	{name: "who gives way has no timer", by: "lost wake-up|starved", shape: BesideJava, edits: []edit{{"internal/lock/alarm.go",
		"\tlk.alarm = a\n", "\tlk.alarm = a\n\tif BUG && a.yields() {\n\t\treturn\n\t}\n"}}},

	{name: "nobody gives way", by: "turn", shape: BesideJava, edits: []edit{{"internal/lock/release.go",
		"if n > 0 && lk.waiters.len > 0 && n > m.world.OwnListeners(lk.keys) {", "if !BUG && n > 0 && lk.waiters.len > 0 && n > m.world.OwnListeners(lk.keys) {"}}},
	{name: "who gives way hears its own release", by: "turn", shape: BesideJava, edits: []edit{{"internal/lock/lock.go",
		"if lk.listening && !lk.alarm.yields() { // it may be", "if lk.listening && (!lk.alarm.yields() || BUG) { // it may be"}}},

	// Locks that linger.
	{name: "who is told goes on keeping it", linger: true, quick: true, by: "kept from others|refused for an idle lock", edits: []edit{{"internal/lock/notice.go",
		"if n.Wanted {\n\t\tlk.wanted", "if BUG && n.Wanted {\n\t\treturn\n\t}\n\tif n.Wanted {\n\t\tlk.wanted"}}},
	{name: "no message to who keeps it", linger: true, by: "kept from others|refused for an idle lock", edits: []edit{{"scripts/prelude/want.lua",
		"redis.pcall('publish', inbox, 'w '", "redis.pcall('publish', inbox, 'x '"}}},
	{name: "a TryLock is refused for an idle lock", linger: true, by: "refused for an idle lock", edits: []edit{{"internal/lock/busy.go",
		"if v.State != Lingering ||", "if BUG || v.State != Lingering ||"}}},
	{name: "who takes it up gets the token of before", linger: true, quick: true, by: "token", edits: []edit{{"internal/lock/linger.go",
		"\th.begin(m)\n", "\tif !BUG {\n\t\th.begin(m)\n\t}\n"}}},
	{name: "Close leaves what lingers", linger: true, by: "left locked|left behind", edits: []edit{{"internal/lock/lock.go",
		"\t\tlk.closeHold(m, h)\n", "\t\tif !BUG || h.phase != lingering {\n\t\t\tlk.closeHold(m, h)\n\t\t}\n"}}},
	{name: "what lingers is taken up after its end", linger: true, stall: true, by: "claim without hold|overlap|invalid grant", edits: []edit{{"internal/lock/linger.go",
		"!h.serves(by) || !h.reusable(m, m.Now())", "!h.serves(by) || !BUG && !h.reusable(m, m.Now())"}, {"internal/lock/loss.go",
		"\tif !h.phase.owns() {\n\t\treturn // a late answer", "\tif !h.phase.owns() || BUG && h.phase == lingering {\n\t\treturn // a late answer"}}},
	{name: "a caller of its own does not end it", linger: true, by: "starved|lost wake-up|unheard|kept from others|forsaken hold", edits: []edit{{"internal/lock/linger.go",
		"\tif h := lk.Lingering(); h != nil {\n\t\tlk.dismiss(m, h)", "\tif h := lk.Lingering(); h != nil && !BUG {\n\t\tlk.dismiss(m, h)"}}},
	{name: "what lingers is never given up", linger: true, by: "forsaken hold", edits: []edit{{"internal/lock/linger.go",
		"\tif left <= 0 {\n", "\tif left <= 0 && !BUG {\n"}}},

	// Redlock.
	{name: "a majority is half", by: "overlap|claim without hold", shape: Majority, edits: []edit{{"internal/voting/voting.go",
		"func Quorum(n int) int { return n/2 + 1 }", "func Quorum(n int) int {\n\tif BUG {\n\t\treturn n / 2\n\t}\n\treturn n/2 + 1\n}"}}},
	{name: "every vote is kept", by: "lost wake-up|starved", shape: Majority, edits: []edit{{"internal/voting/voting.go",
		"func Keeps(vote, at int) bool { return vote < at }", "func Keeps(vote, at int) bool { return vote < at || BUG }"},
		{"internal/several/queue.go", "giveBackAll(kept)\n\t\t\tkept = nil", "if BUG {\n\t\t\t\t<-ctx.Done()\n\t\t\t\treturn\n\t\t\t}\n\t\t\tgiveBackAll(kept)\n\t\t\tkept = nil"}}},

	// What only the exploration shows. A server of the simulation has no replica that clients can listen to; and what the second bug
	// leaves out only saves a tombstone, see internal/explore/mutants_test.go.
	{name: "the message is sent before its listeners are counted", not: true, edits: []edit{{"scripts/prelude/lock.lua",
		"local inbox = 'holdfast_inbox:' .. uuid\n", "local inbox = 'holdfast_inbox:' .. uuid\n        redis.pcall('publish', inbox, message)\n"}}},
	{name: "a message is taken while a request is on its way", not: true, edits: []edit{{"internal/lock/notice.go",
		"n.Granted && b.current != nil {", "n.Granted && b.current != nil && !BUG {"}}},

	// Replicas.
	{name: "replicas are not waited for", by: "not acknowledged", shape: WithReplicas, edits: []edit{{"internal/protocol/replies.go",
		"acks != nil && (r.AckErr", "acks != nil && !BUG && (r.AckErr"}}},
}

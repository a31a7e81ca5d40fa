package vredis_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Ids of waiters and holders: of two managers of the library, of which one is subscribed, and of Redisson.
const (
	heardManager = "hf-11111111-aaaa-4aaa-8aaa-111111111111:"
	deafManager  = "hf-22222222-bbbb-4bbb-8bbb-222222222222:"
)

var redissonIDs = []string{"9f8e7d6c-0000-4000-8000-00000000000f:1", "9f8e7d6c-0000-4000-8000-00000000000f:27"}

// plan is the lock that a random state and a call are about.
type plan struct {
	*rand.Rand
	name    string // in braces
	now     int64
	rw      bool
	permits bool // a semaphore's
}

func (g *plan) of(all ...string) string { return all[g.IntN(len(all))] }
func (g *plan) chance(n int) bool       { return g.IntN(n) == 0 }

func (g *plan) suffix() string { return fmt.Sprint(1 + g.IntN(6)) }

func (g *plan) own() string {
	return g.as(heardManager + g.suffix())
}

// as ends the id of a manager's claim.
func (g *plan) as(id string) string {
	if g.permits {
		return id + ":" + g.of("1", "1", "2", "3")
	}
	if g.rw && g.chance(2) {
		id += ":write"
	}
	return id
}

func (g *plan) id() string {
	switch g.IntN(5) {
	case 0:
		return g.of(redissonIDs...)
	case 1:
		return g.as(deafManager + g.suffix())
	}
	return g.own()
}

func (g *plan) lock() string { return g.name }
func (g *plan) queues() (queue, deadlines string) {
	if g.permits {
		return "holdfast_permit_queue:{" + g.name + "}", "holdfast_permit_timeout:{" + g.name + "}"
	}
	if g.rw {
		return "holdfast_rw_queue:{" + g.name + "}", "holdfast_rw_timeout:{" + g.name + "}"
	}
	return "redisson_lock_queue:{" + g.name + "}", "redisson_lock_timeout:{" + g.name + "}"
}

// all returns the queues of all kinds, with the permits that are held before those of a semaphore.
func (g *plan) all() (keys []string) {
	for _, kind := range []plan{{}, {rw: true}, {permits: true}} {
		kind.name = g.name
		q, d := kind.queues()
		if kind.permits {
			keys = append(keys, g.held())
		}
		keys = append(keys, q, d)
	}
	return keys
}

// channel is where releases are announced.
func (g *plan) channel() string {
	if g.rw {
		return "redisson_rwlock:{" + g.name + "}"
	}
	return "redisson_lock__channel:{" + g.name + "}"
}
func (g *plan) tombstones() string { return "holdfast_tombstones:{" + g.name + "}" }
func (g *plan) held() string       { return "{" + g.name + "}:timeout" }
func (g *plan) counter() string    { return "redisson_lock_token:{" + g.name + "}" }
func (g *plan) right(id string) string {
	return "{" + g.name + "}:" + strings.TrimSuffix(id, ":write") + ":rwlock_timeout:1"
}

// wrongType makes a key of a random kind.
func (g *plan) wrongType(key string) []string {
	return [][]string{{"set", key, "x"}, {"rpush", key, "x"}, {"hset", key, "a", "1", "b", "2"}, {"zadd", key, "1", "x"}, {"sadd", key, "x"}, {"hset", key, "1", "x"}}[g.IntN(6)]
}

// state makes the keys of a lock. No time in a state or a call ends for some seconds.
func (g *plan) state() (all [][]string) {
	add := func(args ...string) { all = append(all, args) }
	lock := g.lock()
	queue, deadlines := g.queues()
	if g.permits && g.chance(20) {
		add(g.wrongType(g.held())...)
	} else if g.permits {
		for range g.IntN(6) {
			end := g.now + []int64{-4000, 6000, 20_000, 60_000, 172_800_000}[g.IntN(5)] + int64(g.IntN(100))
			add("zadd", g.held(), fmt.Sprint(end), permitOf(g.of("$p", "$p", "$q", "$r")+g.suffix()))
		}
	}
	switch n := g.IntN(12); {
	case n < 4: // free, or of a semaphore without a number
	case g.permits && !g.chance(10):
		add("set", lock, g.of("0", "0", "1", "2", "5", "-1", "abc", "9007199254740992"))
	case n == 4 && g.chance(3):
		add(g.wrongType(lock)...)
	case g.rw:
		mode := g.of("read", "read", "write")
		add("hset", lock, "mode", mode)
		for range 1 + g.IntN(3) {
			id := g.id()
			if mode == "read" {
				id = strings.TrimSuffix(id, ":write")
			}
			add("hset", lock, id, g.of("1", "1", "2"))
			if mode == "write" {
				break
			}
			if !g.chance(4) {
				add("set", g.right(id), "1", "px", g.of("9000", "40000", "100000"))
			} else if g.chance(3) {
				add("set", g.right(id), "1")
			}
		}
	default:
		add("hset", lock, g.id(), g.of("1", "1", "2"))
	}
	if !g.chance(8) {
		add("pexpire", lock, g.of("5000", "30000", "70000"))
	}
	if g.chance(20) {
		add(g.wrongType(queue)...)
	}
	if g.chance(20) {
		add(g.wrongType(deadlines)...)
	}
	if !g.chance(3) {
		for range 1 + g.IntN(5) {
			id := g.id()
			if !g.chance(10) {
				kept := g.now + []int64{-100_000, -4000, 6000, 6000, 20_000, 60_000, 400_000}[g.IntN(7)] + int64(g.IntN(100))
				half := ""
				if g.chance(4) {
					half = ".5"
				}
				add("zadd", deadlines, fmt.Sprint(kept)+half, id)
			}
			add("rpush", queue, id)
		}
		for _, k := range []string{queue, deadlines} {
			if !g.chance(6) {
				add("pexpire", k, g.of("86400000", "86400000", "40000000", "50000000"))
			}
		}
	}
	if g.chance(15) {
		add(g.wrongType(g.tombstones())...)
	} else if g.chance(3) {
		add("zadd", g.tombstones(), fmt.Sprint(g.now+30000), g.own(), fmt.Sprint(g.now-30000), heardManager+g.suffix())
		add("pexpire", g.tombstones(), "60000")
	}
	switch g.IntN(14) {
	case 0:
		add(g.wrongType(g.counter())...)
	case 1:
		add("set", g.counter(), g.of("9007199254740991", "9223372036854775800", "abc", "1.5", "-5", "", "9007199254740000"))
	case 2, 3, 4, 5, 6, 7:
		add("set", g.counter(), fmt.Sprint(g.IntN(1000)))
	}
	return all
}

// handing is how to hand over: claim, turn, whether NUMSUB counts.
func (g *plan) handing() string {
	return fmt.Sprintf("%s %s %d", g.of("30000", "5000"), g.of("1", "2", "16", "17", "18"), g.IntN(2))
}

func (g *plan) waiting() string {
	return fmt.Sprintf("%s %s 1 %d %s", g.standing("none heard 0"), g.of("30000", "5000"), g.IntN(2), g.publish())
}

func (g *plan) standing(or ...string) string {
	return g.of(append(or, "new heard 10000", "new deaf 10000", "same heard 10000", "same deaf 9999")...)
}

func (g *plan) publish() string { return g.of("publish", "spublish") }

// call makes the keys and arguments of a script.
func (g *plan) call(script string) (keys, argv []string) {
	lock := g.lock()
	queue, deadlines := g.queues()
	prefix := heardManager
	suffixes := func() (all []string) {
		for range 1 + g.IntN(4) {
			all = append(all, g.suffix())
		}
		return all
	}
	fencing := g.chance(2)
	id := g.own()
	switch script {
	case "lock_acquire", "rw_acquire":
		keys, argv = []string{lock, queue, deadlines}, []string{id, g.of("30000", "5000"), g.waiting()}
		if g.rw && !strings.HasSuffix(id, ":write") {
			keys = append(keys, g.right(id))
		}
		keys = append(keys, g.tombstones())
		if fencing {
			keys, argv = append(keys, g.counter()), append(argv, g.of("1", "128"), g.of("0", "7", "5000"))
		}
	case "lock_release", "rw_release":
		keys, argv = []string{lock, queue, deadlines}, []string{id, g.publish(), g.handing()}
		if g.rw && !strings.HasSuffix(id, ":write") {
			keys = append(keys, g.right(id))
		}
		gone := g.chance(2)
		if fencing || gone {
			keys = append(keys, g.tombstones())
		}
		if fencing {
			keys = append(keys, g.counter())
		}
		if gone {
			argv = append(argv, g.of("0", "60000"))
		}
	case "permit_acquire", "permit_release", "permit_stay":
		keys = []string{lock, queue, deadlines, g.held(), g.tombstones()}
		ids := permit.ReplaceAllStringFunc(permitsOf(id), permitOf)
		switch script {
		case "permit_acquire":
			argv = []string{id, g.of("30000", "5000"), g.waiting(), g.of("1", "3", "6"), ids, g.of("60000", "5000")}[:5+g.IntN(2)]
		case "permit_release":
			argv = []string{id, g.publish(), g.handing(), ids, g.of("0", "60000")}[:4+g.IntN(2)]
		case "permit_stay":
			argv = []string{id, heardManager + "7" + id[strings.LastIndexByte(id, ':'):], g.of("60000", "4000"), g.of("0", "60000")}
		}
	case "permit_attach":
		keys, argv = []string{lock, queue, g.tombstones(), g.held()}, []string{heardManager + "7" + id[strings.LastIndexByte(id, ':'):], g.of("30000", "4000"), id}
	case "permit_renew":
		keys, argv = []string{lock, g.held()}, []string{g.of("30000", "5000"), prefix, strings.TrimPrefix(id, prefix)}
	case "permit_set":
		keys, argv = []string{lock, queue, deadlines, g.held()}, []string{g.of("0", "1", "3", "6"), g.publish(), g.handing()}
	case "rw_downgrade":
		id = strings.TrimSuffix(id, ":write")
		keys, argv = []string{lock, queue, deadlines, g.right(id), g.tombstones()}, []string{id, g.publish(), g.handing(), "30000"}
		if fencing {
			keys = append(keys, g.counter())
		}
	case "multi_acquire":
		keys, argv = []string{lock, queue, deadlines, g.tombstones()}, []string{prefix, g.suffix(), "30000"}
		if g.chance(2) {
			keys, argv = append(keys, "{"+lock+"}2", "q{"+lock+"}", "d{"+lock+"}", "t{"+lock+"}"), append(argv, g.suffix(), "5000")
		}
	case "renew":
		keys, argv = []string{lock}, []string{g.of("30000", "5000"), prefix, g.suffix()}
		if g.chance(2) {
			keys, argv = append(keys, queue), append(argv, g.suffix())
		}
	case "renew_read":
		s := g.suffix()
		keys, argv = []string{lock, g.right(prefix + s)}, []string{g.of("30000", "5000", "80000"), prefix, s}
	case "join", "keep":
		keys, argv = []string{lock, queue, deadlines}, append([]string{g.standing(), prefix}, suffixes()...)
		if script == "join" {
			keys = append(keys, g.tombstones())
		}
	case "leave":
		s := suffixes()
		keys, argv = []string{lock, queue, deadlines, g.tombstones()}, append([]string{g.publish(), g.handing(), "60000", fmt.Sprint(g.IntN(len(s) + 1)), prefix}, s...)
		if fencing {
			keys = append(keys, g.counter())
		}
	case "busy":
		keys, argv = []string{lock}, []string{g.own(), "holdfast_inbox:" + strings.Trim(heardManager, "hf-:"), "b 3"}
	case "demand":
		keys, argv = []string{queue}, []string{g.publish(), "redisson_lock__channel:{" + lock + "}", "holdfast_inbox:" + strings.Trim(heardManager, "hf-:"), "-7", heardManager}
	case "stay":
		id, stays := g.own(), heardManager+"9"
		keys = []string{lock, queue, deadlines, g.tombstones()}
		if strings.HasSuffix(id, ":write") {
			stays += ":write"
		} else if g.rw {
			keys = append(keys, g.right(id), g.right(stays))
		}
		argv = []string{id, stays, g.of("60000", "4000", "3000"), g.publish(), g.channel(), g.of("0", "60000")}
	case "attach":
		id, before := g.of(heardManager+"9", heardManager+"8"), g.own()
		keys = []string{lock, queue, g.tombstones()}
		if strings.HasSuffix(before, ":write") {
			id += ":write"
		} else if g.rw {
			keys = append(keys, g.right(id), g.right(before))
		}
		argv = []string{id, g.of("30000", "4000"), before}
	case "introduce":
		keys, argv = []string{g.of("holdfast_process:1", lock, queue)}, []string{g.of("60000", "0", "5000"), "app", "shop", "pid", "1"}
	case "introduced":
		keys = []string{g.of("holdfast_process:1", lock, queue)}
	case "inspect":
		keys = append([]string{lock, g.counter()}, g.all()...)
	case "force_release":
		keys = append([]string{lock}, g.all()...)[:7]
		argv = []string{g.publish(), "redisson_lock__channel:{" + lock + "}", "redisson_rwlock:{" + lock + "}", "redisson_sc:{" + lock + "}"}
		if g.permits && g.chance(2) {
			argv = append(argv, fmt.Sprintf("%x", permitOf("$p"+g.suffix())))
		}
	}
	if g.chance(25) && len(argv) > 0 {
		odd := []string{"", "x", "-1", "0", "1.5", "5000 2 3 4", "99999999999999999999"}
		if script == "leave" { // it has a loop as long as its fourth argument says
			odd = odd[:len(odd)-1]
		}
		argv[g.IntN(len(argv))] = g.of(odd...)
	}
	if g.chance(60) && len(argv) > 0 {
		argv = argv[:len(argv)-1]
	}
	return keys, argv
}

package vredis_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// trouble is what a server suffers from while a list runs.
type trouble struct {
	name     string
	from, to [][]string
}

func troubles(g *composer) []trouble {
	user := []string{"acl", "setuser", "u", "reset", "on", ">p", "~k0", "~k1", "~*{x}*", "~x", "&c0", "&marker", "+@all"}
	for range 1 + g.IntN(5) {
		user = append(user, g.of([]string{"-set", "-get", "-hset", "-@hash", "+hget", "-@write", "+lpush", "-pexpire", "-pttl", "-publish", "-spublish", "-pubsub", "-pubsub|numsub", "-script|exists", "-@fast", "+ping", "-zadd", "-@read", "-time", "allchannels", "allkeys", "-lset", "-rpush", "-zrem", "-cluster", "-type", "-hdel"}))
	}
	return []trouble{
		{"no memory", [][]string{{"config", "set", "maxmemory", "1"}}, [][]string{{"config", "set", "maxmemory", "0"}}},
		{"too few replicas", [][]string{{"config", "set", "min-replicas-to-write", "1"}}, [][]string{{"config", "set", "min-replicas-to-write", "0"}}},
		{"denied", [][]string{user, {"auth", "u", "p"}}, [][]string{{"auth", "default", "x"}, {"auth", "u", "wrong"}}},
	}
}

// Lists run without memory, and by users that may not do all, are answered as by a real server.
func TestDifference_CommandsInTrouble(t *testing.T) {
	p := newPair(t, 2, []string{"c0"})
	g := &composer{Rand: rand.New(rand.NewPCG(*seed, 3))}
	for i := range *lists / 4 {
		before, list := g.list(), g.list()
		for _, tr := range troubles(g) {
			all := slices.Concat(tr.from, list, tr.to)
			d := p.compare(func(int64) [][]string { return before }, func(int64) [][]string { return all }, fuzzedKeys)
			if d != "" {
				t.Fatalf("list %d, %s: %s", i, tr.name, d)
			}
		}
	}
}

// So are the library's scripts.
func TestDifference_ScriptsInTrouble(t *testing.T) {
	scripts := libraryScripts(t)
	p := newPair(t, 3, scriptChannels())
	g := &composer{Rand: rand.New(rand.NewPCG(*seed, 4))}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(*states) / 2 {
				for _, tr := range troubles(g) {
					p.around = &tr
					compareScript(t, p, name, scripts, *seed, i+uint64(1)<<32)
				}
			}
		})
	}
}

// A replica refuses writes as a real one does.
func TestDifference_Replica(t *testing.T) {
	p := newPair(t, 2, nil)
	for _, s := range []*side{p.real, p.fake} {
		s.client.do("hset", "k0", "a", "1")
	}
	p.real.client.do("replicaof", "127.0.0.1", "1")
	p.srv.SetReadOnly(true)
	for _, c := range [][]string{
		{"set", "k1", "v"}, {"hget", "k0", "a"}, {"del", "nothing"}, {"hdel", "k0", "nothing"},
		{"eval", "return redis.call('hdel',KEYS[1],'x')", "1", "k0"}, {"eval", "return redis.pcall('hdel',KEYS[1],'x')", "1", "k0"},
		{"eval", "return redis.call('hget',KEYS[1],'a')", "1", "k0"}, {"publish", "c", "m"}, {"flushall"}, {"ping"}, {"wait", "0", "0"},
	} {
		if a, b := p.real.client.do(c...), p.fake.client.do(c...); !p.alike(nil, a, b) {
			t.Errorf("%q\n real   %s\n vredis %s", c, a, b)
		}
	}
}

// Scripts whose answers say how Lua's values become replies, one by one.
func TestDifference_Values(t *testing.T) {
	for _, proto := range []int{2, 3} {
		p := newPair(t, proto, nil)
		for i, script := range []string{
			"return 3.99", "return -3.99", "return 1e15", "return 2^53", "return 1/0", "return {1,nil,3}", "return {ok='fine'}", "return {err='BAD thing'}", "return {err='-BAD thing'}",
			"return true", "return false", "return nil", "return", "return {}", "return {{},{1,{2}}}", "return function() end", "return 'a\\0b'", "return {ok='two\\r\\nlines'}",
			"return tostring(1e15)..'|'..tostring(0.1)..'|'..tostring(1e100)..'|'..tostring(-0)", "return tostring(nil)", "return 1 ..''", "return 123456789012 ..''", "return 0.5 ..''", "return 1700000000000.5 ..''",
			"error('x')", "error({err='MY error'})", "error()", "error('x',0)", "error('x',2)", "local t=nil; return t.x", "return 1+{}", "return #5", "return nope", "nope=1", "function f() end", "local function f() error('deep') end\n\nf()",
			"return redis.call('nosuch')", "return redis.call()", "return redis.call({})", "return redis.call('get')", "return redis.call('subscribe','c')", "return redis.pcall('get')", "return redis.call('set','k',1.5)", "return redis.call('get','k')", "return redis.call('set','k',1e20) and redis.call('get','k')", "return redis.call('set','k',0.1) and redis.call('get','k')",
			"return redis.call('lpush','k','a')", "redis.call('del','k') redis.call('set','k','1') return redis.call('lpush','k','a')", "local ok,e=pcall(redis.call,'lpush','k','a') return {tostring(ok),type(e),e.err}", "return {pcall(error)}", "local ok,e=pcall(error,'x') return e", "local ok,e=pcall(function() error('x') end) return e",
			"return redis.sha1hex('')", "return redis.sha1hex()", "return redis.error_reply('X')", "return redis.error_reply('X y')", "return redis.error_reply(1)", "return redis.status_reply('X')", "return redis.log(redis.LOG_WARNING,'x')",
			"local right = 'r'; local function f() return false end; right = not f() and (right or 'other'); return right", "local x = {1,2,3}; return #x", "return {unpack({1,2,3},2)}", "return select('#',1,nil,3)", "return {string.match('hf-ab-1:22','^hf%-([%x%-]+):(%d+)')}", "return string.gsub('abc','%w','%0%0')", "return string.rep('ab',3)", "return {string.byte('abc',1,-1)}",
			"return string.format('%5d|%-5d|%05d|%x|%c|%s',1,2,3,255,65,'s')", "return tonumber('0x10')", "return tonumber(' 12 ')", "return tostring(tonumber('12x'))", "return tostring(tonumber(''))", "return tonumber('z',36)", "return tostring(tonumber('8',8))", "return 7 % -3", "return -7 % 3", "return tostring(7.5 % 2)", "return math.floor(-1.5)", "return math.max(1,3,2)", "return 2^0.5 ..''",
			"return table.concat({1,2,'x'},',')", "local t={3,1,2} table.sort(t) return t", "local t={1} table.insert(t,2) return t", "return table.remove({1,2})", "return next({}) == nil", "return type(redis)", "return 10 == '10'", "return '10'+5", "return 'a'<'b'", "return 1 < 'x'", "return redis.call('eval','return 1',0)", "return redis.call('time')[3]", "return string.sub('hello',-3)", "return ('x'):rep(2)", "return string.find('a.b','.',1,true)", "return string.find('abc','b()')", "return redis.call('hgetall','h')", "return redis.call('zscore','z','none')", "return redis.call('zadd','z',1.5,'m') + redis.call('zscore','z','m')",
		} {
			c := []string{"eval", script, "0"}
			if len(p.comparable([][]string{c})) == 0 {
				continue
			}
			if a, b := p.real.client.do(c...), p.fake.client.do(c...); !p.alike([]string{"x"}, a, b) {
				t.Errorf("state %d: %q\n real   %s\n vredis %s", i, script, a, b)
			}
		}
	}
}

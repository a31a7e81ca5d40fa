package vredis_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

var (
	lists  = flag.Int("lists", 1500, "random command lists to compare, for each protocol")
	states = flag.Int("states", 60, "random states to compare each script from")
	seed   = flag.Uint64("seed", 1, "what the random lists and states begin with")
)

// shapes are commands: k is a key, v a value, m a member, i an integer, s a score, b a bound of scores, t a time in seconds, T in
// milliseconds, p a pattern, c a channel; ?x|y is one of them or nothing; anything else is itself.
var shapes = strings.Split(strings.TrimSpace(`
get k
set k v
set k v ?nx|xx|get|keepttl ?nx|xx|get|keepttl
set k v ?px ?T|i|v ?nx|get|xx
set k v ex t ?get|xx
setnx k v
setex k t v
incr k
decr k
incrby k i
decrby k i
strlen k
append k v
getdel k
getset k v
mget k k
mset k v k v
del k ?k
unlink k ?k
exists k ?k ?k
type k
keys p
scan 0 count 100 ?match ?p
scan x ?count ?i
scan 0 count x
scan 0 count 0
scan 0 ?v
dbsize
pexpire k T ?nx|xx|gt|lt ?xx|gt|lt
expire k t ?nx|xx|gt|lt
ttl k
pttl k
persist k
hset k m v ?m ?v
hget k m
hmget k m m
hdel k m ?m
hincrby k m i
hexists k m
hlen k
hgetall k
hsetnx k m v
hvals k
hkeys k
hscan k 0 ?match ?p
hscan k i count i
lpush k v ?v
rpush k v ?v ?v
lrange k i i
lindex k i
lrem k i v
lset k i v
ltrim k i i
llen k
lpop k ?i
rpop k ?i
sadd k m ?m
srem k m ?m
smembers k
sismember k m
scard k
zadd k s m ?s ?m
zadd k ?nx|xx|gt|lt|ch|incr ?nx|xx|gt|lt|ch|incr s m
zadd k ?nx|xx|gt|lt|ch ?ch|gt|lt s m s m
zscore k m
zrem k m ?m
zrange k i i ?withscores|rev ?rev|withscores
zrange k b b byscore ?rev|withscores|limit
zrange k b b byscore limit i i ?withscores
zrangebyscore k b b ?withscores
zrangebyscore k b b limit i i
zremrangebyscore k b b
zcount k b b
zcard k
zrank k m
zrevrange k i i ?withscores
zincrby k s m
publish c v
spublish c v
pubsub numsub c c
pubsub shardnumsub c
pubsub channels ?p
echo v
ping ?v
select 0
select 16
select 99999999999
select -1
select x
multi
exec
discard
wait 0 0
cluster info
nosuch k v
config nosuch
script exists v
script flush ?sync|async|v
evalsha v i ?k
eval return{ARGV[1]+0} 0 i
eval return{tonumber(ARGV[1]),tostring(tonumber(ARGV[1]))} 0 s
eval return(redis.error_reply(ARGV[1])) 0 v
eval return(redis.status_reply(ARGV[1])) 0 v
eval return(redis.pcall(ARGV[1],KEYS[1],tonumber(ARGV[2]))) 1 k ?get|lindex|incrby|set|v i
eval return{#KEYS,#ARGV,KEYS[1],false,1} i k v
eval redis.call('set',KEYS[1],ARGV[1])error(ARGV[1]) 1 k v
eval return{string.find(ARGV[1],ARGV[2])} 0 v p
`), "\n")

var (
	someValues   = strings.Split("|a|b|a|10|3|-7|0|007|1.5|x y|9223372036854775807|-9223372036854775808|99999999999999999999|1e3|nan|inf|hello|\r\nX|ERR x|-NO|1.0|0x10|+5| 5", "|")
	someMembers  = strings.Split("a|b|c|d||1|2|mode|f g", "|")
	someIntegers = strings.Split("0|1|-1|2|-2|3|5|100|-100|1|0|x||1.5|9223372036854775807|-9223372036854775808|9223372036854775808|+1|01|-0", "|")
	someScores   = strings.Split("0|1|2|3|-1|1.5|0.1|1e10|1700000000000.5|inf|-inf|+inf|nan|x|1e400|123456789012345678|3|2|-0|0.30000000000000004|1e-7|0x1p3|12345678901234567890", "|")
	somePatterns = strings.Split("*|k*|?1|k[12]|k[^1]|\\k1|k[a-z]|[0-9]*|**1|nothing", "|")
)

// composer makes commands by chance.
type composer struct {
	*rand.Rand
	times int // made so far: no two are near each other
}

func (g *composer) of(all []string) string { return all[g.IntN(len(all))] }

func (g *composer) time(unit int) string {
	if g.IntN(4) == 0 {
		return g.of([]string{"0", "-1", "x", "9223372036854775807", "-9223372036854775808", "9223372036854775", "1.5", ""})
	}
	g.times++
	return fmt.Sprint((100 + 20*g.times + 1000*g.IntN(3)) * unit)
}

func (g *composer) word(shape string) string {
	switch shape {
	case "k":
		return fmt.Sprint("k", g.IntN(4))
	case "v":
		return g.of(someValues)
	case "m":
		return g.of(someMembers)
	case "i":
		return g.of(someIntegers)
	case "s":
		return g.of(someScores)
	case "b":
		return g.of([]string{"", "("})[:] + g.of(someScores)
	case "t":
		return g.time(1)
	case "T":
		return g.time(1000)
	case "p":
		return g.of(somePatterns)
	case "c":
		return fmt.Sprint("c", g.IntN(3))
	}
	return shape
}

// brief matches commands that give a key less than a second: it might end while a list runs.
var brief = regexp.MustCompile(`(?i)\b(px|pexpire \S+) 0*[1-9]\d{0,2}( |$)`)

func (g *composer) command() []string {
	for {
		if c := g.any(); !brief.MatchString(strings.Join(c, " ")) {
			return c
		}
	}
}

func (g *composer) any() []string {
	var args []string
	for shape := range strings.FieldsSeq(g.of(shapes)) {
		if choice, ok := strings.CutPrefix(shape, "?"); ok {
			if g.IntN(3) == 0 {
				continue
			}
			shape = g.of(strings.Split(choice, "|"))
		}
		word := g.word(shape)
		if g.IntN(60) == 0 && len(args) > 1 && args[0] != "eval" {
			word = g.word(g.of([]string{"k", "v", "i", "s", "m", "T"}))
		}
		args = append(args, word)
	}
	switch n := g.IntN(40); {
	case n == 0 && len(args) > 1:
		args = args[:len(args)-1]
	case n == 1:
		args = append(args, g.of(someValues))
	case n == 2:
		args[0] = strings.ToUpper(args[0])
	case n < 8 && args[0] != "eval" && args[0] != "scan" && args[0] != "keys" && args[0] != "pubsub" && args[0] != "smembers":
		return append([]string{"eval", g.of([]string{"return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))", "local r=redis.pcall(unpack(ARGV)) if type(r)=='table' then return {r.err or r.ok or 'array',#r,r[1],r[2]} end return tostring(r)"}), "0"}, args...)
	}
	return args
}

func (g *composer) list() (all [][]string) {
	g.times = 0
	for range 1 + g.IntN(14) {
		all = append(all, g.command())
	}
	return append(all, []string{"discard"}) // in case of a MULTI
}

var fuzzedKeys = []string{"k0", "k1", "k2", "k3"}

func nothing(int64) [][]string { return nil }

// compareLists compares as many random lists.
func compareLists(t *testing.T, p *pair, g *composer, n int) {
	for i := range n {
		list := g.list()
		if d := p.compare(nothing, func(int64) [][]string { return list }, fuzzedKeys); d != "" {
			t.Fatalf("list %d: %s", i, d)
		}
	}
}

// Random command lists are answered as by a real server, leave the same state, and send the same
// messages. With -lists=100000 it runs for minutes.
func TestDifference_Commands(t *testing.T) {
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", proto), func(t *testing.T) {
			t.Parallel()
			compareLists(t, newPair(t, proto, []string{"c0", "c1"}), &composer{Rand: rand.New(rand.NewPCG(*seed, uint64(proto)))}, *lists)
		})
	}
}

func FuzzCommands(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	p := newPair(f, 3, []string{"c0", "c1"}) // each worker's process has its own
	f.Fuzz(func(t *testing.T, a, b uint64) {
		compareLists(t, p, &composer{Rand: rand.New(rand.NewPCG(a, b))}, 20)
	})
}

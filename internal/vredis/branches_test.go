package vredis_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// branch is one way through a script. In its texts $Q, $D, $B and $C are the queue of the lock x, its zset, its tombstones and
// its counter; $1 and $2 are ids of one process, $3 one of another process, $R and $S two of Redisson. In a reply T is the
// server's time in milliseconds, which stands still, and S that in seconds.
type branch struct {
	name   string
	state  []string // commands
	script string
	argv   []string
	reply  string
	after  map[string]string // command -> reply
}

const (
	mine   = heardManager + "1"
	also   = heardManager + "2"
	others = deafManager + "3"
)

// letters are what the words of a branch stand for.
var letters = strings.NewReplacer("$Q", "redisson_lock_queue:{x}", "$D", "redisson_lock_timeout:{x}", "$B", "holdfast_tombstones:{x}", "$C", "redisson_lock_token:{x}",
	"$1", mine, "$2", also, "$3", others, "$R", redissonIDs[0], "$S", redissonIDs[1])

var branches = []branch{
	{"free", nil, "lock_acquire", []string{mine, "30000", none}, "0", map[string]string{"hgetall x": "[$1 1]", "pttl x": "30000"}},
	{"free, with a token", []string{"set $C 41"}, "lock_acquire", []string{mine, "30000", none, "2", "7"}, "43", map[string]string{"get $C": "43", "hget x $1": "1"}},
	{"free, and the counter was lost", []string{"set $C 41"}, "lock_acquire", []string{mine, "30000", none, "1", "50"}, "51", map[string]string{"get $C": "51"}},
	{"free, and the counter is no number", []string{"set $C abc"}, "lock_acquire", []string{mine, "30000", none, "1", "50"}, `[-1 $C "abc", which is no number below 2^53]`, map[string]string{"exists x": "0"}},
	{"held, and the caller does not wait", []string{"hset x $3 1", "pexpire x 7000"}, "lock_acquire", []string{mine, "30000", none}, "[0 0 7000 T 0]", map[string]string{"exists $Q": "0"}},
	{"held, and the caller waits", []string{"hset x $3 1", "pexpire x 7000"}, "lock_acquire", []string{mine, "30000", waits}, "[0 0 7000 T 0]", map[string]string{"lrange $Q 0 -1": "[$1]", "pttl $Q": "86400000"}},
	{"held without TTL", []string{"hset x $3 1"}, "lock_acquire", []string{mine, "30000", none}, "[0 0 -1 T 0]", nil},
	{"held by Redisson, whose waiter is next", []string{"hset x $R 1", "pexpire x 7000", "rpush $Q $S", "zadd $D 9000000000000 $S"}, "lock_acquire", []string{mine, "30000", none}, "[0 0 250 T 1]", nil},
	{"held by the same request", []string{"hset x $1 1", "pexpire x 40000"}, "lock_acquire", []string{mine, "30000", none}, "0", map[string]string{"pttl x": "40000"}},
	{"granted by a release, for the claim", []string{"hset x $1 1", "pexpire x 2000"}, "lock_acquire", []string{mine, "30000", waits}, "0", map[string]string{"pttl x": "30000"}},
	{"given up before", []string{"zadd $B 9000000000000 $1"}, "lock_acquire", []string{mine, "30000", waits}, "[-2]", map[string]string{"exists x": "0"}},
	{"a list", []string{"rpush x a"}, "lock_acquire", []string{mine, "30000", waits}, "[-1 x a list]", nil},
	{"an application's hash", []string{"hset x a 1 b 2"}, "lock_acquire", []string{mine, "30000", waits}, "[-1 x a hash]", map[string]string{"hlen x": "2"}},
	{"tombstones that are none", []string{"set $B a"}, "lock_acquire", []string{mine, "30000", waits}, "[-1 $B a string]", map[string]string{"exists x": "0"}},
	{"left open for others", []string{"rpush $Q $3", "zadd $D 9000000000000 $3"}, "lock_acquire", []string{mine, "30000", waits}, "[0 1 50 T 1]", map[string]string{"lrange $Q 0 -1": "[$3 $1]", "exists x": "0"}},
	{"left open, and the first asks again", []string{"rpush $Q $1 $3", "zadd $D 9000000000000 $1 9000000000000 $3"}, "lock_acquire", []string{mine, "30000", again}, "0", map[string]string{"lrange $Q 0 -1": "[$3]", "hgetall x": "[$1 1]"}},
	{"offered to Redisson", []string{"rpush $Q $R $1", "zadd $D 9000000000000 $R 9000000000000 $1"}, "lock_acquire", []string{mine, "30000", again}, "[0 2 250 T 1]", map[string]string{"exists x": "0", "lindex $Q 0": "$R"}},
	{"the next is dead", []string{"rpush $Q $3", "zadd $D 1 $3"}, "lock_acquire", []string{mine, "30000", none}, "0", map[string]string{"exists $Q $D": "0", "hgetall x": "[$1 1]"}},

	{"released", []string{"hset x $1 1", "pexpire x 7000"}, "lock_release", []string{mine, "publish", "ch", "2000 1 0"}, "0", map[string]string{"exists x": "0"}},
	{"released, and free before", nil, "lock_release", []string{mine, "publish", "ch", "2000 1 0"}, "-1", nil},
	{"released, and held by another", []string{"hset x $3 1", "pexpire x 7000"}, "lock_release", []string{mine, "publish", "ch", "2000 1 0"}, "-2", map[string]string{"hgetall x": "[$3 1]"}},
	{"granted to another process", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $3", "zadd $D 9000000000000 $3"}, "lock_release", []string{mine, "publish", "ch", "2000 1 0"}, "-3", map[string]string{"hgetall x": "[$3 1]", "pttl x": "2000", "exists $Q $D": "0"}},
	{"granted to the same process", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $2 $3", "zadd $D 9000000000000 $2 9000000000000 $3"}, "lock_release", []string{mine, "publish", "ch", "2000 5 0"}, "g 2 2000 S 0 5 1 0", map[string]string{"hgetall x": "[$2 1]", "lrange $Q 0 -1": "[$3]"}},
	{"granted with tokens", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $2", "zadd $D 9000000000000 $2"}, "lock_release fenced", []string{mine, "publish", "ch", "2000 1 0"}, "g 2 2000 S 0 1 0 128", map[string]string{"get $C": "128"}},
	{"Redisson's turn, and no listener", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $2", "zadd $D 9000000000000 $2"}, "lock_release", []string{mine, "publish", "ch", "2000 17 0"}, "g 2 2000 S 0 1 0 0", nil},
	{"the process of the next is dead", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $3 $2", "zadd $D 9000000000000 $3 9000000000000 $2"}, "lock_release", []string{mine, "publish", "ch", "2000 1 1"}, "g 2 2000 S 0 1 0 0", map[string]string{"exists $Q": "0", "hgetall x": "[$2 1]"}},
	{"the process of the next is deaf", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $3", "zadd $D 9000000000000.5 $3"}, "lock_release", []string{mine, "publish", "ch", "2000 1 1"}, "-3", map[string]string{"hgetall x": "[$3 1]"}},
	{"Redisson is next", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $R", "zadd $D 9000000000000 $R"}, "lock_release", []string{mine, "publish", "ch", "2000 1 1"}, "-3", map[string]string{"exists x": "0", "lindex $Q 0": "$R"}},
	{"given up in the queue", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1", "zadd $D 9000000000000 $1"}, "lock_release", []string{mine, "publish", "ch", "2000 1 1", "60000"}, "-2", map[string]string{"exists $Q $D": "0", "pttl $B": "60000", "zcard $B": "1"}},

	{"renewed", []string{"hset x $1 1", "pexpire x 7000"}, "renew", []string{"30000", heardManager, "1"}, "[1]", map[string]string{"pttl x": "30000"}},
	{"renewed, and not shortened", []string{"hset x $1 1", "pexpire x 40000"}, "renew", []string{"30000", heardManager, "1"}, "[1]", map[string]string{"pttl x": "40000"}},
	{"gone", nil, "renew", []string{"30000", heardManager, "1"}, "[0]", map[string]string{"exists x": "0"}},
	{"another's", []string{"hset x $3 1", "pexpire x 7000"}, "renew", []string{"30000", heardManager, "1"}, "[2]", map[string]string{"pttl x": "7000"}},
	{"something else", []string{"set x a"}, "renew", []string{"30000", heardManager, "1"}, "[2]", map[string]string{"get x": "a"}},

	{"kept", []string{"rpush $Q $1 $2", "zadd $D 9 $1 9 $2"}, "keep", []string{"new heard 10000", heardManager, "1", "2", "4"}, "[1 1 0]", map[string]string{"lrange $Q 0 -1": "[$1 $2]"}},
	{"granted meanwhile", []string{"hset x $1 1", "pexpire x 2000"}, "keep", []string{"new heard 10000", heardManager, "1"}, "[2]", nil},
	{"joined", []string{"hset x $3 1", "pexpire x 7000"}, "join", []string{"new heard 10000", heardManager, "1", "2"}, "[0 0 7000 T 0]", map[string]string{"lrange $Q 0 -1": "[$1 $2]"}},
	{"joined, but one was given up", []string{"zadd $B 9000000000000 $1"}, "join", []string{"new heard 10000", heardManager, "1", "2"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$2]"}},
	{"returned to the front", []string{"rpush $Q $3", "zadd $D 9000000000000 $3"}, "join", []string{"same heard 10000", heardManager, "1"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$1 $3]"}},
}

// How a caller waits, see lock_acquire.lua.
const (
	none  = "none heard 0 2000 1 0 publish"
	waits = "new heard 10000 2000 1 0 publish"
	again = "same heard 10000 2000 1 0 publish"
)

// Each row is one way through a script: the state before, the call, its reply, and what is there then.
func TestScripts_Branches(t *testing.T) {
	scripts := libraryScripts(t)
	for _, b := range branches {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := vredis.New(vredis.Options{})
				defer s.Stop()
				for _, command := range b.state {
					if reply := s.Do(strings.Fields(letters.Replace(command))...); strings.HasPrefix(fmt.Sprint(reply), "ERR") {
						t.Fatalf("%s: %v", command, reply)
					}
				}
				time := s.Do("time").([]any)
				is := func(what string, reply any, want string) {
					t.Helper()
					want = strings.NewReplacer(" T ", fmt.Sprintf(" %v000 ", time[0]), " S ", fmt.Sprintf(" %v ", time[0])).Replace(letters.Replace(want))
					if got := fmt.Sprint(reply); got != want {
						t.Errorf("%s: %s, want %s", what, got, want)
					}
				}
				is(b.script, s.Do(b.call(scripts)...), b.reply)
				for command, reply := range b.after {
					is(command, s.Do(strings.Fields(letters.Replace(command))...), reply)
				}
			})
		})
	}
}

// call is the command that runs the script.
func (b *branch) call(scripts map[string]string) []string {
	name, _, fenced := strings.Cut(b.script, " ")
	keys := []string{"x", "$Q", "$D", "$B", "$C"}
	switch {
	case name == "renew":
		keys = keys[:1]
	case name == "keep":
		keys = keys[:3]
	case !fenced && len(b.argv) < 5 || name == "join":
		keys = keys[:4]
	}
	all := []string{"eval", scripts[name], fmt.Sprint(len(keys))}
	for _, key := range keys {
		all = append(all, letters.Replace(key))
	}
	return append(all, b.argv...)
}

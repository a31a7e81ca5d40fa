package vredis_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// branch is one way through a script. In its texts $Q, $D, $B and $C are the queue of the lock x, its zset, its tombstones and
// its counter; $1 and $2 are ids of one process, $3 one of another process, $R and $S two of Redisson. $V and $E are the queue and
// the zset of a read-write lock, %1 to %3 the keys that the rights of $1 to $3 end with, and $w is behind the id of a writer. In
// a reply T is the server's time in milliseconds, which stands still, and S that in seconds.
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
	"$1", mine, "$2", also, "$3", others, "$R", redissonIDs[0], "$S", redissonIDs[1],
	"$V", "holdfast_rw_queue:{x}", "$E", "holdfast_rw_timeout:{x}", "$w", ":write",
	"%1", "{x}:"+mine+":rwlock_timeout:1", "%2", "{x}:"+also+":rwlock_timeout:1", "%3", "{x}:"+others+":rwlock_timeout:1")

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

	{"two leave", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1 $3 $2", "zadd $D 9000000000000 $1 9000000000000 $3 9000000000000 $2"}, "leave", leaving("2000 1 0", "0", "1", "2"), "-2", map[string]string{"lrange $Q 0 -1": "[$3]", "zrange $D 0 -1": "[$3]", "exists $B": "0"}},
	{"two leave, and one may come late", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1 $2", "zadd $D 9000000000000 $1 9000000000000 $2"}, "leave", leaving("2000 1 0", "1", "1", "2"), "-2", map[string]string{"exists $Q $D": "0", "zrange $B 0 -1": "[$1]", "pttl $B": "60000"}},
	{"one that leaves was granted it, and passes it on", []string{"hset x $1 1", "pexpire x 2000", "rpush $Q $2 $3", "zadd $D 9000000000000 $2 9000000000000 $3"}, "leave", leaving("2000 2 0", "0", "1", "2"), "-3", map[string]string{"hgetall x": "[$3 1]", "pttl x": "2000", "exists $Q $D": "0"}},
	{"one that leaves was granted it, and is the last", []string{"hset x $1 1", "pexpire x 2000"}, "leave", leaving("2000 2 0", "0", "1", "2"), "0", map[string]string{"exists x": "0"}},
	{"two leave a lock that nothing holds", nil, "leave", leaving("2000 1 0", "0", "1", "2"), "-1", nil},

	{"stays taken", []string{"hset x $1 1", "pexpire x 7000"}, "lock_stay", staying(mine, also, "0"), "0", map[string]string{"hgetall x": "[$2 1]", "pttl x": "900"}},
	{"stays taken, as an earlier copy did", []string{"hset x $2 1", "pexpire x 800"}, "lock_stay", staying(mine, also, "0"), "0", map[string]string{"hgetall x": "[$2 1]", "pttl x": "800"}},
	{"stays taken, but is free", nil, "lock_stay", staying(mine, also, "60000"), "-1", map[string]string{"exists x": "0", "zrange $B 0 -1": "[$1]"}},
	{"stays taken, but is another's", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1", "zadd $D 9000000000000 $1"}, "lock_stay", staying(mine, also, "0"), "-2", map[string]string{"hgetall x": "[$3 1]", "exists $Q": "0"}},
	{"stays taken, but is a list", []string{"rpush x a"}, "lock_stay", staying(mine, also, "0"), "-2", map[string]string{"lrange x 0 -1": "[a]"}},

	{"two at once", nil, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "0", map[string]string{"hgetall x": "[$1 1]", "hgetall y": "[$2 1]", "pttl x": "30000", "pttl y": "5000"}},
	{"two at once, as an earlier copy did", []string{"hset x $1 1", "pexpire x 40000", "hset y $2 1", "pexpire y 2000"}, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "0", map[string]string{"pttl x": "40000", "pttl y": "5000"}},
	{"the second is held", []string{"hset y $3 1", "pexpire y 7000"}, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "[0 2 0]", map[string]string{"exists x": "0"}},
	{"the first is waited for", []string{"rpush $Q $3", "zadd $D 9000000000000 $3"}, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "[0 1 1]", map[string]string{"exists x y": "0", "lrange $Q 0 -1": "[$3]"}},
	{"the first is waited for by the dead", []string{"rpush $Q $3", "zadd $D 1 $3"}, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "0", map[string]string{"exists x y": "2"}},
	{"the first was given up", []string{"zadd $B 9000000000000 $1"}, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "[0 1 0]", map[string]string{"exists x y": "0"}},
	{"the second is a string", []string{"set y a"}, "multi_acquire", []string{heardManager, "1", "30000", "2", "5000"}, "[-1 2 y a string]", map[string]string{"exists x": "0"}},

	{"write, free", nil, "rw_acquire", []string{mine + ":write", "30000", none}, "0", map[string]string{"hgetall x": "[mode write $1$w 1]", "pttl x": "30000"}},
	{"read, free", nil, "rw_acquire", []string{mine, "30000", none}, "0", map[string]string{"hgetall x": "[mode read $1 1]", "pttl x": "30000", "pttl %1": "30000"}},
	{"read, with a token", []string{"set $C 41"}, "rw_acquire", []string{mine, "30000", none, "1", "7"}, "42", map[string]string{"get $C": "42"}},
	{"write, with a token", []string{"set $C 41"}, "rw_acquire", []string{mine + ":write", "30000", none, "2", "7"}, "43", map[string]string{"get $C": "43"}},
	{"read beside a reader", []string{"hset x mode read $3 1", "pexpire x 40000", "set %3 1 px 40000"}, "rw_acquire", []string{mine, "30000", none}, "0", map[string]string{"hgetall x": "[mode read $3 1 $1 1]", "pttl x": "40000", "pttl %1": "30000"}},
	{"write beside a reader, without waiting", []string{"hset x mode read $3 1", "pexpire x 7000", "set %3 1 px 7000"}, "rw_acquire", []string{mine + ":write", "30000", none}, "[0 0 7000 T 0]", map[string]string{"exists $V": "0"}},
	{"write beside a reader, waiting", []string{"hset x mode read $3 1", "pexpire x 7000", "set %3 1 px 7000"}, "rw_acquire", []string{mine + ":write", "30000", waits}, "[0 0 7000 T 0]", map[string]string{"lrange $V 0 -1": "[$1$w]"}},
	{"read beside a reader, and a writer waits", []string{"hset x mode read $3 1", "pexpire x 7000", "set %3 1 px 7000", "rpush $V $3$w", "zadd $E 9000000000000 $3$w"}, "rw_acquire", []string{mine, "30000", waits}, "[0 0 7000 T 0]", map[string]string{"lrange $V 0 -1": "[$3$w $1]", "hexists x $1": "0"}},
	{"read beside a writer of Redisson", []string{"hset x mode write $R$w 1", "pexpire x 7000"}, "rw_acquire", []string{mine, "30000", none}, "[0 0 7000 T 1]", nil},
	{"write, given up before", []string{"zadd $B 9000000000000 $1$w"}, "rw_acquire", []string{mine + ":write", "30000", none}, "[-2]", map[string]string{"exists x": "0"}},
	{"write, downgraded since", []string{"hset x mode read $1 1", "pexpire x 7000", "set %1 1 px 7000"}, "rw_acquire", []string{mine + ":write", "30000", none}, "[-2]", map[string]string{"hgetall x": "[mode read $1 1]"}},
	{"read of a mutex", []string{"hset x $3 1", "pexpire x 7000"}, "rw_acquire", []string{mine, "30000", none}, "[-1 x a hash]", map[string]string{"hgetall x": "[$3 1]"}},

	{"write, released", []string{"hset x mode write $1$w 1", "pexpire x 7000"}, "rw_release", releasing(mine+":write", "2000 1 0"), "0", map[string]string{"exists x": "0"}},
	{"read, released", []string{"hset x mode read $1 1", "pexpire x 7000", "set %1 1 px 7000"}, "rw_release", releasing(mine, "2000 1 0"), "0", map[string]string{"exists x %1": "0"}},
	{"read, released beside a reader", []string{"hset x mode read $1 1 $3 1", "pexpire x 7000", "set %1 1 px 7000", "set %3 1 px 5000"}, "rw_release", releasing(mine, "2000 1 0"), "-3", map[string]string{"hgetall x": "[mode read $3 1]", "pttl x": "5000", "exists %1": "0"}},
	{"write, granted to readers", []string{"hset x mode write $1$w 1", "pexpire x 7000", "rpush $V $2 $3 $3$w", "zadd $E 9000000000000 $2 9000000000000 $3 9000000000000 $3$w"}, "rw_release", releasing(mine+":write", "2000 1 0"), "g 2 2000 S 0 1 1 0", map[string]string{"hgetall x": "[mode read $2 1 $3 1]", "lrange $V 0 -1": "[$3$w]", "pttl %3": "2000"}},
	{"read, granted to a writer", []string{"hset x mode read $1 1", "pexpire x 7000", "set %1 1 px 7000", "rpush $V $3$w", "zadd $E 9000000000000 $3$w"}, "rw_release", releasing(mine, "2000 1 0"), "-3", map[string]string{"hgetall x": "[mode write $3$w 1]", "exists $V $E": "0"}},
	{"write, granted with tokens", []string{"hset x mode write $1$w 1", "pexpire x 7000", "rpush $V $2$w", "zadd $E 9000000000000 $2$w"}, "rw_release fenced", releasing(mine+":write", "2000 1 0"), "g 2 2000 S 0 1 0 128", map[string]string{"get $C": "128"}},
	{"write, and the process of the next is dead", []string{"hset x mode write $1$w 1", "pexpire x 7000", "rpush $V $3 $2", "zadd $E 9000000000000 $3 9000000000000 $2"}, "rw_release", releasing(mine+":write", "2000 1 1"), "g 2 2000 S 0 1 0 0", map[string]string{"hgetall x": "[mode read $2 1]"}},
	{"write, free before", nil, "rw_release", releasing(mine+":write", "2000 1 0"), "-1", nil},
	{"read, another's", []string{"hset x mode write $3$w 1", "pexpire x 7000"}, "rw_release", releasing(mine, "2000 1 0"), "-2", map[string]string{"hgetall x": "[mode write $3$w 1]"}},
	{"write, given up in the queue", []string{"hset x mode write $3$w 1", "pexpire x 7000", "rpush $V $1$w", "zadd $E 9000000000000 $1$w"}, "rw_release", append(releasing(mine+":write", "2000 1 0"), "60000"), "-2", map[string]string{"exists $V $E": "0", "zrange $B 0 -1": "[$1$w]"}},

	{"downgraded", []string{"hset x mode write $1$w 1", "pexpire x 7000"}, "rw_downgrade", []string{mine, "publish", "2000 1 0", "30000"}, "0", map[string]string{"hgetall x": "[mode read $1 1]", "pttl %1": "30000"}},
	{"downgraded, and a reader comes in", []string{"hset x mode write $1$w 1", "pexpire x 7000", "rpush $V $3", "zadd $E 9000000000000 $3"}, "rw_downgrade", []string{mine, "publish", "2000 1 0", "30000"}, "0", map[string]string{"hgetall x": "[mode read $1 1 $3 1]", "exists $V": "0"}},
	{"downgraded by an earlier copy", []string{"hset x mode read $1 1", "pexpire x 7000", "set %1 1 px 7000"}, "rw_downgrade", []string{mine, "publish", "2000 1 0", "30000"}, "0", map[string]string{"pttl %1": "30000", "pttl x": "30000"}},
	{"downgraded, but gone", nil, "rw_downgrade", []string{mine, "publish", "2000 1 0", "30000"}, "-1", map[string]string{"exists x": "0"}},
	{"downgraded, but another's", []string{"hset x mode write $3$w 1", "pexpire x 7000"}, "rw_downgrade", []string{mine, "publish", "2000 1 0", "30000"}, "-2", nil},

	{"write, stays taken", []string{"hset x mode write $1$w 1", "pexpire x 7000"}, "rw_stay", staying(mine+":write", also+":write", "0"), "0", map[string]string{"hgetall x": "[mode write $2$w 1]", "pttl x": "900"}},
	{"read, stays taken", []string{"hset x mode read $1 1", "pexpire x 7000", "set %1 1 px 7000"}, "rw_stay", staying(mine, also, "0"), "0", map[string]string{"hgetall x": "[mode read $2 1]", "pttl %2": "900", "exists %1": "0"}},
	{"write, stays taken, but gone", nil, "rw_stay", staying(mine+":write", also+":write", "60000"), "-1", map[string]string{"zrange $B 0 -1": "[$1$w]"}},

	{"read, renewed", []string{"hset x mode read $1 1", "pexpire x 7000", "set %1 1 px 7000"}, "renew_read", []string{"30000", heardManager, "1"}, "[1]", map[string]string{"pttl x": "30000", "pttl %1": "30000"}},
	{"read, renewed after its end", []string{"hset x mode read $1 1", "pexpire x 7000"}, "renew_read", []string{"30000", heardManager, "1"}, "[0]", map[string]string{"pttl x": "7000", "exists %1": "0"}},
	{"read, renewed, and another's", []string{"hset x mode write $3$w 1", "pexpire x 7000"}, "renew_read", []string{"30000", heardManager, "1"}, "[2]", nil},
}

func leaving(offer, late string, tails ...string) []string {
	return append([]string{"publish", offer, "60000", late, heardManager}, tails...)
}

func staying(id, stays, burial string) []string {
	return []string{id, stays, "900", "publish", "ch", burial}
}

func releasing(id, offer string) []string { return []string{id, "publish", "ch", offer} }

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
	fenced = fenced || strings.HasSuffix(name, "_acquire") && len(b.argv) == 5
	queue, tombstones := []string{"x", "$Q", "$D"}, []string{"$B"}
	if strings.HasPrefix(name, "rw_") {
		queue = []string{"x", "$V", "$E"}
		if writer := strings.HasSuffix(b.argv[0], ":write"); !writer && name == "rw_stay" {
			tombstones = []string{"$B", "%1", "%2"}
		} else if !writer {
			queue = append(queue, "%1")
		}
	}
	if fenced {
		tombstones = append(tombstones, "$C")
	}
	keys := append(queue, tombstones...)
	switch name {
	case "renew":
		keys = keys[:1]
	case "renew_read":
		keys = []string{"x", "%1"}
	case "keep":
		keys = keys[:3]
	case "multi_acquire":
		keys = []string{"x", "$Q", "$D", "$B", "y", "q{y}", "d{y}", "b{y}"}
	}
	all := []string{"eval", scripts[name], fmt.Sprint(len(keys))}
	for _, key := range keys {
		all = append(all, letters.Replace(key))
	}
	return append(all, b.argv...)
}

package vredis_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/vredis"
	names "github.com/holdfast-go/holdfast/internal/wire"
)

// Scripts and processes agree on which permits are Holdfast's.
func TestPermits_AreToldApart(t *testing.T) {
	s := vredis.New(vredis.Options{})
	defer s.Stop()
	random, seen := rand.New(rand.NewPCG(1, 2)), map[bool]int{}
	for range 20_000 {
		b := make([]byte, 16)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		for at, fits := range map[int]byte{6: 0x40 | b[6]&15, 8: 0x80 | b[8]&63, names.PermitManager: byte(random.IntN(2))} {
			if random.IntN(4) > 0 {
				b[at] = fits
			}
		}
		_, ours := names.PermitOwner(hex.EncodeToString(b))
		if found := s.Do("eval", "return string.find(ARGV[1], "+names.PermitPattern+") and 1 or 0", "0", string(b)); (found == int64(1)) != ours {
			t.Fatalf("%x: scripts say %v, processes %v", b, found, ours)
		}
		seen[ours]++
	}
	if seen[true] < 5000 || seen[false] < 5000 {
		t.Errorf("of Holdfast are %d, and %d are not", seen[true], seen[false])
	}
}

// A request for permits has the owner id of a claim, which says for how many it is, and their ids.
func acquiring(id, wait string, more ...string) []string {
	return slices.Concat([]string{id, "30000", wait, "3", permitsOf(id)}, more)
}

func givingBack(id, offer string, burial ...string) []string {
	return append([]string{id, "publish", offer, permitsOf(id)}, burial...)
}

// permitsOf are the permits of a claim such as $1:2.
func permitsOf(id string) (ids string) {
	var first, n int
	_, _ = fmt.Sscanf(strings.TrimLeft(strings.TrimPrefix(id, heardManager), "$"), "%d:%d", &first, &n)
	for i := range n {
		ids += fmt.Sprint("$p", first+i)
	}
	return ids
}

func resting(id, stays, burial string) []string { return []string{id, stays, "900", burial} }

// ticketOf2 is the owner id of a ticket for two permits.
const ticketOf2 = "$1099511627776:2"

func setting(total string) []string { return []string{total, "publish", "2000 1 0"} }

// How a caller waits on a server that knows of all listeners, and what Redis says if it has no memory left.
const (
	counting = "none heard 0 2000 1 1 publish"
	noMemory = "OOM command not allowed when used memory > 'maxmemory'."
)

// heldPermits are n of another process.
func heldPermits(n int) string {
	text := "zadd $H"
	for i := range n {
		text += fmt.Sprint(" T+9000 $q", 100+i)
	}
	return text
}

// permitBranches take, give back, renew, count and show permits of a semaphore. Beside what they say themselves, none makes or loses
// one: those that are available and those that are held stay as many.
var permitBranches = []branch{
	// permit_acquire.lua
	{"permit, and there was no number", nil, "permit_acquire", acquiring("$1:1", none), "0", map[string]string{"get x": "2", "pttl x": "-1", "zrange $H 0 -1": "[$p1]", "zcount $H T+30000 T+30000": "1", "pttl $H": "-1"}},
	{"permits, several", []string{"set x 5"}, "permit_acquire", acquiring("$1:3", none), "0", map[string]string{"get x": "2", "zrange $H 0 -1": "[$p1 $p2 $p3]"}},
	{"permits, a thousand", []string{"set x 1000"}, "permit_acquire", acquiring("$1:1000", none), "0", map[string]string{"get x": "0", "zcard $H": "1000", "zcount $H T+30000 T+30000": "1000"}},
	{"permits, with numbers of two bytes", []string{"set x 5"}, "permit_acquire", acquiring("$255:2", none), "0", map[string]string{"zrange $H 0 -1": "[$p255 $p256]"}},
	{"permits, with numbers of five bytes", []string{"set x 5"}, "permit_acquire", acquiring("$4294967295:2", none), "0", map[string]string{"zrange $H 0 -1": "[$p4294967295 $p4294967296]"}},
	{"permits, with numbers of six bytes", []string{"set x 5"}, "permit_acquire", acquiring("$1099511627775:2", none), "0", map[string]string{"zrange $H 0 -1": "[$p1099511627775 $p1099511627776]"}},
	{"permit of which there is none", []string{"set x 0", "zadd $H T+9000 $q1 T+4000 $q2"}, "permit_acquire", acquiring("$1:1", none), "[0 0 4000 T 0 2]", map[string]string{"exists $G": "0", "zrange $H 0 -1": "[$q2 $q1]"}},
	{"permits of which too few are available, and the caller waits", []string{"set x 1", "zadd $H T+4000 $q1"}, "permit_acquire", acquiring("$1:2", waits), "[0 0 4000 T 0 2]", map[string]string{"get x": "1", "lrange $G 0 -1": "[$1:2]", "zcount $F T+10000 T+10000": "1", "pttl $G": "86400000"}},
	{"permit, and Redisson has the first to end", []string{"set x 0", "zadd $H T+4000 $r1 T+9000 $q1"}, "permit_acquire", acquiring("$1:1", none), "[0 0 4000 T 1 2]", nil},
	{"permit, and Redisson has the last to end", []string{"set x 0", heldPermits(30), "zadd $H T+9001 $r1"}, "permit_acquire", acquiring("$1:1", none), "[0 0 9000 T 1 31]", nil},
	{"permit, and Redisson has one in the middle", []string{"set x 0", heldPermits(9), "zadd $H T+9001 $r1 T+9002 $q1 T+9002 $q2 T+9002 $q3 T+9002 $q4 T+9002 $q5 T+9002 $q6 T+9002 $q7 T+9002 $q8"}, "permit_acquire", acquiring("$1:1", none), "[0 0 9000 T 0 18]", nil},
	{"permit that Redisson has forever", []string{"set x 0", "zadd $H 922337203685477 $r1"}, "permit_acquire", acquiring("$1:1", none), "[0 0 -1 T 1 1]", nil},
	{"permit that ends in two days", []string{"set x 0", "zadd $H T+172800000 $q1"}, "permit_acquire", acquiring("$1:1", none), "[0 0 -1 T 0 1]", nil},
	{"permit that has ended", []string{"set x 0", "zadd $H T $r1 T+4000 $q1"}, "permit_acquire", acquiring("$1:1", none), "0", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q1 $p1]"}},
	{"permits of which one has ended", []string{"set x 0", "zadd $H 1 $q1 T+4000 $q2"}, "permit_acquire", acquiring("$1:2", none), "[0 0 4000 T 0 2]", map[string]string{"get x": "1", "zrange $H 0 -1": "[$q2]"}},
	{"permit, and the number was lost", []string{"zadd $H T+4000 $q1 1 $q2"}, "permit_acquire", acquiring("$1:1", none), "0", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q2 $q1 $p1]"}},
	{"permits, and the number was lost", []string{"zadd $H T+4000 $q1 1 $q2"}, "permit_acquire", acquiring("$1:2", none), "0", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q1 $p1 $p2]"}},
	{"permit after a cut", []string{"set x -1", "zadd $H T+4000 $q1 T+5000 $q2"}, "permit_acquire", acquiring("$1:1", none), "[0 0 4000 T 0 1]", map[string]string{"get x": "-1"}},
	{"permit, and the number is none", []string{"set x abc"}, "permit_acquire", acquiring("$1:1", none), `[-1 x "abc", which is no number]`, map[string]string{"exists $H": "0"}},
	{"permit, and the number is too large", []string{"set x 9007199254740992"}, "permit_acquire", acquiring("$1:1", none), `[-1 x "9007199254740992", which is no number]`, map[string]string{"exists $H": "0"}},
	{"permit of a mutex", []string{"hset x $3 1"}, "permit_acquire", acquiring("$1:1", none), "[-1 x a mutex or fair lock]", map[string]string{"exists $H": "0"}},
	{"permit, and those that are held are a list", []string{"set x 3", "rpush $H a"}, "permit_acquire", acquiring("$1:1", waits), "[-1 $H a list]", map[string]string{"exists $G": "0"}},
	{"permit, and its tombstones are a string", []string{"set x 3", "set $B a"}, "permit_acquire", acquiring("$1:1", waits), "[-1 $B a string]", nil},
	{"permit, and its queue is a string", []string{"set x 3", "set $G a"}, "permit_acquire", acquiring("$1:1", none), "[-1 $G a string]", map[string]string{"exists $H": "0"}},
	{"permit, and its deadlines are a string", []string{"set x 3", "rpush $G $3:1", "set $F a"}, "permit_acquire", acquiring("$1:1", none), "[-1 $F a string]", map[string]string{"exists $H": "0"}},
	{"permit of a claim that was given up", []string{"set x 3", "zadd $B T+6000 $1:1"}, "permit_acquire", acquiring("$1:1", waits), "[-2]", map[string]string{"exists $H": "0"}},
	{"permits, as an earlier copy took them", []string{"set x 0", "zadd $H T+2000 $p1 T+2000 $p2", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_acquire", acquiring("$1:2", waits), "0", map[string]string{"get x": "0", "zcount $H T+30000 T+30000": "2", "lrange $G 0 -1": "[$3:1]"}},
	{"permits, of which one was lost since an earlier copy", []string{"set x 2", "zadd $H T+2000 $p1"}, "permit_acquire", acquiring("$1:2", waits), "0", map[string]string{"get x": "1", "zcount $H T+30000 T+30000": "2"}},
	{"permits, as an earlier copy took them for longer", []string{"set x 2", "zadd $H T+40000 $p1 T+40000 $p2"}, "permit_acquire", acquiring("$1:2", waits), "0", map[string]string{"get x": "2", "zcount $H T+40000 T+40000": "2"}},
	{"permit, and more than there are wanted before", []string{"set x 1", "zadd $H T+4000 $q8", "rpush $G $3:2", "zadd $F T+6000 $3:2"}, "permit_acquire", acquiring("$1:1", none), "[0 0 4000 T 0 2]", map[string]string{"get x": "1"}},
	{"permit, and the caller stands behind one that wants more", []string{"set x 1", "zadd $H T+4000 $q8", "rpush $G $3:2", "zadd $F T+6000 $3:2"}, "permit_acquire", acquiring("$1:1", waits), "[0 0 4000 T 0 2]", map[string]string{"get x": "1", "lrange $G 0 -1": "[$3:2 $1:1]"}},
	{"permits, left open for others", []string{"set x 2", "rpush $G $3:2", "zadd $F T+6000 $3:2"}, "permit_acquire", acquiring("$1:1", waits), "[0 1 50 T 0 2]", map[string]string{"get x": "2", "lrange $G 0 -1": "[$3:2 $1:1]"}},
	{"permits, left open, and the first asks again", []string{"set x 1", "rpush $G $1:1 $3:1", "zadd $F T+6000 $1:1 T+6000 $3:1"}, "permit_acquire", acquiring("$1:1", again), "0", map[string]string{"lrange $G 0 -1": "[$3:1]", "zrange $F 0 -1": "[$3:1]", "zrange $H 0 -1": "[$p1]"}},
	{"permits, left open, and one asks that is not the first", []string{"set x 2", "rpush $G $3:1 $1:1", "zadd $F T+6000 $3:1 T+6000 $1:1"}, "permit_acquire", acquiring("$1:1", again), "0", map[string]string{"exists $G $F": "0", "zrange $H 0 -1": "[$q3 $p1]", "sent": "$J g 3 2000 S 0 1 1 0"}},
	{"permits, left open, and they do not suffice for one that asks", []string{"set x 2", "rpush $G $3:1 $1:2", "zadd $F T+6000 $3:1 T+6000 $1:2"}, "permit_acquire", acquiring("$1:2", again), "[0 0 2000 T 0 2]", map[string]string{"get x": "1", "lrange $G 0 -1": "[$1:2]", "sent": "$J g 3 2000 S 0 1 1 0"}},
	{"permit, and the process of the first is dead", []string{"set x 1", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_acquire", acquiring("$1:1", counting), "0", map[string]string{"exists $G $F": "0", "zrange $H 0 -1": "[$p1]"}},
	{"permit, and the time of the first is over", []string{"set x 1", "rpush $G $3:1", "zadd $F 1 $3:1"}, "permit_acquire", acquiring("$1:1", waits), "0", map[string]string{"exists $G $F": "0", "zrange $H 0 -1": "[$p1]"}},
	{"permit, and the first was put there by hand", []string{"set x 1", "rpush $G a", "zadd $F T+6000 a"}, "permit_acquire", acquiring("$1:1", none), "0", map[string]string{"exists $G $F": "0", "zrange $H 0 -1": "[$p1]"}},
	{"permit, and more are dead than one request removes", append(overdue("$G", 501), "set x 1"), "permit_acquire", acquiring("$1:1", waits), "[0 3 -1 T 0 1]", map[string]string{"get x": "1", "llen $G": "2"}},
	{"permit, and more processes are dead than one request removes", append(dead("$G", 130), "set x 1"), "permit_acquire", acquiring("$1:1", counting), "[0 3 -1 T 0 1]", map[string]string{"get x": "1", "llen $G": "5"}},
	{"permits, more than there are", []string{"set x 1", "zadd $H T+4000 $q1", "rpush $G $1:3 $3:1", "zadd $F T+6000 $1:3 T+6000 $3:1"}, "permit_acquire", acquiring("$1:3", again), "[0 5 4000 T 0 2]", map[string]string{"get x": "1", "lrange $G 0 -1": "[$3:1]", "zrange $F 0 -1": "[$3:1]"}},
	{"permits, more than there are on a replica", []string{"set x 1", "replicaof 127.0.0.1 1"}, "permit_acquire", acquiring("$1:3", none), replica, nil},
	{"permit of which there is none on a replica", []string{"set x 0", "replicaof 127.0.0.1 1"}, "permit_acquire", acquiring("$1:1", none), replica, nil},
	{"permit on a replica", []string{"set x 1", "replicaof 127.0.0.1 1"}, "permit_acquire", acquiring("$1:1", none), replica, nil},
	{"permit of a semaphore that is forgotten when idle", nil, "permit_acquire", acquiring("$1:1", none, "60000"), "0", map[string]string{"pttl x": "60000", "pttl $H": "60000"}},
	{"permit of one that was forgotten, and others wait", []string{"rpush $G $3:2", "zadd $F T+6000 $3:2"}, "permit_acquire", acquiring("$1:1", waits, "60000"), "[0 1 50 T 0 3]", map[string]string{"get x": "3", "pttl x": "60000", "lrange $G 0 -1": "[$3:2 $1:1]"}},
	{"permit of one that is forgotten when idle, which another has for longer", []string{"set x 2 px 50000", "zadd $H T+90000 $q1"}, "permit_acquire", acquiring("$1:1", none, "60000"), "0", map[string]string{"pttl x": "90000", "pttl $H": "90000"}},
	{"permit of a semaphore that Redisson lets end later", []string{"set x 3 px 80000"}, "permit_acquire", acquiring("$1:1", none), "0", map[string]string{"pttl x": "80000", "pttl $H": "80000"}},
	{"permit of a semaphore that Redisson lets end before the lease", []string{"set x 3 px 7000"}, "permit_acquire", acquiring("$1:1", none), "0", map[string]string{"pttl x": "30000", "pttl $H": "30000"}},
	{"permit, and it is refused", []string{"set x 3", "acl setuser default -zadd"}, "permit_acquire", acquiring("$1:1", none), denied, map[string]string{"get x": "3"}},
	{"permit, and the number may not be changed", []string{"set x 3", "acl setuser default -incrby"}, "permit_acquire", acquiring("$1:1", none), denied, map[string]string{"get x": "3", "exists $H": "0"}},
	{"permit that has ended, and may not be removed", []string{"set x 0", "zadd $H 1 $q1", "acl setuser default -zremrangebyscore"}, "permit_acquire", acquiring("$1:1", none), "[0 0 1 T 0 1]", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q1]"}},
	{"permit, and there is no memory", []string{"set x 1", "zadd $H 1 $q1", "config set maxmemory 1"}, "permit_acquire", acquiring("$1:2", none), noMemory, map[string]string{"get x": "1", "zrange $H 0 -1": "[$q1]"}},
	{"permit, and its place is refused", []string{"set x 0", "zadd $H T+4000 $q1", "acl setuser default -zadd"}, "permit_acquire", acquiring("$1:1", waits), "HOLDFAST cannot keep a place in the queue", map[string]string{"exists $G $F": "0"}},

	// permit_release.lua
	{"permit back", []string{"set x 0", "zadd $H T+4000 $p1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "0", map[string]string{"get x": "1", "exists $H": "0", "sent": "$M 1"}},
	{"permits back, and one client listens", []string{"set x 1", "zadd $H T+4000 $p1 T+4000 $p2 T+4000 $q1", "subscribe $M"}, "permit_release", givingBack("$1:2", "2000 1 0"), "1", map[string]string{"get x": "3", "zrange $H 0 -1": "[$q1]", "sent": "$M 3"}},
	{"permits back, as an earlier copy gave them", []string{"set x 3", "zadd $H T+4000 $q1"}, "permit_release", givingBack("$1:2", "2000 1 0"), "-1", map[string]string{"get x": "3", "zrange $H 0 -1": "[$q1]"}},
	{"permit back after a cut", []string{"set x -2", "zadd $H T+4000 $p1 T+4000 $q1 T+4000 $q2"}, "permit_release", givingBack("$1:1", "2000 1 0"), "0", map[string]string{"get x": "-1"}},
	{"permit back, and the number was lost", []string{"zadd $H T+4000 $p1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "0", map[string]string{"exists x $H": "0"}},
	{"permit back, and the number is none", []string{"set x abc", "zadd $H T+4000 $p1", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-3", map[string]string{"get x": "abc", "exists $H": "0", "llen $G": "1", "sent": "$J o 3"}},
	{"permit back, and the number was lost, and another waits", []string{"zadd $H T+4000 $p1", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-3", map[string]string{"exists x $H": "0", "llen $G": "1", "sent": "$J o 3"}},
	{"permit back, and those that are held are a list", []string{"set x 2", "rpush $H a"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-1", map[string]string{"get x": "2"}},
	{"permit back on a replica", []string{"set x 0", "zadd $H T+4000 $p1", "replicaof 127.0.0.1 1"}, "permit_release", givingBack("$1:1", "2000 1 0"), replica, map[string]string{"get x": "0", "zcard $H": "1"}},
	{"permit back, as an earlier copy gave it, on a replica", []string{"set x 0", "replicaof 127.0.0.1 1"}, "permit_release", givingBack("$1:1", "2000 1 0"), replica, nil},
	{"permit back, and there is no memory", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $3:1", "zadd $F T+6000 $3:1", "config set maxmemory 1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-3", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q3]", "sent": "$J g 3 2000 S 0 1 0 0"}},
	{"permit back, and it is refused", []string{"set x 0", "zadd $H T+4000 $p1", "acl setuser default -zrem"}, "permit_release", givingBack("$1:1", "2000 1 0"), denied, map[string]string{"get x": "0", "zcount $H T+4000 T+4000": "1"}},
	{"permit back, and the number may not be changed", []string{"set x 0", "zadd $H T+4000 $p1", "acl setuser default -incrby"}, "permit_release", givingBack("$1:1", "2000 1 0"), denied, map[string]string{"get x": "0", "zscore $H $p1": "0"}},
	{"permit granted to another process", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-3", map[string]string{"get x": "0", "zcount $H T+2000 T+2000": "1", "zrange $H 0 -1": "[$q3]", "exists $G $F": "0", "sent": "$J g 3 2000 S 0 1 0 0"}},
	{"permit granted to the same process", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $2:1 $3:1", "zadd $F T+6000 $2:1 T+6000 $3:1"}, "permit_release", givingBack("$1:1", "2000 5 0"), "g 2 2000 S 0 5 1 0", map[string]string{"get x": "0", "zrange $H 0 -1": "[$p2]", "lrange $G 0 -1": "[$3:1]"}},
	{"permits granted to two, and the rest is announced", []string{"set x 0", "zadd $H T+4000 $p1 T+4000 $p2 T+4000 $p3 T+4000 $p4", "rpush $G $3:1 $4:2", "zadd $F T+6000 $3:1 T+6000 $4:2"}, "permit_release", givingBack("$1:4", "2000 1 0"), "g 4 2000 S 0 1 0 0", map[string]string{"get x": "1", "zrange $H 0 -1": "[$p4 $p5 $q3]", "exists $G $F": "0", "sent": "$J g 3 2000 S 0 1 1 0, $M 1"}},
	{"permits granted to two of the same process", []string{"set x 0", "zadd $H T+4000 $p6 T+4000 $p7", "rpush $G $2:1 $4:1", "zadd $F T+6000 $2:1 T+6000 $4:1"}, "permit_release", givingBack(heardManager+"6:2", "2000 1 0"), "g 2 2000 S 0 1 1 0", map[string]string{"zrange $H 0 -1": "[$p2 $p4]", "sent": "$I g 4 2000 S 0 1 0 0"}},
	{"permit back, which does not suffice for the first", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $3:2 $2:1", "zadd $F T+6000 $3:2 T+6000 $2:1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "0", map[string]string{"get x": "1", "lrange $G 0 -1": "[$3:2 $2:1]", "sent": "$M 1"}},
	{"permit back, which suffices with one that has ended", []string{"set x 0", "zadd $H T+4000 $p1 1 $r1", "rpush $G $3:2", "zadd $F T+6000 $3:2"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-3", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q3 $q4]", "sent": "$J g 3 2000 S 0 1 0 0"}},
	{"permit back, and the process of the first is dead", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $3:1 $2:1", "zadd $F T+6000 $3:1 T+6000 $2:1"}, "permit_release", givingBack("$1:1", "2000 1 1"), "g 2 2000 S 0 1 0 0", map[string]string{"get x": "0", "zrange $H 0 -1": "[$p2]", "exists $G $F": "0"}},
	{"permit back, and more processes are dead than one request removes", append(dead("$G", 130), "set x 0", "zadd $H T+4000 $p1"), "permit_release", givingBack("$1:1", "2000 1 1"), "-4", map[string]string{"get x": "1", "llen $G": "5", "sent": "$M 1"}},
	{"permit back in Redisson's turn, and one client listens", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $2:1", "zadd $F T+6000 $2:1", "subscribe $M"}, "permit_release", givingBack("$1:1", "2000 17 0"), "-3", map[string]string{"get x": "1", "lrange $G 0 -1": "[$2:1]", "sent": "$I o 2, $M 1"}},
	{"permit back in Redisson's turn, and no client listens", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $2:1", "zadd $F T+6000 $2:1"}, "permit_release", givingBack("$1:1", "2000 17 0"), "g 2 2000 S 0 1 0 0", map[string]string{"zrange $H 0 -1": "[$p2]"}},
	{"permit back after a cut in Redisson's turn", []string{"set x -1", "zadd $H T+4000 $p1", "rpush $G $2:1", "zadd $F T+6000 $2:1", "subscribe $M"}, "permit_release", givingBack("$1:1", "2000 17 0"), "0", map[string]string{"get x": "0", "lrange $G 0 -1": "[$2:1]"}},
	{"permit back, and a grant is refused", []string{"set x 0", "zadd $H T+4000 $p1", "rpush $G $3:1", "zadd $F T+6000 $3:1", "acl setuser default -zadd"}, "permit_release", givingBack("$1:1", "2000 1 0"), "0", map[string]string{"get x": "1", "lrange $G 0 -1": "[$3:1]", "sent": "$M 1"}},
	{"permit given up in the queue, and the next suffices with what there is", []string{"set x 1", "zadd $H T+4000 $q8", "rpush $G $1:2 $3:1", "zadd $F T+6000 $1:2 T+6000 $3:1"}, "permit_release", givingBack("$1:2", "2000 1 0", "60000"), "-1", map[string]string{"get x": "0", "zrange $H 0 -1": "[$q3 $q8]", "exists $G $F": "0", "zrange $B 0 -1": "[$1:2]", "pttl $B": "60000", "sent": "$J g 3 2000 S 0 1 0 0"}},
	{"permit given up, which the same process waits for", []string{"set x 1", "rpush $G $1:2 $2:1", "zadd $F T+6000 $1:2 T+6000 $2:1"}, "permit_release", givingBack("$1:2", "2000 1 0", "0"), "g 2 2000 S 0 1 0 0", map[string]string{"zrange $H 0 -1": "[$p2]", "exists $B": "0"}},
	{"permit given up in Redisson's turn, and one client listens", []string{"set x 1", "rpush $G $1:2 $2:1", "zadd $F T+6000 $1:2 T+6000 $2:1", "subscribe $M"}, "permit_release", givingBack("$1:2", "2000 17 0", "0"), "-1", map[string]string{"get x": "1", "lrange $G 0 -1": "[$2:1]", "sent": "$I o 2, $M 1"}},
	{"permit that was lost, and the claim stands in the queue", []string{"set x 0", "zadd $H T+4000 $q1", "rpush $G $1:1 $3:1", "zadd $F T+6000 $1:1 T+6000 $3:1"}, "permit_release", givingBack("$1:1", "2000 1 0"), "-1", map[string]string{"lrange $G 0 -1": "[$3:1]", "zrange $F 0 -1": "[$3:1]"}},

	// permit_stay.lua
	{"permits stay taken", []string{"set x 1", "zadd $H T+30000 $p1 T+30000 $p2"}, "permit_stay", resting("$1:2", "$4:2", "0"), "0", map[string]string{"get x": "1", "zrange $H 0 -1": "[$p4 $p5]", "zcount $H T+900 T+900": "2", "exists $B": "0"}},
	{"permits stay taken, as an earlier copy said", []string{"set x 1", "zadd $H T+800 $p4 T+800 $p5"}, "permit_stay", resting("$1:2", "$4:2", "0"), "0", map[string]string{"get x": "1", "zcount $H T+800 T+800": "2"}},
	{"permit stays taken, and the next waiter is told", []string{"set x 0", "zadd $H T+30000 $p1 T+700 $q8", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_stay", resting("$1:1", "$4:1", "0"), "0", map[string]string{"zrange $H 0 -1": "[$q8 $p4]", "sent": "$J o 3 700"}},
	{"permit stays taken, and all waiters are told", []string{"set x 0", "zadd $H T+30000 $p1", "rpush $G $3:1 $2:2", "zadd $F T+6000 $3:1 T+6000 $2:2"}, "permit_stay", resting("$1:1", "$4:1", "0"), "0", map[string]string{"sent": "$J o 3 900, $I o 2 900"}},
	{"permit stays taken for longer than the keys", []string{"set x 0 px 300", "zadd $H T+200 $p1", "pexpire $H 300"}, "permit_stay", resting("$1:1", "$4:1", "0"), "0", map[string]string{"pttl x": "900", "pttl $H": "900"}},
	{"permit stays taken, but has ended", []string{"set x 1", "rpush $G $1:1 $3:1", "zadd $F T+6000 $1:1 T+6000 $3:1"}, "permit_stay", resting("$1:1", "$4:1", "60000"), "-1", map[string]string{"get x": "1", "exists $H": "0", "lrange $G 0 -1": "[$3:1]", "zrange $B 0 -1": "[$1:1]"}},
	{"permits stay taken, but one was forced free", []string{"set x 2", "zadd $H T+30000 $p1", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_stay", resting("$1:2", "$4:2", "0"), "-1", map[string]string{"get x": "2", "zrange $H 0 -1": "[$p1]"}},
	{"permits stay taken, but the time of one is over", []string{"set x 1", "zadd $H T+30000 $p1 T $p2"}, "permit_stay", resting("$1:2", "$4:2", "0"), "-1", map[string]string{"get x": "1", "zrange $H 0 -1": "[$p2 $p1]"}},
	{"permit stays taken, but those that are held are a list", []string{"set x 1", "rpush $H a"}, "permit_stay", resting("$1:1", "$4:1", "0"), "-1", map[string]string{"lrange $H 0 -1": "[a]"}},
	{"permit stays taken, but the server is a replica", []string{"set x 0", "zadd $H T+4000 $p1", "replicaof 127.0.0.1 1"}, "permit_stay", resting("$1:1", "$4:1", "0"), replica, map[string]string{"zrange $H 0 -1": "[$p1]"}},
	{"permit stays taken, but that is refused", []string{"set x 0", "zadd $H T+4000 $p1", "acl setuser default -zadd"}, "permit_stay", resting("$1:1", "$4:1", "0"), denied, map[string]string{"zrange $H 0 -1": "[$p1]"}},
	{"permit stays taken, and there is no memory", []string{"set x 0", "zadd $H T+4000 $p1", "config set maxmemory 1"}, "permit_stay", resting("$1:1", "$4:1", "0"), "0", map[string]string{"zrange $H 0 -1": "[$p4]"}},

	// permit_attach.lua
	{"permits attached", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+901 $p1099511627777", "rpush $G $3:1", "zadd $F T+6000 $3:1"}, "permit_attach", attaching("$1:2", ticketOf2), "900", map[string]string{"get x": "1", "zrange $H 0 -1": "[$p1 $p2]", "zcount $H T+30000 T+30000": "2", "lrange $G 0 -1": "[$3:1]", "pttl x": "-1", "pttl $H": "-1"}},
	{"permits attached, and the ticket had longer", []string{"set x 1", "zadd $H T+60000 $p1099511627776 T+60000 $p1099511627777"}, "permit_attach", attaching("$1:2", ticketOf2), "60000", map[string]string{"zcount $H T+30000 T+30000": "2", "zcard $H": "2"}},
	{"permits attached, and the keys end earlier", []string{"set x 1 px 2000", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "pexpire $H 2000"}, "permit_attach", attaching("$1:2", ticketOf2), "900", map[string]string{"pttl x": "30000", "pttl $H": "30000"}},
	{"permits attached for less than the ticket, and all waiters are told", []string{"set x 1", "zadd $H T+60000 $p1099511627776 T+60000 $p1099511627777", "rpush $G $3:2 $2:2", "zadd $F T+6000 $3:2 T+6000 $2:2"}, "permit_attach", attaching("$1:2", ticketOf2), "60000", map[string]string{"zcard $H": "2", "sent": "$J o 3 30000, $I o 2 30000"}},
	{"permits attached by an earlier copy", []string{"set x 1", "zadd $H T+7000 $p1 T+7000 $p2"}, "permit_attach", attaching("$1:2", ticketOf2), "0", map[string]string{"zcount $H T+7000 T+7000": "2", "zcard $H": "2"}},
	{"permits attached by another process before", []string{"set x 1", "zadd $H T+7000 $q1 T+7000 $q2"}, "permit_attach", attaching("$1:2", ticketOf2), "-1", map[string]string{"zrange $H 0 -1": "[$q1 $q2]"}},
	{"permits attached, but one was forced free", []string{"set x 2", "zadd $H T+900 $p1099511627776"}, "permit_attach", attaching("$1:2", ticketOf2), "-1", map[string]string{"get x": "2", "zrange $H 0 -1": "[$p1099511627776]"}},
	{"permits attached, but the ticket's time is over", []string{"set x 1", "zadd $H T $p1099511627776 T $p1099511627777"}, "permit_attach", attaching("$1:2", ticketOf2), "-1", map[string]string{"get x": "1", "zcount $H T T": "2"}},
	{"permits attached, but are available", []string{"set x 3"}, "permit_attach", attaching("$1:2", ticketOf2), "-1", map[string]string{"get x": "3", "exists $H": "0"}},
	{"permits attached, but that was given up", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "zadd $B T+6000 $1:2"}, "permit_attach", attaching("$1:2", ticketOf2), "-1", map[string]string{"zcount $H T+900 T+900": "2", "zcard $H": "2"}},
	{"permits attached, but those that are held are a list", []string{"set x 1", "rpush $H a"}, "permit_attach", attaching("$1:2", ticketOf2), "-1", map[string]string{"lrange $H 0 -1": "[a]"}},
	{"permits attached, but the tombstones are none", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "set $B a"}, "permit_attach", attaching("$1:2", ticketOf2), "WRONGTYPE Operation against a key holding the wrong kind of value", map[string]string{"zcount $H T+900 T+900": "2"}},
	{"permits attached, but that is refused", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "acl setuser default -zadd"}, "permit_attach", attaching("$1:2", ticketOf2), denied, map[string]string{"zcount $H T+900 T+900": "2", "zcard $H": "2"}},
	{"permits attached, but they may not be taken from the ticket", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "acl setuser default -zrem"}, "permit_attach", attaching("$1:2", ticketOf2), denied, map[string]string{"zcount $H T+900 T+900": "2", "zcard $H": "2"}},
	{"permits attached, but the server is a replica", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "replicaof 127.0.0.1 1"}, "permit_attach", attaching("$1:2", ticketOf2), replica, map[string]string{"zcard $H": "2"}},
	{"permits attached, and there is no memory", []string{"set x 1", "zadd $H T+900 $p1099511627776 T+900 $p1099511627777", "config set maxmemory 1"}, "permit_attach", attaching("$1:2", ticketOf2), "900", map[string]string{"zrange $H 0 -1": "[$p1 $p2]"}},

	// permit_renew.lua
	{"permits renewed, each claim by itself", []string{"set x 0", "zadd $H T+4000 $p1 T+40000 $p2 T+4000 $q1", "zadd {y}:timeout T $p8"}, "permit_renew", []string{"30000", permitsOf("$1:2"), permitsOf("$8:1")}, "[1 0]", map[string]string{"get x": "0", "zcount $H T+30000 T+30000": "1", "zcount $H T+40000 T+40000": "1", "zcount $H T+4000 T+4000": "1", "zcount {y}:timeout T T": "1"}},
	{"permits renewed, of which one is gone", []string{"set x 1", "zadd $H T+4000 $p1"}, "permit_renew", []string{"30000", permitsOf("$1:2")}, "[0]", map[string]string{"zcount $H T+4000 T+4000": "1", "zcard $H": "1"}},
	{"permit renewed, and the keys end earlier", []string{"set x 1 px 20000", "zadd $H T+4000 $p1", "pexpire $H 20000"}, "permit_renew", []string{"30000", permitsOf("$1:1")}, "[1]", map[string]string{"pttl x": "30000", "pttl $H": "30000"}},
	{"permit renewed, and the number was lost", []string{"zadd $H T+4000 $p1", "pexpire $H 20000"}, "permit_renew", []string{"30000", permitsOf("$1:1")}, "[1]", map[string]string{"exists x": "0", "pttl $H": "30000"}},
	{"permit renewed, and those that are held are a list", []string{"rpush $H a"}, "permit_renew", []string{"30000", permitsOf("$1:1")}, "[2]", nil},
	{"permit renewed on a replica", []string{"zadd $H T+4000 $p1", "replicaof 127.0.0.1 1"}, "permit_renew", []string{"30000", permitsOf("$1:1")}, replica, nil},
	{"permit renewed, and that is refused", []string{"zadd $H T+4000 $p1", "acl setuser default -zadd"}, "permit_renew", []string{"30000", permitsOf("$1:1")}, "[" + denied + "]", nil},
	{"permit renewed, and HDEL is refused", []string{"zadd $H T+4000 $p1", "acl setuser default -hdel"}, "permit_renew", []string{"30000", permitsOf("$1:1")}, "[1]", nil},

	// permit_set.lua
	{"permits set for the first time", nil, "permit_set", setting("5"), "0", map[string]string{"get x": "5", "sent": "$M 5"}},
	{"permits set, and two are held, one of which has ended", []string{"set x 1", "zadd $H T+4000 $q1 1 $q2"}, "permit_set", setting("5"), "0", map[string]string{"get x": "4", "zrange $H 0 -1": "[$q1]", "sent": "$M 4"}},
	{"permits cut below what is held", []string{"set x 1", "zadd $H T+4000 $q1 T+4000 $q2"}, "permit_set", setting("1"), "0", map[string]string{"get x": "-1", "zcard $H": "2"}},
	{"permits set, and waiters get them", []string{"set x 0", "zadd $H T+4000 $q8", "rpush $G $3:2 $2:1 $4:2", "zadd $F T+6000 $3:2 T+6000 $2:1 T+6000 $4:2"}, "permit_set", setting("5"), "0", map[string]string{"get x": "1", "zcard $H": "4", "lrange $G 0 -1": "[$4:2]", "sent": "$J g 3 2000 S 0 1 1 0, $I g 2 2000 S 0 1 1 0, $M 1"}},
	{"permits set, and the number is none", []string{"set x abc", "zadd $H T+4000 $q1"}, "permit_set", setting("5"), "0", map[string]string{"get x": "4", "sent": "$M 4"}},
	{"permits set for the first time, and kept for a while", nil, "permit_set", append(setting("5"), "9000"), "0", map[string]string{"get x": "5", "pttl x": "9000", "sent": "$M 5"}},
	{"permits set, which are kept as long as those that are held", []string{"zadd $H T+20000 $q1", "pexpire $H 20000"}, "permit_set", append(setting("5"), "9000"), "0", map[string]string{"get x": "4", "pttl x": "20000", "sent": "$M 4"}},
	{"permits set of a list", []string{"rpush x a"}, "permit_set", setting("5"), "[-1 x a list]", map[string]string{"lrange x 0 -1": "[a]"}},
	{"permits set, and those that are held are a string", []string{"set x 1", "set $H a"}, "permit_set", setting("5"), "[-1 $H a string]", map[string]string{"get x": "1"}},
	{"permits set on a replica", []string{"set x 1", "replicaof 127.0.0.1 1"}, "permit_set", setting("5"), replica, nil},

	// inspect.lua, force_release.lua
	{"permits seen", []string{"set x 1 px 7000", "zadd $H T+4000 $p1 1 $q2 922337203685477 $q3", "rpush $G $2:1 $3:1", "zadd $F 1 $2:1 T+6000 $3:1"}, "inspect", nil, "[semaphore 7000 0 1 1 1 0 [11111111aaaa4aaa8aaa000000000001 1 4000 22222222bbbb4bbb8bbb000000000003 1 -1] [] [$2:1 $3:1] 4 1]", nil},
	{"permits seen without a number", []string{"zadd $H T+4000 $p1"}, "inspect", nil, "[semaphore -2 0 0 0 0 0 [11111111aaaa4aaa8aaa000000000001 1 4000] [] [] 1 0]", nil},
	{"permits seen, and those that are held are a list", []string{"set x 2", "rpush $H a"}, "inspect", nil, "[semaphore -1 0 0 0 0 0 [] [$H list] [] 2 2]", nil},
	{"permits forced", []string{"set x 1", "zadd $H T+4000 $p1 T+4000 $r1", "rpush $G $3:2 $2:1", "zadd $F T+6000 $3:2 T+6000 $2:1"}, "force_release", forcing(), "1", map[string]string{"get x": "3", "exists $H": "0", "sent": "$M 3, $J o 3, $I o 2"}},
	{"permits forced without a number", []string{"zadd $H T+4000 $p1"}, "force_release", forcing(), "1", map[string]string{"exists x $H": "0"}},
	{"permits forced after a cut", []string{"set x -2", "zadd $H T+4000 $p1 T+4000 $q1"}, "force_release", forcing(), "1", map[string]string{"get x": "0", "exists $H": "0"}},
	{"permit forced, of that owner", []string{"set x 1", "zadd $H T+4000 $p1 T+4000 $q1"}, "force_release", forcing("22222222bbbb4bbb8bbb000000000001"), "1", map[string]string{"get x": "2", "zrange $H 0 -1": "[$p1]", "sent": "$M 2"}},
	{"permit forced, of another", []string{"set x 1", "zadd $H T+4000 $p1"}, "force_release", forcing("22222222bbbb4bbb8bbb000000000001"), "-2", map[string]string{"get x": "1", "zcard $H": "1"}},
	{"permits forced, and none is held", []string{"set x 3"}, "force_release", forcing(), "0", map[string]string{"get x": "3"}},
	{"permits forced on a replica", []string{"set x 0", "zadd $H T+4000 $p1", "replicaof 127.0.0.1 1"}, "force_release", forcing(), replica, map[string]string{"zcard $H": "1"}},
	{"permits forced, and the number may not be changed", []string{"set x 0", "zadd $H T+4000 $p1", "acl setuser default -incrby"}, "force_release", forcing(), denied, map[string]string{"get x": "0", "zcard $H": "1"}},
	{"permits forced, and that is refused", []string{"set x 0", "zadd $H T+4000 $p1", "acl setuser default -del"}, "force_release", forcing(), denied, map[string]string{"get x": "0", "zcard $H": "1"}},
}

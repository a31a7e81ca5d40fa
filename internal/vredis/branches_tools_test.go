package vredis_test

// toolBranches look at locks, free them by force, and say what a process is.
var toolBranches = []branch{
	// demand.lua
	{"two wait, and one client listens", []string{"rpush $Q $2 $R", "subscribe ch"}, "demand", []string{"publish", "ch", "", "", deafManager}, "[2 1 -1]", nil},
	{"the caller's own place, and one more", []string{"rpush $Q $2 $R $1"}, "demand", []string{"publish", "ch", "", "", heardManager}, "[1 0 -1]", nil},
	{"no client listens", nil, "demand", []string{"spublish", "ch", "", "", heardManager}, "[0 0 -1]", nil},
	{"the server has no sharded channels", []string{"subscribe ch", "acl setuser default -pubsub|shardnumsub"}, "demand", []string{"spublish", "ch", "", "", heardManager}, "[0 1 -1]", nil},

	// busy.lua
	{"asked, and in use", []string{"hset x $m 1", "pexpire x 7000"}, "busy", []string{deafManager + "06", "$I", "b 1"}, "0", map[string]string{"sent": "$I b 1", "hgetall x": "[$m 1]"}},
	{"asked, and released since", []string{"hset x $1 1", "pexpire x 7000"}, "busy", []string{deafManager + "06", "$I", "b 1"}, "-1", map[string]string{"hgetall x": "[$1 1]"}},

	// inspect.lua
	{"seen free", nil, "inspect", nil, "[free -2 0 0 0 0 0 [] [] [] 0 0]", nil},
	{"seen as a string", []string{"set x a"}, "inspect", nil, "[other -1 0 0 0 0 0 [] [] [] 0 0]", nil},
	{"seen as an application's counter", []string{"hset x candidate:7 12"}, "inspect", nil, "[other -1 0 0 0 0 0 [] [] [] 0 0]", nil},
	{"seen as an application's counters", []string{"hset x mode read candidate:7 12", "pexpire x 7000"}, "inspect", nil, "[other 7000 0 0 0 0 0 [] [] [] 0 0]", nil},
	{"seen as one of Redisson that has no TTL", []string{"hset x $R 1"}, "inspect", nil, "[mutex -1 0 0 0 0 0 [$R 1 -1] [] [] 0 0]", nil},
	{"seen as a mutex, with a token and waiters", []string{"hset x $1 1", "pexpire x 7000", "set $C 41", "rpush $Q $3 $2", "zadd $D 1 $3 T+6000 $2"}, "inspect", nil, "[mutex 7000 41 1 1 0 0 [$1 1 7000] [] [$3 $2] 0 0]", nil},
	{"seen with a time of no waiter", []string{"rpush $Q $2", "zadd $D 1 $3 T+6000 $2"}, "inspect", nil, "[free -2 0 1 0 0 0 [] [] [$2] 0 0]", nil},
	{"seen as a write lock with a value", []string{"hset x mode write $1:5$w 1", "pexpire x 7000"}, "inspect", nil, "[write 7000 0 0 0 0 0 [$1:5$w 1 7000] [] [] 0 0]", nil},
	{"seen as a write lock", []string{"hset x mode write $1$w 1", "pexpire x 7000", "rpush $V $3", "zadd $E T+6000 $3"}, "inspect", nil, "[write 7000 0 1 0 0 0 [$1$w 1 7000] [] [$3] 0 0]", nil},
	{"seen with readers, of which one is dead", []string{"hset x mode read $1 1 $3 1 $R 1", "pexpire x 7000", "set %1 1 px 5000", "set %R 1"}, "inspect", nil, "[read 7000 0 0 0 1 0 [$1 1 5000 $R 1 -1] [] [] 0 0]", nil},
	{"seen with more rights than it looks at", []string{"hset x mode read $1 3000 $3 1", "pexpire x 7000", "set %3 1 px 7000"}, "inspect", nil, "[read 7000 0 0 0 0 2 [] [] [] 0 0]", nil},
	{"seen with keys of other types", []string{"rpush $C a", "set $Q a", "set $E a"}, "inspect", nil, "[free -2 0 0 0 0 0 [] [$C list $Q string $E string] [] 0 0]", nil},
	{"seen with a counter that is no number", []string{"set $C abc"}, "inspect", nil, "[free -2 0 0 0 0 0 [] [$C string that is no number below 2^53] [] 0 0]", nil},
	{"not to be seen", []string{"acl setuser default -get"}, "inspect", nil, denied, nil},
	{"seen with a counter that INCRBY refuses", []string{"set $C 07"}, "inspect", nil, "[free -2 0 0 0 0 0 [] [$C string that is no number below 2^53] [] 0 0]", nil},
	{"seen with a counter that is too large", []string{"set $C 9007199254740993"}, "inspect", nil, "[free -2 0 0 0 0 0 [] [$C string that is no number below 2^53] [] 0 0]", nil},
	{"seen with more rights than it looks at, of which one is left", []string{"hset x mode read $1 3000", "pexpire x 7000", "set %1 1 px 5000"}, "inspect", nil, "[read 7000 0 0 0 0 0 [$1 3000 5000] [] [] 0 0]", nil},
	{"seen with a waiter that has no time", []string{"rpush $Q $2 $3", "zadd $D 1 $3"}, "inspect", nil, "[free -2 0 1 1 0 0 [] [] [$2 $3] 0 0]", nil},

	// force_release.lua
	{"forced, and free", nil, "force_release", forcing(), "0", nil},
	{"forced, and free on a replica", []string{"replicaof 127.0.0.1 1"}, "force_release", forcing(), replica, nil},
	{"forced, and a string", []string{"set x a"}, "force_release", forcing(), "-1", map[string]string{"get x": "a"}},
	{"forced, and an application's hash", []string{"hset x a 1 b 2"}, "force_release", forcing(), "-1", map[string]string{"hlen x": "2"}},
	{"forced, and an application's hash of one field", []string{"hset x a 1"}, "force_release", forcing(), "-1", map[string]string{"hlen x": "1"}},
	{"forced, and another's", []string{"hset x $3 1", "pexpire x 7000"}, "force_release", forcing(mine), "-2", map[string]string{"hgetall x": "[$3 1]"}},
	{"forced, and that owner's", []string{"hset x $3 1", "pexpire x 7000"}, "force_release", forcing(others), "1", map[string]string{"exists x": "0", "sent": "$K 0"}},
	{"forced, and held by one that may linger", []string{"hset x $m 1", "pexpire x 7000"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$J w 06, $K 0"}},
	{"forced, and readers of which one may linger", []string{"hset x mode read $l 1 $3 1", "pexpire x 7000"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$I w 05, $L 1, $L 0"}},
	{"forced, and the writer's", []string{"hset x mode write $3$w 1", "pexpire x 7000", "rpush $V $2", "zadd $E T+6000 $2"}, "force_release", forcing(others), "1", map[string]string{"exists x": "0", "lrange $V 0 -1": "[$2]", "sent": "$L 1, $L 0, $I o 2"}},
	{"forced, and waiters are told up to the first that lives", []string{"hset x $1 1", "pexpire x 7000", "rpush $Q $3 $R $2", "zadd $D 1 $3 T+6000 $R T+6000 $2"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$K 0, $J o 3, $K:$R 0"}},
	{"forced, and the queue is a string", []string{"hset x $1 1", "pexpire x 7000", "set $Q a"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$K 0"}},
	{"forced, and a transaction's of Redisson", []string{"hset x $R:t1 1", "pexpire x 7000"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$K 0"}},
	{"forced, and two owners without a mode", []string{"hset x $1 1 $2 1"}, "force_release", forcing(), "-1", map[string]string{"hlen x": "2"}},
	{"forced, and a writer's without a mode", []string{"hset x $1$w 1"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$K 0"}},
	{"forced, and an application's counter", []string{"hset x candidate:7 12", "pexpire x 7000"}, "force_release", forcing(), "-1", map[string]string{"hlen x": "1"}},
	{"forced, and an application's counter of a day", []string{"hset x 2026-11-27-10-05:7 12"}, "force_release", forcing(), "-1", map[string]string{"hlen x": "1"}},
	{"forced, and an application's setting", []string{"hset x mode read"}, "force_release", forcing(), "-1", map[string]string{"hlen x": "1"}},
	{"forced, and one of Redisson that has no TTL", []string{"hset x $R 1"}, "force_release", forcing(), "1", map[string]string{"exists x": "0", "sent": "$K 0"}},

	// introduce.lua
	{"introduced", nil, "introduce", []string{"60000", "app", "shop", "pid", "1"}, "1", map[string]string{"hgetall $P": "[app shop pid 1]", "pttl $P": "60000"}},
	{"introduced, and its TTL is refused", []string{"acl setuser default -pexpire"}, "introduce", []string{"60000", "app", "shop"}, denied, map[string]string{"exists $P": "0"}},
	{"introduced, and it ends", []string{"hset $P app shop"}, "introduce", []string{"0"}, "1", map[string]string{"exists $P": "0"}},

	// introduced.lua
	{"said", []string{"hset $P app shop pid 1"}, "introduced", nil, "[2 app shop pid 1]", nil},
	{"said nothing", nil, "introduced", nil, "[0]", nil},
	{"said too much", said(101), "introduced", nil, "[0]", nil},
	{"said by a list", []string{"rpush $P a"}, "introduced", nil, "[0]", nil},
	{"said, and not to be read", []string{"hset $P app shop", "acl setuser default -hlen"}, "introduced", nil, denied, nil},
}

// electionBranches say who leads, and ask.
var electionBranches = []branch{
	// proclaim.lua
	{"proclaimed", []string{"hset x $1 1", "pexpire x 7000"}, "proclaim", proclaiming("41", "1", "1"), "1", map[string]string{"hgetall $N": "[owner $1 token 41 news 1 value here]", "pttl $N": "86400000", "pttl x": "7000", "sent": "$N 41"}},
	{"proclaimed by an earlier copy", []string{"hset x $1 1", "hset $N owner $1 token 41 news 1 value here"}, "proclaim", proclaiming("41", "1", "1"), "1", map[string]string{"pttl $N": "-1"}},
	{"proclaimed late, and there is newer", []string{"hset x $1 1", "hset $N owner $1 token 41 news 2 value there"}, "proclaim", proclaiming("41", "1", "1"), "1", map[string]string{"hget $N value": "there"}},
	{"proclaimed anew", []string{"hset x $1 1", "hset $N owner $1 token 41 news 1 value there"}, "proclaim", proclaiming("41", "2", "1"), "1", map[string]string{"hget $N value": "here", "sent": "$N 41"}},
	{"proclaimed late, in an earlier term of the process", []string{"hset x $1 1", "hset $N owner $1 token 42 news 1 value there"}, "proclaim", proclaiming("41", "7", "1"), "0", map[string]string{"hget $N value": "there"}},
	{"proclaimed in a later term of the process", []string{"hset x $1 1", "hset $N owner $1 token 41 news 7"}, "proclaim", proclaiming("42", "1", "1"), "1", map[string]string{"hgetall $N": "[owner $1 token 42 news 1 value here]", "sent": "$N 42"}},
	{"proclaimed after another, whose tokens were lost", []string{"hset x $1 1", "hset $N owner $3 token 99 news 9 value there"}, "proclaim", proclaiming("1", "1", "1"), "1", map[string]string{"hgetall $N": "[owner $1 token 1 news 1 value here]", "sent": "$N 1"}},
	{"proclaimed by who does not hold it", []string{"hset x $3 1", "hset $N owner $3 token 42 news 1 value there"}, "proclaim", proclaiming("41", "2", "1"), "0", map[string]string{"hget $N value": "there"}},
	{"proclaimed on a replica by who does not hold it", []string{"replicaof 127.0.0.1 1"}, "proclaim", proclaiming("41", "2", "1"), replica, nil},
	{"proclaimed, and the record is a list", []string{"hset x $1 1", "rpush $N a"}, "proclaim", proclaiming("41", "1", "1"), "[-1 $N a list]", nil},
	{"proclaimed, and the record is an application's", []string{"hset x $1 1", "hset $N owner $1"}, "proclaim", proclaiming("41", "1", "1"), "[-1 $N a hash]", nil},
	{"proclaimed, and the lock is a list", []string{"rpush x a"}, "proclaim", proclaiming("41", "1", "1"), "[-1 x a list]", map[string]string{"exists $N": "0"}},
	{"proclaimed, and the record's TTL is refused", []string{"hset x $1 1", "acl setuser default -pexpire"}, "proclaim", proclaiming("41", "1", "1"), "HOLDFAST cannot set a TTL: " + denied, map[string]string{"exists $N": "0"}},
	{"resigned", []string{"hset x $1 1", "hset $N owner $1 token 41 news 1 value here"}, "proclaim", proclaiming("41", "2", "0"), "1", map[string]string{"hgetall $N": "[owner $1 token 41 news 2]", "pttl $N": "86400000", "sent": "$N 0"}},

	// leader.lua
	{"led by none", nil, "leader", nil, "[0 -2]", nil},
	{"led by none any more", []string{"hset $N owner $1 token 41 news 1 value here"}, "leader", nil, "[0 -2]", nil},
	{"led", []string{"hset x $1 1", "pexpire x 7000", "hset $N owner $1 token 41 news 1 value here"}, "leader", nil, "[1 7000 $1 41 here]", nil},
	{"led by one that has not said so", []string{"hset x $3 1", "pexpire x 7000", "hset $N owner $1 token 41 news 1 value here", "set $C 42"}, "leader", nil, "[0 7000]", nil},
	{"led by one that resigns", []string{"hset x $1 1", "pexpire x 7000", "hset $N owner $1 token 41 news 2"}, "leader", nil, "[0 7000]", nil},
	{"led by Redisson", []string{"hset x $R 1", "hset $N owner $1 token 41 news 1 value here", "set $C 42"}, "leader", nil, "[1 -1 $R 42 ]", nil},
	{"held by Redisson without a token", []string{"hset x $R 1", "pexpire x 7000"}, "leader", nil, "[0 7000]", nil},
	{"led in a read-write lock", []string{"hset x mode read $1 1"}, "leader", nil, "[-1 x a read-write lock]", nil},
	{"led by a record that is a list", []string{"rpush $N a"}, "leader", nil, "[-1 $N a list]", nil},
}

// proclaiming are the arguments of proclaim.
func proclaiming(token, news, leads string) []string {
	return []string{mine, token, news, "here", leads, "publish"}
}

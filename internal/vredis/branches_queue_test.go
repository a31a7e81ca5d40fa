package vredis_test

// queueBranches take, keep and leave places in the queue of a fair lock.
var queueBranches = []branch{
	// join.lua
	{"joined", []string{"hset x $3 1", "pexpire x 7000"}, "join", []string{"new heard 10000", heardManager, "1", "2"}, "[0 0 7000 T 0]", map[string]string{"lrange $Q 0 -1": "[$1 $2]"}},
	{"joined, but one was given up", []string{"zadd $B T+6000 $1"}, "join", []string{"new heard 10000", heardManager, "1", "2"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$2]"}},
	{"returned to the front", []string{"rpush $Q $3", "zadd $D T+6000 $3"}, "join", []string{"same heard 10000", heardManager, "1"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$1 $3]"}},
	{"joined, but it is a list", []string{"rpush x a"}, "join", []string{"new heard 10000", heardManager, "1"}, "[-1 x a list]", map[string]string{"exists $Q": "0"}},
	{"joined, but it is an application's hash", []string{"hset x a 1 b 2"}, "join", []string{"new heard 10000", heardManager, "1"}, "[-1 x a hash]", map[string]string{"exists $Q": "0"}},
	{"joined, but tombstones are none", []string{"set $B a"}, "join", []string{"new heard 10000", heardManager, "1"}, "[-1 $B a string]", map[string]string{"exists $Q": "0"}},
	{"joined, but the queue is a string", []string{"set $Q a"}, "join", []string{"new heard 10000", heardManager, "1"}, "[-1 $Q a string]", map[string]string{"exists $D": "0"}},
	{"joined behind Redisson's", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $R $S", "zadd $D T+400000 $R T+400000 $S"}, "join", []string{"new deaf 10000", heardManager, "1", "2"}, "[0 0 7000 T 1]", map[string]string{"lrange $Q 0 -1": "[$R $S $1 $2]", "zcount $D T+610000.5 T+610000.5": "2"}},
	{"returned, but the queue is a string", []string{"set $Q a"}, "join", []string{"same heard 10000", heardManager, "1"}, "[-1 $Q a string]", map[string]string{"exists $D": "0"}},
	{"returned behind one of the same process", []string{"rpush $Q $1 $3", "zadd $D T+6000 $1 T+6000 $3"}, "join", []string{"same heard 10000", heardManager, "2"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$1 $2 $3]"}},
	{"returned, and places cannot be exchanged", []string{"rpush $Q $1 $2 $3", "zadd $D T+6000 $1 T+6000 $2 T+6000 $3", "acl setuser default -lset"}, "join", []string{"same heard 10000", heardManager, "4"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$4 $1 $2 $3]"}},
	{"returned, and another stands there already", []string{"rpush $Q $3 $2", "zadd $D T+6000 $3 T+6000 $2"}, "join", []string{"same heard 10000", heardManager, "1", "2"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$1 $3 $2]", "zcard $D": "3"}},
	{"returned before another process's", []string{"rpush $Q $3", "zadd $D T+6000 $3"}, "join", []string{"same heard 10000", heardManager, "4"}, "[0 0 0 T 0]", map[string]string{"lrange $Q 0 -1": "[$4 $3]"}},
	{"returned, but given up before", []string{"zadd $B T+6000 $1"}, "join", []string{"same heard 10000", heardManager, "1"}, "[0 0 0 T 0]", map[string]string{"exists $Q $D": "0"}},

	// keep.lua
	{"kept", []string{"rpush $Q $1 $2", "zadd $D 9 $1 9 $2"}, "keep", []string{"new heard 10000", heardManager, "1", "2", "4"}, "[1 1 0]", map[string]string{"lrange $Q 0 -1": "[$1 $2]"}},
	{"granted meanwhile", []string{"hset x $1 1", "pexpire x 2000"}, "keep", []string{"new heard 10000", heardManager, "1"}, "[2]", nil},
	{"kept, but the list has lost one", []string{"rpush $Q $1", "zadd $D T+6000 $1 T+6000 $2"}, "keep", []string{"new heard 10000", heardManager, "1", "2"}, "[1 0]", map[string]string{"zcount $D T+10000 T+10000": "1", "zcount $D T+6000 T+6000": "1"}},
	{"kept, and so is the queue", []string{"rpush $Q $1", "zadd $D T+6000 $1", "pexpire $Q 40000000", "pexpire $D 40000000"}, "keep", []string{"new deaf 10000", heardManager, "1"}, "[1]", map[string]string{"zcount $D T+10000.5 T+10000.5": "1", "pttl $Q": "86400000", "pttl $D": "86400000"}},

	// leave.lua
	{"two leave", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1 $3 $2", "zadd $D T+6000 $1 T+6000 $3 T+6000 $2"}, "leave", leaving("2000 1 0", "0", "1", "2"), "-2", map[string]string{"lrange $Q 0 -1": "[$3]", "zrange $D 0 -1": "[$3]", "exists $B": "0", "sent": "$J o 3 7000"}},
	{"two leave, and one may come late", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1 $2", "zadd $D T+6000 $1 T+6000 $2"}, "leave", leaving("2000 1 0", "1", "1", "2"), "-2", map[string]string{"exists $Q $D": "0", "zrange $B 0 -1": "[$1]", "pttl $B": "60000"}},
	{"one that leaves was granted it, and passes it on", []string{"hset x $1 1", "pexpire x 2000", "rpush $Q $2 $3", "zadd $D T+6000 $2 T+6000 $3"}, "leave", leaving("2000 2 0", "0", "1", "2"), "-3", map[string]string{"sent": "$J g 3 2000 S 0 2 0 0", "hgetall x": "[$3 1]", "pttl x": "2000", "exists $Q $D": "0"}},
	{"one that leaves was granted it, and is the last", []string{"hset x $1 1", "pexpire x 2000"}, "leave", leaving("2000 2 0", "0", "1", "2"), "0", map[string]string{"sent": "$K 0", "exists x": "0"}},
	{"two leave a lock that nothing holds", nil, "leave", leaving("2000 1 0", "0", "1", "2"), "-1", nil},
	{"two leave, and the server is a replica", []string{"hset x $1 1", "pexpire x 7000", "replicaof 127.0.0.1 1"}, "leave", leaving("2000 1 0", "0", "1", "2"), replica, map[string]string{"hgetall x": "[$1 1]"}},
	{"two leave, and places cannot be marked", []string{"hset x $3 1", "pexpire x 7000", "rpush $Q $1 $3 $2", "zadd $D T+6000 $1 T+6000 $3 T+6000 $2", "acl setuser default -lset"}, "leave", leaving("2000 1 0", "0", "1", "2"), "-2", map[string]string{"lrange $Q 0 -1": "[$3]", "zrange $D 0 -1": "[$3]", "sent": "$J o 3 7000"}},
	{"one leaves far behind others", append(overdue("$Q", 600), "hset x $3 1", "pexpire x 7000", "rpush $Q $1", "zadd $D T+6000 $1"), "leave", leaving("2000 1 0", "0", "1", "2"), "-2", map[string]string{"llen $Q": "600", "zcard $D": "600"}},
	{"two leave a lock that is free, and the next is granted it", []string{"rpush $Q $1 $3", "zadd $D T+6000 $1 T+6000 $3"}, "leave", leaving("2000 1 0", "0", "1", "2"), "-2", map[string]string{"hgetall x": "[$3 1]", "exists $Q $D": "0", "sent": "$J g 3 2000 S 0 1 0 0"}},
}

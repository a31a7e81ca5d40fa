package vredis_test

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

// Package vredis is a Redis inside the process, for tests: what Holdfast and go-redis need of a server, exact enough that
// the library's real scripts behave on it as on redis-server, and without I/O, so that it works in a testing/synctest
// bubble, where an hour takes milliseconds.
//
//	srv := vredis.New(vredis.Options{})
//	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: srv.Dial})
//
// A Server has no goroutine and no port; Listen gives it a port, for other processes. A client's Write executes the commands that it completes, under the server's mutex, and
// appends the replies to a buffer from which Read takes them: nothing waits while a mutex is held, but for computing,
// and no command takes virtual time. WAIT alone can take time. What a network does (delay, loss, cuts) is for the caller to put
// between, by wrapping the connections of Dial.
//
// # In a bubble
//
// A bubble's clock stands while a goroutine waits for a sync.Mutex, and go-redis holds one of its PubSub over a dial, a handshake
// and a subscription. So these must take no virtual time: a wrapper that delays lets them through at once, and a server that
// is frozen spares them (Freeze with Handshake). A client's address must be an IP address, because go-redis
// looks up the name of a host.
//
// # What it is compared with
//
// TestDifference_ tests and fuzz targets run random lists of commands, and each of the library's scripts from random states, on this
// server and on redis-server, in good health, without memory, by users whose rights are bounded, and compare answers, state and
// messages. The reference is Redis 7.0; HOLDFAST_TEST_SERVER names another server's binary, whose newer texts of errors and forms of
// numbers differ. Longer runs:
//
//	go test ./internal/vredis -run TestDifference -args -lists=100000 -states=1000 -seed=5
//	go test ./internal/vredis -fuzz FuzzScripts
//
// # Differences
//
// What it does not do is an error, "vredis does not do ...", or that of an unknown command. Of what it does this is different,
// on purpose:
//
//   - There is one database, no persistence, no eviction and no blocking command but WAIT. Memory is not measured: SetOOM, or CONFIG SET maxmemory 1,
//     says that there is too little.
//   - Keys that have expired are gone at once. Redis removes some of them later, so DBSIZE may count them.
//   - The fields of a hash and the members of a set are in the order of their coming; Redis's are while the key is small. HSCAN gives all
//     fields at once. KEYS and SCAN have an order of their own.
//   - A score of -0 becomes 0, as in Redis while the zset is small.
//   - DUMP has a format of its own, and there is no RESTORE. REPLICAOF makes a replica that has lost its master. CLIENT PAUSE and
//     DEBUG SLEEP spare what clients begin a connection with, as Freeze should.
//   - CLIENT SETINFO is known, as from Redis 7.2 on. PUBSUB CHANNELS, CLIENT LIST and INFO are sorted or have fewer fields.
//   - Scripts run in gopher-lua. Its own words for what is wrong in a script differ, and so do those of a syntax error; the
//     line is the same. A text that is out of a number's range ("1e400") is no number in arithmetic. The order of pairs and next differs.
//   - gopher-lua's x = f() and (x or g()) and its forms of numbers in .. are mended, see luacode.go. Its functions for texts and tables
//     are as they are, but for string.match: TestDifference_Lua has those that the library's scripts call.
//   - Tables of the library (string, redis, ...) can be written to. There is no cjson, cmsgpack, struct, bit, coroutine, load, math.random,
//     redis.setresp.
//   - A script that does not end is not interrupted.
package vredis

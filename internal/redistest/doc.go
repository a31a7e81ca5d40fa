// Package redistest gives tests a real Redis and real trouble: servers that can
// be stopped, killed and restarted, clusters and sentinels, a proxy that hits exactly the chosen
// command with a fault, and helper processes that can be paused and killed.
//
// It is for tests only: _test.go files and the roles they run in other
// processes. It needs a Unix with redis-server in PATH and fails without it,
// because a skipped test looks like a passed one.
//
//	srv := redistest.Start(t)
//	proxy := srv.Proxy(t)
//	proxy.LoseReply(redistest.Command("evalsha"), 1)
//	rdb := proxy.Client(t)
//
// StartCluster and StartSentinel start whole deployments, whose nodes are servers
// like any other, and change their topology while clients use them.
//
// Everything is tied to the testing.TB it was made with and is gone when that
// test and its cleanups are over: processes are reaped, goroutines have ended.
// Cleanups run last in, first out, so make the server first, then proxies, then
// what uses them.
//
// Methods without a TB report their failures to the TB of the constructor. All
// methods may be called from any goroutine, but as always a Fatal from another
// goroutine than the test's ends that goroutine and marks the test failed.
package redistest

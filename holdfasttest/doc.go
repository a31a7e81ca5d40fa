// Package holdfasttest helps to test code that uses Holdfast. A [Server] is a Redis inside the process, without a port, in real time or in
// the bubble of [testing/synctest], where leases of 30 seconds take microseconds.
//
//	func TestPay_OrderIsLocked(t *testing.T) {
//		server := holdfasttest.NewServer(t)
//		shop := NewShop(server.NewManager()) // the code under test
//
//		other := server.NewManager() // another process
//		lease := server.Hold(other.Mutex("order:7"))
//		if err := shop.Pay(t.Context(), "7"); !errors.Is(err, ErrBusy) {
//			t.Errorf("while another process has the lock: %v", err)
//		}
//		lease.Unlock(t.Context())
//		if err := shop.Pay(t.Context(), "7"); err != nil {
//			t.Error(err)
//		}
//		if held := server.Held(); len(held) > 0 {
//			t.Errorf("locks that were not given back: %q", held)
//		}
//	}
//
// The code under test is the real one: the Manager, go-redis and Holdfast's scripts are those of production. Only the server and the network
// are replaced. [docs/TESTING.md] has more recipes, and says when a real server is needed.
//
// # Another process
//
// Each Manager of [Server.NewManager] is what another process has. [Server.Hold] lets it hold a lock of any kind. To let it wait, call LockAsync and
// then [Server.AwaitWaiters]:
//
//	waiting := other.Mutex("order:7").LockAsync(t.Context())
//	server.AwaitWaiters("order:7", 1)
//
// A process that died while it held a lock is a lease that is neither renewed nor unlocked:
//
//	server.Hold(other.Mutex("order:7", holdfast.WithFixedLease(30*time.Second)))
//
// # Faults
//
// [Server.Lose] takes a lock away from its holder. [Server.Down] makes Redis refuse connections, [Server.Hang] makes it silent, and
// [Server.Up] ends both. [Server.Restart] loses all data. In an outage a lease ends at its deadline, so in real time
// choose a short one: NewManager(holdfast.WithLease(time.Second)). Redis then still has the lock, until its key expires or the release of
// Unlock arrives: a TryLock right after Up may be refused, and Lock and Hold wait for that moment.
//
// # In a bubble
//
// In [synctest.Test] time jumps to the next timer when all goroutines wait, so tests can sleep until a lease has ended. A few rules follow from
// how bubbles work:
//
//   - Make the Server, and clients and Managers of your own, inside the bubble, and pass the T that the bubble got: its cleanup
//     runs before the bubble ends, and that of the outer T after it. A Server or a client that was made outside cannot be used inside.
//   - Close Managers and clients that you made yourself before the bubble ends. The Server closes its own. Goroutines that are left are a panic,
//     "deadlock: main bubble goroutine has exited but blocked goroutines remain".
//   - Leave no real I/O in the bubble. Time stands while a goroutine reads from a socket or waits for a [sync.Mutex], and the test hangs if that
//     needs time to pass. For HTTP use httptest.NewRecorder, or a net.Pipe. A lock of Holdfast is not a sync.Mutex: waiting for
//     one lets time pass.
//   - [synctest.Wait] returns when all other goroutines wait: Redis has then answered all their requests. It can replace
//     AwaitHeld and AwaitWaiters.
//   - Give clients of your own the PoolSize of [Server.Options], or no fewer connections than they have callers at a time. go-redis shares the timers of
//     callers that wait for a connection among all bubbles of the program, which ends with "fatal error: select on synctest channel
//     from outside bubble".
//   - Hang answers what go-redis sends while it holds a mutex: when it connects and subscribes. It is the same in real time.
//
// # Names
//
// Lose, AwaitHeld, AwaitWaiters and Held use the names of keys in Redis: with [holdfast.WithNameMapper], what the mapper returns.
//
// [docs/TESTING.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/TESTING.md
package holdfasttest

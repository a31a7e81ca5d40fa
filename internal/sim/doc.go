// Package sim runs the whole library in fake time: worlds of processes, servers, a network and faults, drawn from a seed, in which
// judges compare after each event what callers were told with what Redis has. A minute of a world takes a tenth of a second.
//
// Managers, go-redis and scripts are the real ones; the server is internal/vredis, the clock that of a testing/synctest bubble.
//
//	go test ./internal/sim                                           some hundred worlds
//	go test ./internal/sim -run 'TestWorlds$' -args -seed 7          one of them
//	go test ./internal/sim -run 'TestWorlds$' -args -seed 1000 -seeds 5000
//	go test ./internal/sim -run 'TestWorlds$' -args -more extras -seed 7  tickets, values, and holders that step aside, which one world of four has
//	go test ./internal/sim -run LateTimers -args -seed 7 -seeds 500  worlds in which processes stand still, the library's timers with them
//	go test ./internal/sim -run OfCrowds                             worlds with many locks at a time, whose requests are merged
//	go test ./internal/sim -run OfElections                          worlds of candidates and observers
//	go test ./internal/sim -run TestMutants -args -mutants all       each planted bug must be found
//
// # A world
//
// A seed draws a Plan, a plain value: the arrangement of servers, the locks, the processes with their workers' sections, and the faults with
// their times. Run runs it. The judges stop at nothing: the first violation of each rule is kept, with a trace of all calls, grants, scripts,
// messages and faults.
//
// One seed, one world: the seed, the moment and what a packet says decide how long the packet takes, and the moment decides what the library draws.
// Workers that one event has woken go on one after the other. So of a hundred seeds that are run alone, some 65 repeat their whole trace. What
// is left is the chance of the Go runtime: between timers of one moment, cases of a select, and entries of a map, as in the engine when it asks for all locks anew.
//
// No world touches another one: nothing that go-redis keeps for the whole program reaches a second bubble, and what a world has left is collected before the next
// one. A world that runs away, or whose clock stands, ends the program with its seed.
//
// # The judges
//
// Package judge has the rules that hold in every world. An alarm is traced to its end before anything is changed: a judge is wrong more often than the library.
// What only the virtual server shows is confirmed on a real one. These rules are about calls that no other world makes:
//
// Late return: calls against their bounds. Unavailable without cause. Starved, left behind, connections, goroutines: at the end.
// Not passed on: a process goes on passing the lock to its own workers while another one waits. Lost and kept: the TTL of a lost lease is over, and a late
// renewal keeps the lock. Inbox left: a process stops hearing its inbox, and a request of it that says that it listens is unanswered. Left locked: Close says that
// all was given back, and Redis has a lock.
// Held too short: a lock that was to stay taken after an early Unlock is granted before, or one of several, or a majority. Not told: the lock was deleted or
// freed by force, and its holder's lease still says nothing after the next renewal. False picture: Inspect says what Redis had at no moment of the call, or
// ForceUnlock what it did not do. Freed another's, not freed: ForceUnlockOf, and the owner that it names. Local locks: Manager.Locks, Stats and Contended against what
// the process's own workers have and wait for. Waits: TryLock takes longer than its requests, and nothing is wrong. Upgrade: a reader that wants to write is not told at once.
// Not acknowledged: too few replicas know of a grant. Value: Inspect does not show that of a valid lease.
//
// A ticket counts as a lease whose process is no one, from the execution of Detach to that of Attach, for its time. So overlap and claim without hold judge it
// as well. Ticket: it does not last as long as the caller said, or is refused although it stands. Ticket used twice. Token: the work has another one.
// Wanted by no one: a holder steps aside, and no other owner has waited since it asked for the lock. Unseen: another one waits, and the holder that asks for that
// is not told at once, by a message, or within a second.
//
// Where nothing is wrong, and nothing has been for a while, promptness is judged in trips over the network, far below each poll interval; so a
// message that is lost, or a question that is not asked, shows although a poll would make up for it.
//
// # Planted bugs
//
// The judges are as good as the bugs that they find. TestMutants_AreFound builds the library once more with a table of bugs in it
// (go test -overlay), of which an environment variable wakes one, and runs worlds until one is red by a judge that should find it. A change of a text in
// which a bug is planted has to change the table: TestMutants_FitTheCode says so.
//
// # What is not simulated
//
// A process that has its clock set, a host that sleeps: a bubble has one clock. In a process that stands still, timers inside go-redis and those of
// a Redlock's rounds fire on time; outside TestWorlds_WithLateTimers the library's do so too. A server's
// clock that is set ahead ends leases early, against which nothing helps; one that is set back is simulated. Clusters and
// Sentinel. Clients of Redisson: internal/explore has worlds with them, internal/locktest scenarios, and internal/interop real ones. The clients' pools are never full. A connection for messages is made without delay, or refused at once, because go-redis holds a mutex meanwhile and a bubble's
// clock stands while another goroutine waits for one; all else takes its time. Real kernels and servers are what internal/chaos is for.
package sim

// Package chaos runs real client processes against a real Redis through fault proxies
// while a nemesis breaks everything in turn, records what was asked, answered and
// stored, and lets judges look for a broken promise.
//
// Tests only:
//
//	go test ./internal/chaos -run TestChaos -args -duration 60s -seed 7
//
// The parts, in the order of a run:
//
//   - client.go, worker.go, several.go, overstay.go: a client process; its workers lock, wait,
//     cancel, re-enter, take several locks at once, extend leases and overstay them, and write
//     each call and each return to a history file, which survives SIGKILL.
//   - nemesis.go: the faults, drawn by weight from a seeded source.
//   - run.go: servers, proxies, processes and phases: a quiet beginning, faults, healing.
//   - residue.go: a fresh client that must get every lock, and the search for what was left behind.
//   - truth.go, replay.go, queue.go, emptied.go: the server's append-only file, replayed into holds. A clock key that the run
//     writes every few milliseconds gives each write an interval of time, whatever
//     happened to server and connections.
//   - linger.go: which processes keep locks after Unlock, and what the judges make of it.
//   - judge.go, truthjudge.go, wake.go, linear.go, answers.go: the judges. The first believes the
//     library's own deadlines, the second the server's file, the third looks after
//     waiters, and the last one checks with porcupine that all answers together can be
//     true.
//   - report.go, timeline.go: one page, and a picture of the seconds around a violation.
//
// All times are nanoseconds of the system's monotonic clock, which processes share.
//
// The suite is tested by bugs planted on the wire or in the client process, never in
// shipped code: see bugs_test.go.
package chaos

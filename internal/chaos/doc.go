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
//   - client.go, worker.go, overstay.go: a client process; its workers lock, wait,
//     cancel, re-enter and overstay leases, and write
//     each call and each return to a history file, which survives SIGKILL.
//   - nemesis.go: the faults, drawn by weight from a seeded source.
//   - run.go: servers, proxies, processes and phases: a quiet beginning, faults, healing.
//   - residue.go: a fresh client that must get every lock, and the search for what was left behind.
//   - writes.go: the server's append-only file, replayed into a server in this process (package vredis). A clock key that the run
//     writes every few milliseconds gives each write an interval of time, whatever
//     happened to server and connections.
//   - trial.go, answers.go: what happened, told to the judge (package judge) in the order of time. What may have been so, by what is not known
//     of those times, counts for the library.
//   - report.go: one page, and what happened around a violation.
//
// All times are nanoseconds of the system's monotonic clock, which processes share.
//
// The suite is tested by some of the bugs of package planted: see bugs_test.go.
package chaos

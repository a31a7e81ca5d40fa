// Package stage plays the programs in examples: several processes on one Redis, some of which it kills or pauses at the worst
// moment. The programs know nothing of it. They are started with the address of Redis in REDIS_URL.
//
// A [Scenario] has a [Director], which starts processes, prints what they print, and decides in the end whether the outcome was
// right: the exit status of the stage is 1 if it was not. Each [Process] reaches Redis through the stage. The stage can hold
// one of its requests back, so that the process is killed or paused at exactly that point.
package stage

// Package example is the stage of the programs in examples: a scenario that several
// operating-system processes play on one Redis, some of which are killed or paused in
// the middle.
//
// A [Scenario] has a director, which runs in the process that was started from the
// command line, and roles, which run in processes of the same program. What a role
// says goes to the director, who prints it, waits for it, and decides in the end
// whether the outcome was right: the program's exit status is 1 if it was not.
package example

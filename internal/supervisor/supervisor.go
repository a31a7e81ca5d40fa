// Package supervisor runs a command that must not outlive a lease.
//
// Two processes enforce that. The supervisor is the process that holds the lock: it passes signals on,
// and ends the command when the lease is lost. The guard is a second process of the same program, and
// the command's parent. The supervisor tells it each new deadline over a pipe. If the supervisor is
// killed or stopped, the guard ends the command by itself, before the lease ends in Redis. Both follow
// the same plan.
//
//	holdfast run ──── pipe: deadlines ────► guard ──── starts ────► command
//	     │       ◄─── pipe: states ─────────  │                   and what it starts
//	     └────────────── TERM, KILL ──────────┴──────────────────────►
//
// On Linux both find all that the command has started: these processes stay below the guard, which is
// their subreaper. If the guard is killed, they stay below the supervisor, which is one as well.
// Elsewhere only the command's process group is found.
//
// The guard starts the command when it has a deadline. So the command does not run without a guard, and
// not if the supervisor has died before that.
//
// On Windows there are no signals, no group and no guard: the supervisor terminates the command at
// the deadline.
package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Lease is what the command must not outlive. A *holdfast.Lease is one.
type Lease interface {
	Deadline() time.Time
	Done() <-chan struct{}
	Err() error // nil while the lease is held
}

// Command is what to run, and how. Its fields are not changed by Run.
type Command struct {
	Name  string // of the lock, printable, for messages
	Path  string
	Args  []string // with the command's name
	Env   []string
	Grace time.Duration // from TERM to KILL; 0: no TERM
	Loss  Loss
	Limit time.Time // of the time for which the lock may be held, for messages; zero: none

	Stdin, Stdout, Stderr *os.File // the command's own

	// Interrupts are the signals to pass on. The caller has subscribed it to those by which it can be
	// stopped before; Run subscribes it to the others.
	Interrupts chan os.Signal
	// Guard returns the command that calls Guard in another process, not started; nil: no guard. Its arguments are
	// followed by those of Guard: in, out, path, and argv.
	Guard func() (*exec.Cmd, error)
	// Explain tells people why the lease has ended.
	Explain func(err error) string
	// Say is for people. Detail is for people that want to know everything.
	Say, Detail func(text string)
}

// Loss is what to do when the lease is lost.
type Loss string

const (
	LossTerm Loss = "term" // TERM while there is time, KILL at the deadline
	LossKill Loss = "kill" // KILL at the deadline, without a warning
	LossWarn Loss = "warn" // nothing: the command runs on without the lock
)

// Result is how the command ended.
type Result struct {
	Status int    // its exit status, or 128 + the signal that ended it
	Lost   bool   // the lease did not last until all had ended, or the command was told to end because of that
	Why    string // if nothing of the loss has been said
	Told   bool   // a signal that ends programs came for it
	Left   bool   // some of what it started may still run

	Interrupted bool // INT ended it
	Key         bool // and INT came from a key of the terminal, which reached only the command
}

// NotStarted is the error of Run for a command that could not be started.
type NotStarted struct{ Err error }

func (e *NotStarted) Error() string { return fmt.Sprintf("start the command: %v", e.Err) }
func (e *NotStarted) Unwrap() error { return e.Err }

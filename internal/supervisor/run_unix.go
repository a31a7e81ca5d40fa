//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drainPoll is how often the supervisor looks after what the command has left behind.
	drainPoll = 10 * time.Millisecond
	// rekill is how often a command is killed again that did not end by that.
	rekill = 250 * time.Millisecond
	// afterKill is how long the supervisor waits for what it has killed after the lease ended. A process that hangs in
	// the kernel is not gone before it comes back from there.
	afterKill = time.Second
)

// run is one command under supervision. It belongs to the goroutine of Run.
type run struct {
	c      *Command
	lease  Lease
	plan   plan
	tree   tree
	tty    *terminal // nil: stdin is no terminal
	guard  *guardian // nil: none, or it has died
	failed error     // why the command has not been run

	exited  bool // the command has, or was not started
	gone    bool // and nothing is left of what it started
	status  int
	lost    bool
	why     string
	terms   terms
	leftAt  time.Time // when something was first seen to be left after the lease; zero: nothing was
	leftEnd time.Time // when what the command left is to be killed; zero: it was not told to end
	denied  bool      // it was said that processes cannot be ended

	told        bool // this process got a signal that ends programs
	left        bool // what the command has started may still run
	interrupted bool // this process got INT
	byInterrupt bool // INT has ended the command
}

// Run runs the command until it has exited and nothing is left of what it started. The error is a *NotStarted, or says
// that the guard could not be started; then nothing has run.
//
// The calling goroutine stays on its thread for good: without a guard, Linux tells the command to end when the thread
// ends that started it.
func Run(lease Lease, c *Command) (Result, error) {
	runtime.LockOSThread()
	self := os.Getpid()
	r := &run{
		c: c, lease: lease, tty: openTerminal(c.Stdin, c.Stdout, unix.Getpgrp()), tree: tree{root: self, except: descendants(self, nil)},
		plan: plan{grace: c.Grace, loss: c.Loss, limit: c.Limit, explain: c.Explain},
	}
	adoptOrphans()
	reserveThreads()
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	// A signal that was ignored when this program started stays ignored, here and in the command.
	listen(c.Interrupts, passedOn)
	if err := r.start(); err != nil {
		return Result{}, err
	}
	if !listsChildren() {
		r.say("this kernel lists no children of processes (/proc/PID/task/TID/children): what leaves the command's process group will not be ended")
	}
	r.supervise(children)
	r.dismiss()
	if r.tty != nil {
		r.tty.takeBack(r.tree.group)
	}
	if r.failed != nil && !r.lost {
		return Result{}, r.failed
	}
	return Result{
		Status: r.status, Lost: r.lost, Why: r.why, Told: r.told || r.byInterrupt, Left: r.left, Interrupted: r.byInterrupt,
		Key: r.byInterrupt && !r.interrupted && r.tty != nil && r.tty.given,
	}, nil
}

// startedWithoutTTOU reports whether this program was started with TTOU ignored. It is asked before it is ignored here.
var startedWithoutTTOU = sync.OnceValue(func() bool { return ignored(syscall.SIGTTOU) })

// start starts the guard, which starts the command when it has a deadline, or the command.
func (r *run) start() error {
	// When it is done: the command must not inherit it. The terminal stops a background process that writes to it or takes it.
	if !startedWithoutTTOU() { // a command before this one has left it ignored
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
	}
	defer signal.Ignore(syscall.SIGTTOU)
	if r.c.Guard != nil && r.c.Loss != LossWarn {
		g, err := startGuard(r.c)
		if err != nil {
			return err
		}
		r.guard, r.tree.root = g, g.pid
		r.detail("the guard is there")
		return nil
	}
	pid, err := start(r.c, r.tty)
	if err != nil {
		return &NotStarted{err}
	}
	r.runs(pid)
	return nil
}

// runs is told of the command's process.
func (r *run) runs(pid int) {
	r.tree.group = pid
	if r.tty != nil {
		r.tty.started(pid)
	}
	r.detail(fmt.Sprintf("%s runs as process %d", r.c.Args[0], pid))
}

// supervise returns when the command has exited and nothing is left of what it started.
func (r *run) supervise(children <-chan os.Signal) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if r.exited && r.drained(time.Now()) {
			return
		}
		r.watch(time.Now())
		timer.Reset(r.pause(time.Now()))
		var answers <-chan answer
		if r.guard != nil {
			answers = r.guard.answers
		}
		signals := r.c.Interrupts
		if r.tree.group == 0 {
			signals = nil // they are for the command, which is there in a moment
		}
		done := r.lease.Done()
		if r.lease.Err() != nil {
			done = nil // it is known
		}
		select {
		case a, ok := <-answers:
			if ok {
				r.answered(a)
			} else {
				r.guardGone()
			}
		case <-children:
			r.reap()
		case s := <-signals:
			r.pass(s.(syscall.Signal))
		case <-done:
		case <-timer.C:
		}
	}
}

// answered is told what the guard says.
func (r *run) answered(a answer) {
	switch a.what {
	case answerRuns:
		r.runs(a.n)
	case answerFails:
		r.failed = &NotStarted{&fs.PathError{Op: "exec", Path: r.c.Path, Err: syscall.Errno(a.n)}}
		r.exited, r.gone = true, true
	case answerState:
		r.changed(unix.WaitStatus(a.n))
	case answerGone:
		r.gone = true
	}
}

// reap waits for children of this process: the guard, and without it the command and what that left behind.
func (r *run) reap() {
	childless := reap(func(pid int, s unix.WaitStatus) {
		switch {
		case r.guard != nil && pid == r.guard.pid:
			r.guard.ends(s)
		case pid == r.tree.group:
			r.changed(s)
		}
	})
	if r.exited && r.guard == nil {
		r.gone = r.gone || r.tree.empty(childless)
	}
}

// pause is the time until the next look at the lease. A renewal is no event, and the guard has to know of it: a
// twentieth of what is left is well within a third of the lease.
func (r *run) pause(now time.Time) time.Duration {
	if r.exited {
		return drainPoll
	}
	if r.plan.killed {
		return rekill
	}
	deadline := r.lease.Deadline()
	look := max(until(now, deadline)/20, 5*time.Millisecond)
	return max(0, min(look, r.plan.next(now, deadline), time.Second))
}

// watch does what is due for the lease.
func (r *run) watch(now time.Time) {
	deadline, err := r.lease.Deadline(), r.lease.Err()
	act := r.plan.step(now, deadline, err)
	if r.plan.told {
		deadline = r.plan.killAt
	}
	if act != nothing && r.guard != nil && r.guard.deadline.IsZero() { // the command is not started
		r.lost, r.why, r.exited, r.gone = true, r.plan.why, true, true
		return
	}
	if r.guard != nil {
		r.guard.tell(now, deadline, r.plan.told)
	}
	r.lost = r.lost || act != nothing
	switch {
	case act == warn:
		r.say(r.plan.why + "; the command runs on without the lock")
	case act == term:
		r.ended(r.plan.why+"; ", "told to end", r.tree.end())
	case act == kill:
		r.ended(r.plan.why+"; ", "killed", r.tree.kill())
	case r.plan.killed && r.c.Loss != LossWarn && !r.exited:
		r.tree.kill() // what could not be ended, or has come since
	}
}

// ended says that the command was ended, or that it could not be.
func (r *run) ended(why, what string, denied []int) {
	r.denied = r.denied || len(denied) > 0
	if len(denied) > 0 {
		r.say(why + denial(what, denied))
		return
	}
	r.say(why + "the command is " + what)
}

// drained reports whether nothing is left of what the command started, after telling it to end.
func (r *run) drained(now time.Time) bool {
	if r.guard == nil {
		r.reap()
	}
	if r.gone {
		return true
	}
	switch {
	case r.plan.killed && r.c.Loss != LossWarn:
		r.deny("killed", r.tree.kill())
		if r.leftAt.IsZero() {
			r.leftAt = now
		}
		if until(now, r.leftAt.Add(afterKill)) <= 0 {
			r.left = true
			r.say("not all processes that the command has started have ended")
			return true
		}
	case r.leftEnd.IsZero() && r.c.Grace > 0:
		r.detail("the command has left processes behind; they are told to end")
		r.leftEnd = now.Add(r.c.Grace)
		r.deny("told to end", r.tree.end())
	case until(now, r.leftEnd) <= 0:
		r.detail("what the command left behind is killed")
		r.leftEnd = now.Add(rekill)
		r.deny("killed", r.tree.kill())
	}
	return false
}

// deny says once that processes that the command has left cannot be ended: the lock is kept for them.
func (r *run) deny(what string, denied []int) {
	if len(denied) > 0 && !r.denied {
		r.denied = true
		r.say("what the command has left keeps the lock: " + denial(what, denied))
	}
}

// changed is told of each state of the command.
func (r *run) changed(s unix.WaitStatus) {
	if r.exited {
		return
	}
	if s.Stopped() {
		if r.tty != nil && r.tty.wanted(s.StopSignal(), r.tree.group) {
			r.tty.give(r.tree.group)
			_ = r.tree.signal(syscall.SIGCONT)
			return
		}
		switch s.StopSignal() {
		case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
			r.stop()
		}
		return
	}
	r.exited = true
	r.status = s.ExitStatus()
	if s.Signaled() {
		r.status = 128 + int(s.Signal())
		r.byInterrupt = s.Signal() == syscall.SIGINT
	}
	// Until now the command ran. Whether the lease has lasted is decided by the clock, not by the timer that tells of it.
	if err := r.lease.Err(); !r.lost && (err != nil || until(time.Now(), r.lease.Deadline()) <= 0) {
		r.lost, r.why = true, "the lease had ended when the command exited"
		if err != nil {
			r.why = r.c.Explain(err)
		}
	}
}

// guardGone is called when the guard has died before its time. On Linux the command and what it left are children of
// this process from then on, and the command has got TERM, because its parent has died.
func (r *run) guardGone() {
	_ = r.guard.orders.Close()
	r.guard.wait()
	r.guard, r.tree.root = nil, os.Getpid()
	switch {
	case r.tree.group == 0: // it may just have been started
		r.failed, r.exited = errors.New("the guard has died before the command was started"), true
		r.tree.kill()
	case adopts && !r.exited:
		r.say("the guard has died, and the command is told to end: if this process is killed too, it can outlive the lock")
	case !r.exited: // its parent is another process now
		r.lost, r.exited, r.status = true, true, 128+int(syscall.SIGKILL)
		r.ended("the guard has died; ", "killed", r.tree.kill())
	}
}

// dismiss ends the guard and waits for it.
func (r *run) dismiss() {
	if r.guard == nil {
		return
	}
	if r.guard.dismiss() && !r.lost {
		r.lost, r.why = true, "this process was stopped; its guard ended the command before the lease was over"
	}
}

func (r *run) say(text string)    { r.c.Say(r.c.Name + ": " + text) }
func (r *run) detail(text string) { r.c.Detail(r.c.Name + ": " + text) }

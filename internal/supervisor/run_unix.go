//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drainPoll is how often the supervisor looks whether the group is empty. There is no event for that.
	drainPoll = 10 * time.Millisecond
	// afterKill is how long the supervisor waits for a group that it has killed after the lease ended. A process
	// that hangs in the kernel is not gone before it comes back from there.
	afterKill = time.Second
)

// run is one command under supervision. It belongs to the goroutine of Run.
type run struct {
	c     *Command
	lease Lease
	plan  plan
	group *group
	tty   *terminal // nil: stdin is no terminal
	guard *guardian // nil: none, or it has died

	launch *launcher
	failed error // why the command has not been run

	states  <-chan unix.WaitStatus // of the command, until it has exited
	exited  bool
	status  int
	lost    bool
	why     string
	term    time.Time // of the last TERM that was passed on
	leftAt  time.Time // when what the command left in its group was killed; zero: it was not
	leftEnd time.Time // when it is to be killed; zero: it was not told to end
}

// Run runs the command until it has exited and its process group is empty. The error is a *NotStarted, or says that
// the guard or the launcher could not be started; then nothing has run.
//
// The calling goroutine stays on its thread for good: Linux kills the command when the thread ends that started it.
func Run(lease Lease, c *Command) (Result, error) {
	runtime.LockOSThread()
	adoptOrphans()
	r := &run{
		c: c, lease: lease, tty: openTerminal(c.Stdin, c.Stdout),
		plan: plan{grace: c.Grace, loss: c.Loss, limit: c.Limit, explain: c.Explain},
	}
	if c.Guard != nil && c.Loss != LossWarn {
		g, err := startGuard(c.Guard)
		if err != nil {
			return Result{}, fmt.Errorf("start the guard: %w", err)
		}
		r.guard = g
	}
	if err := r.start(); err != nil {
		r.dismiss()
		return Result{}, err
	}
	r.supervise()
	if r.launch.running != nil { // the process has exited, so there is an answer
		r.launched(<-r.launch.running)
	}
	r.dismiss()
	if r.tty != nil {
		r.tty.takeBack(r.group.id)
	}
	if r.failed != nil && !r.lost {
		return Result{}, r.failed
	}
	return Result{Status: r.status, Lost: r.lost, Why: r.why}, nil
}

// start starts the process that is to become the command.
func (r *run) start() error {
	// A signal that was ignored when this program started stays ignored, here and in the command.
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(r.c.Interrupts, s)
		}
	}
	l, err := startLauncher(r.c)
	if err != nil {
		return err
	}
	r.launch = l
	r.group = &group{id: l.pid}
	states := make(chan unix.WaitStatus)
	r.states = states
	go waitStates(l.pid, states)
	// Only now: the command must not inherit it. The terminal stops a background process that writes to it or takes it.
	signal.Ignore(syscall.SIGTTOU)
	if r.guard == nil {
		r.open()
		return nil
	}
	r.guard.group = l.pid
	r.detail("the command waits until the guard knows it")
	return nil
}

// open lets the process become the command.
func (r *run) open() {
	if r.tty != nil {
		r.tty.offer(r.group.id)
	}
	r.launch.open()
	r.detail("the command may start")
}

// launched is told whether the process has become the command.
func (r *run) launched(err error) {
	r.launch.running = nil
	switch {
	case r.failed != nil:
	case err != nil:
		r.failed = &NotStarted{err}
	default:
		r.detail(fmt.Sprintf("%s runs as process %d", r.c.Args[0], r.group.id))
	}
}

// waitStates sends each state of the process; it ends when that has exited.
func waitStates(pid int, states chan<- unix.WaitStatus) {
	for {
		var s unix.WaitStatus
		_, err := unix.Wait4(pid, &s, unix.WUNTRACED, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // impossible: no other goroutine waits for it
			s = 0
		}
		states <- s
		if err != nil || s.Exited() || s.Signaled() {
			return
		}
	}
}

// supervise returns when the command has exited and its group is empty.
func (r *run) supervise() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if r.exited && r.drained(time.Now()) {
			return
		}
		r.watch(time.Now())
		timer.Reset(r.pause(time.Now()))
		var guardKnows, guardEnd <-chan struct{}
		if r.guard != nil {
			guardEnd = r.guard.ended
			if r.launch.gate != nil {
				guardKnows = r.guard.knows
			}
		}
		signals := r.c.Interrupts
		if r.launch.gate == nil && r.launch.running != nil {
			signals = nil // they are for the command, which is there in a moment
		}
		done := r.lease.Done()
		if r.lease.Err() != nil {
			done = nil // it is known
		}
		select {
		case s := <-r.states:
			r.changed(s)
		case <-guardKnows:
			r.detail("the guard knows the command")
			r.open()
		case err := <-r.launch.running:
			r.launched(err)
		case s := <-signals:
			r.pass(s.(syscall.Signal))
		case <-done:
		case <-guardEnd:
			r.guardGone()
		case <-timer.C:
		}
	}
}

// pause is the time until the next look at the lease. A renewal is no event, and the guard has to know of it: a
// twentieth of what is left is well within a third of the lease.
func (r *run) pause(now time.Time) time.Duration {
	if r.exited {
		return drainPoll
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
	if r.guard != nil {
		r.guard.tell(now, deadline, r.plan.told)
	}
	if act == nothing {
		return
	}
	r.lost = true
	switch act {
	case warn:
		r.say(r.plan.why + "; the command runs on without the lock")
	case term:
		r.say(r.plan.why + "; the command is told to end")
		r.group.end()
	case kill:
		r.say(r.plan.why + "; the command is killed")
		r.group.kill()
	}
}

// drained reports whether the group is empty, after telling what is left there to end.
func (r *run) drained(now time.Time) bool {
	r.group.reap()
	if r.group.empty() {
		return true
	}
	switch {
	case r.plan.killed && r.c.Loss != LossWarn:
		return until(now, r.leftAtOr(now).Add(afterKill)) <= 0
	case r.leftEnd.IsZero() && r.c.Grace > 0:
		r.detail("the command has left processes behind; they are told to end")
		r.leftEnd = now.Add(r.c.Grace)
		r.group.end()
	case until(now, r.leftEnd) <= 0:
		r.detail("what the command left behind is killed")
		r.leftEnd = now.Add(time.Hour)
		r.group.kill()
	}
	return false
}

// leftAtOr returns when the group of a lost lease was first seen not to be empty.
func (r *run) leftAtOr(now time.Time) time.Time {
	if r.leftAt.IsZero() {
		r.leftAt = now
	}
	return r.leftAt
}

// changed is told of each state of the command.
func (r *run) changed(s unix.WaitStatus) {
	if s.Stopped() {
		if r.tty != nil && r.tty.wanted(s.StopSignal(), r.group.id) {
			r.tty.give(r.group.id)
			r.group.signal(syscall.SIGCONT)
			return
		}
		switch s.StopSignal() {
		case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
			r.stop()
		}
		return
	}
	r.exited, r.states = true, nil
	r.status = s.ExitStatus()
	if s.Signaled() {
		r.status = 128 + int(s.Signal())
	}
	// Until now the command ran. Whether the lease has lasted is decided by the clock, not by the timer that tells of it.
	if err := r.lease.Err(); !r.lost && (err != nil || until(time.Now(), r.lease.Deadline()) <= 0) {
		r.lost, r.why = true, "the lease had ended when the command exited"
		if err != nil {
			r.why = r.c.Explain(err)
		}
	}
}

// guardGone is called when the guard has died before its time.
func (r *run) guardGone() {
	_ = r.guard.pipe.Close()
	r.guard = nil
	if r.launch.gate != nil {
		r.failed = errors.New("the guard has died before the command was started")
		r.launch.abandon()
		return
	}
	r.say("the guard has died: if this process is killed too, the command can outlive the lock")
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

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/supervisor"
)

func runCommand() *cli.Command {
	return jobCommand(&cli.Command{
		Name:  "run",
		Usage: "run a command while it holds a lock",
		Description: "CMD gets stdin, stdout and stderr, HOLDFAST_LOCK and with --fencing HOLDFAST_TOKEN. It is started without a\n" +
			"shell, and ended before another owner can get the lock: with TERM, and with KILL when the lease is over.\n\n" +
			"The exit status is that of CMD, or 128 and the number of the signal that ended it. Others: 121 if the lock was lost\n" +
			"and CMD was ended, 124 if the lock was not acquired, 125 if holdfast failed, 126 if CMD cannot be run, and 127 if\n" +
			"CMD was not found.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: "mutex", Usage: "take a lock of `KIND` mutex, fair, read or write"},
			&cli.IntFlag{Name: "at-most", Aliases: []string{"N"}, Usage: "run at most `N` commands at a time, over all hosts: the lock is a semaphore with N permits"},
			&cli.BoolFlag{Name: "shared", Aliases: []string{"s"}, Usage: "the same as --kind read"},
			&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "do not wait if another holds the lock"},
			&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait at most `TIME` for the lock", DefaultText: "no limit"},
			&cli.IntFlag{Name: "busy-status", Aliases: []string{"E"}, Value: runBusy, Usage: "exit with `STATUS` if the lock was not acquired"},
			&cli.DurationFlag{Name: "max-hold", Usage: "end CMD after `TIME`, at least the lease; 0 is no limit"},
			&cli.DurationFlag{Name: "hold-at-least", Usage: "keep the lock taken until `TIME` after it was acquired, if CMD ends earlier"},
			&cli.BoolFlag{Name: "fencing", Usage: "give CMD a fencing token"},
			&cli.StringFlag{Name: "on-loss", Value: string(supervisor.LossTerm), Usage: "when the lock is lost, send TERM and KILL (term), only KILL (kill), or only say so (warn): `WHAT`"},
		},
		Action: runRun,
	})
}

func runRun(ctx context.Context, c *cli.Command) error {
	j := newJob(c)
	j.wait, j.busy, j.maxHold, j.loss = c.Duration("wait"), c.Int("busy-status"), c.Duration("max-hold"), supervisor.Loss(c.String("on-loss"))
	if err := j.checkRun(c); err != nil {
		return cli.Exit(usageError(ctx, c, err, true), runFailed)
	}
	var opts []holdfast.Option
	if j.maxHold > 0 {
		opts = append(opts, holdfast.WithMaxHold(j.maxHold))
	}
	if c.IsSet("hold-at-least") {
		opts = append(opts, holdfast.WithHoldAtLeast(c.Duration("hold-at-least")))
	}
	fencing := c.Bool("fencing")
	if fencing {
		opts = append(opts, holdfast.WithFencing())
	}
	defer j.end()
	if err := j.begin(ctx, c, opts...); err != nil {
		return err
	}
	if fencing && len(j.conn.managers) > 1 {
		return cli.Exit(errors.New("--fencing needs one Redis: several have no common token"), runFailed)
	}
	lock, err := j.locker(ctx, c)
	if err != nil {
		return cli.Exit(err, runFailed)
	}
	j.take = lock.Lock
	if c.Bool("no-wait") {
		j.take = lock.TryLock
	}
	j.giveBack = func(ctx context.Context, lease *holdfast.Lease) error { return lease.Unlock(ctx) }
	lease, err := j.acquire(ctx)
	if err != nil {
		return err
	}
	result, err := j.work(lease)
	switch {
	case err != nil:
		return err
	case result.Lost:
		return silent(runLost)
	}
	return statusOfCommand(result)
}

// checkRun checks the flags that only run has.
func (j *job) checkRun(c *cli.Command) error {
	switch j.loss {
	case supervisor.LossTerm, supervisor.LossKill, supervisor.LossWarn:
	default:
		return fmt.Errorf("--on-loss is term, kill or warn, not %q", string(j.loss))
	}
	if c.Bool("no-wait") && c.IsSet("wait") {
		return errors.New("--no-wait and --wait exclude each other")
	}
	if c.IsSet("wait") && j.wait <= 0 {
		return errors.New("--wait must be positive; --no-wait does not wait")
	}
	if c.Bool("shared") && c.IsSet("kind") && c.String("kind") != "read" {
		return errors.New("--shared is --kind read, and excludes --kind " + c.String("kind"))
	}
	if c.IsSet("at-most") {
		for _, flag := range []string{"kind", "shared", "fencing"} {
			if c.IsSet(flag) {
				return errors.New("-N and --" + flag + " exclude each other")
			}
		}
	}
	if j.busy < 0 || j.busy > 255 {
		return errors.New("--busy-status is an exit status, 0 to 255")
	}
	return nil
}

// locker returns the lock that the flags ask for.
func (j *job) locker(ctx context.Context, c *cli.Command) (holdfast.Locker, error) {
	kind, n := c.String("kind"), c.Int("at-most")
	if c.Bool("shared") {
		kind = "read"
	}
	if !c.IsSet("at-most") {
		return locker(kind, j.conn, j.name)
	}
	if len(j.conn.managers) > 1 {
		return nil, errors.New("-N needs one Redis: a majority of several does not bound how many hold a permit")
	}
	m := j.conn.managers[0]
	asking, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	if info, err := m.Inspect(asking, j.name); err == nil && info.Kind == holdfast.KindSemaphore && info.Permits != n {
		j.say("%s has %d permits in Redis, not %d: the number in Redis counts", printable(j.name), info.Permits, n)
	}
	return m.Semaphore(j.name, n).Locker(1), nil
}

// kinds are the values of --kind.
var kinds = []string{"mutex", "fair", "read", "write"}

// locker returns the lock of that kind: on several servers, a Redlock.
func locker(kind string, conn *connection, name string) (holdfast.Locker, error) {
	var members []holdfast.Locker
	for _, m := range conn.managers {
		var l holdfast.Locker
		switch kind {
		case "mutex":
			l = m.Mutex(name)
		case "fair":
			l = m.FairMutex(name)
		case "write":
			l = m.RWMutex(name)
		case "read":
			l = m.RWMutex(name).RLocker()
		default:
			return nil, fmt.Errorf("--kind is mutex, fair, read or write, not %q", kind)
		}
		members = append(members, l)
	}
	if len(members) == 1 {
		return members[0], nil
	}
	l, err := holdfast.NewRedlock(members...)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func leadCommand() *cli.Command {
	return jobCommand(&cli.Command{
		Name:  "lead",
		Usage: "run a command while this process leads an election",
		Description: "It waits until it leads, publishes --value, and runs CMD. When it leads no more, CMD is ended before another\n" +
			"process can lead, and it waits for its next term. When CMD exits, the next process leads.\n\n" +
			"CMD gets stdin, stdout and stderr, HOLDFAST_LOCK, the election's name, and HOLDFAST_TOKEN, the number of the term.\n\n" +
			"The exit status is that of CMD, or 128 and the number of the signal that ended it. Others: 121 if CMD was ended\n" +
			"with its term after a signal, 125 if holdfast failed, 126 if CMD cannot be run, and 127 if CMD was not found.",
		Flags:  []cli.Flag{&cli.StringFlag{Name: "value", Usage: "publish `TEXT` while this process leads, such as its address; at most 4096 bytes"}},
		Action: runLead,
	})
}

func runLead(ctx context.Context, c *cli.Command) error {
	j := newJob(c)
	defer j.end()
	if err := j.begin(ctx, c); err != nil {
		return err
	}
	if len(j.conn.managers) > 1 {
		return cli.Exit(errors.New("an election needs one Redis: several have no common term"), runFailed)
	}
	election := j.conn.managers[0].Election(j.name)
	var term *holdfast.Term
	j.take = func(ctx context.Context) (_ *holdfast.Lease, err error) {
		term, err = election.Campaign(ctx, c.String("value"))
		return term.Lease(), err
	}
	j.giveBack = func(ctx context.Context, _ *holdfast.Lease) error { return term.Resign(ctx) }
	for {
		lease, err := j.acquire(ctx)
		if errors.Is(err, holdfast.ErrLeaseLost) { // before the command was started
			continue
		}
		if err != nil {
			return err
		}
		result, err := j.work(lease)
		switch {
		case err != nil:
			return err
		case !result.Lost:
			return statusOfCommand(result)
		case result.Told, result.Left: // a second command must not run beside what is left of this one
			return silent(runLost)
		}
		j.say("%s: this process leads no more; it waits for its next term", printable(j.name))
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/supervisor"
)

// Exit statuses of run, beyond those of the command itself.
const (
	runLost     = 121
	runBusy     = 124
	runFailed   = 125
	runCannot   = 126 // as shells do
	runNotFound = 127
)

// lockEnv and tokenEnv tell the command what it runs under.
const (
	lockEnv  = "HOLDFAST_LOCK"
	tokenEnv = "HOLDFAST_TOKEN"
)

const defaultGrace = 5 * time.Second

func runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command while it holds a lock",
		ArgsUsage: "NAME -- CMD [ARG...]",
		Description: "CMD gets stdin, stdout and stderr, HOLDFAST_LOCK and with --fencing HOLDFAST_TOKEN. It is started without a\n" +
			"shell, and ended before the lock can be anybody else's: with TERM, and with KILL when the lease is over.\n\n" +
			"Exit status: that of CMD, or 128 + the signal that ended it; 121 the lock was lost and CMD was ended; 124 the lock\n" +
			"was not acquired; 125 holdfast failed; 126 CMD cannot be run; 127 CMD was not found.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "kind", Value: "mutex", Usage: "take a lock of `KIND` mutex, fair, read or write"},
			&cli.BoolFlag{Name: "shared", Aliases: []string{"s"}, Usage: "the same as --kind read"},
			&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "do not wait if another holds the lock"},
			&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait at most `TIME` for the lock"},
			&cli.IntFlag{Name: "busy-status", Aliases: []string{"E"}, Value: runBusy, Usage: "exit with `STATUS` if the lock was not acquired"},
			&cli.DurationFlag{Name: "lease", Value: holdfast.DefaultLease, Usage: "a lock whose holder has died is free after `TIME`"},
			&cli.DurationFlag{Name: "max-hold", Usage: "end CMD after `TIME`, at least the lease; 0 is no limit"},
			&cli.BoolFlag{Name: "fencing", Usage: "give CMD a fencing token"},
			&cli.DurationFlag{Name: "grace", Value: defaultGrace, Usage: "send TERM when less than `TIME` of the lease is left, at most a third of it; 0 sends none"},
			&cli.StringFlag{Name: "on-loss", Value: string(supervisor.LossTerm), Usage: "when the lock is lost, send TERM and KILL (term), only KILL (kill), or only say so (warn): `WHAT`"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say what happens, on stderr"},
		}, redisFlags()...),
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		Action:                    runRun,
		OnUsageError: func(ctx context.Context, c *cli.Command, err error, sub bool) error {
			return cli.Exit(usageError(ctx, c, err, sub), runFailed)
		},
	}
}

// job is one call of run.
type job struct {
	teller
	name    string // of the lock
	argv    []string
	path    string // of the command
	noWait  bool
	wait    time.Duration
	busy    int // the exit status
	maxHold time.Duration
	limit   time.Time // of maxHold
	fencing bool
	grace   time.Duration
	loss    supervisor.Loss
	timeout time.Duration
	verbose bool
	signals chan os.Signal
	conn    *connection
	lock    holdfast.Locker
}

func runRun(ctx context.Context, c *cli.Command) error {
	j := &job{
		teller: newTeller(c), noWait: c.Bool("no-wait"), wait: c.Duration("wait"), busy: c.Int("busy-status"),
		maxHold: c.Duration("max-hold"), fencing: c.Bool("fencing"), loss: supervisor.Loss(c.String("on-loss")),
		timeout: c.Duration("timeout"), verbose: c.Bool("verbose"), signals: make(chan os.Signal, 64),
	}
	if err := j.understand(c); err != nil {
		return cli.Exit(usageError(ctx, c, err, true), runFailed)
	}
	path, err := exec.LookPath(j.argv[0])
	if err != nil {
		return notStarted(err)
	}
	j.path = path

	// A stderr that nobody reads must not end this process: the command would lose its lock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stop := j.listen()
	defer stop()

	opts := []holdfast.Option{holdfast.WithLease(c.Duration("lease"))}
	if j.maxHold > 0 {
		opts = append(opts, holdfast.WithMaxHold(j.maxHold))
	}
	if j.fencing {
		opts = append(opts, holdfast.WithFencing())
	}
	if j.verbose {
		opts = append(opts, holdfast.WithLogger(slog.New(slog.NewTextHandler(j.w, nil))))
	}
	if j.conn, err = connect(ctx, c, opts...); err != nil {
		return cli.Exit(err, runFailed)
	}
	defer j.conn.close()
	if j.lock, err = locker(c, j.conn, j.name); err != nil {
		return cli.Exit(err, runFailed)
	}
	lease, err := j.acquire(ctx)
	if err != nil {
		return err
	}
	return j.work(lease)
}

// understand reads the arguments, and checks what no other checks.
func (j *job) understand(c *cli.Command) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return errors.New("a lock's name and a command are needed: run NAME -- CMD")
	}
	j.name, j.argv = args[0], args[1:]
	switch j.loss {
	case supervisor.LossTerm, supervisor.LossKill, supervisor.LossWarn:
	default:
		return fmt.Errorf("--on-loss is term, kill or warn, not %q", string(j.loss))
	}
	if j.noWait && c.IsSet("wait") {
		return errors.New("--no-wait and --wait exclude each other")
	}
	if c.IsSet("wait") && j.wait <= 0 {
		return errors.New("--wait must be positive; --no-wait does not wait")
	}
	if j.busy < 0 || j.busy > 255 {
		return errors.New("--busy-status is an exit status, 0 to 255")
	}
	most := c.Duration("lease") / 3
	switch j.grace = c.Duration("grace"); {
	case !c.IsSet("grace"):
		j.grace = min(j.grace, most)
	case j.grace < 0 || j.grace > most:
		return fmt.Errorf("--grace must be between 0 and a third of the lease, %v", most)
	}
	return nil
}

// locker returns the lock that --kind names, on each of the servers.
func locker(c *cli.Command, conn *connection, name string) (holdfast.Locker, error) {
	kind := c.String("kind")
	if c.Bool("shared") {
		kind = "read"
	}
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
	if c.Bool("fencing") {
		return nil, errors.New("--fencing needs one Redis: several have no common token")
	}
	l, err := holdfast.NewRedlock(members...)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// listen subscribes to the signals by which people end a program, unless this one was started with them ignored.
func (j *job) listen() (stop func()) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(j.signals, s)
		}
	}
	return func() { signal.Stop(j.signals) }
}

// acquire returns a lease that is long enough to begin, or the error to exit with. A signal ends the wait.
func (j *job) acquire(ctx context.Context) (*holdfast.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		select {
		case s := <-j.signals:
			cancel(signalled(s.(syscall.Signal)))
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-listening
	}()
	waiting := ctx
	if j.wait > 0 {
		var done func()
		waiting, done = context.WithTimeout(ctx, j.wait)
		defer done()
	}
	j.detail("waiting for " + printable(j.name))
	lock := j.lock.Lock
	if j.noWait {
		lock = j.lock.TryLock
	}
	lease, err := lock(waiting)
	if j.maxHold > 0 {
		j.limit = time.Now().Add(j.maxHold)
	}
	if err == nil {
		if err = settled(ctx, lease); err == nil {
			return lease, nil
		}
		j.unlock(lease)
	}
	stopped := signalled(0)
	switch {
	case errors.As(context.Cause(ctx), &stopped):
		return nil, cli.Exit(fmt.Errorf("%s: %w before the lock was acquired; not run", printable(j.name), stopped), stopped.exitCode())
	case errors.Is(err, holdfast.ErrNotAcquired):
		return nil, j.notAcquired(ctx)
	}
	return nil, cli.Exit(err, runFailed)
}

// settled waits until the lease can be expected to last: one that another process has handed over has less than two
// seconds until its first renewal, which is under way.
func settled(ctx context.Context, lease *holdfast.Lease) error {
	const first, look = 2 * time.Second, 5 * time.Millisecond
	begin := time.Now()
	deadline := lease.Deadline()
	if deadline.Sub(begin) > first {
		return nil
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-lease.Done():
			return lease.Err()
		case <-tick.C:
		}
		// A short lease cannot be told from one that was handed over, so it is renewed once as well.
		if lease.Deadline().After(deadline) {
			return nil
		}
	}
}

// notAcquired says who has the lock.
func (j *job) notAcquired(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	name, who := printable(j.name), "others"
	if len(j.conn.managers) == 1 {
		info, err := j.conn.managers[0].Inspect(ctx, j.name)
		switch {
		case err != nil:
			return cli.Exit(err, runFailed)
		case info.Held:
			who = holdersOf(info)
		default:
			who = "none any more" // or by waiters that come first
		}
	}
	j.say("%s is held by %s; not run", name, who)
	return silent(j.busy)
}

// holdersOf is what one line says of the holders.
func holdersOf(info holdfast.Info) string {
	if len(info.Holders) == 0 {
		return "others"
	}
	text := printable(info.Holders[0].Owner)
	if more := len(info.Holders) - 1 + info.More; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if info.TTL > 0 {
		text += fmt.Sprintf(", for %v unless renewed", info.TTL.Round(100*time.Millisecond))
	}
	return text
}

// work runs the command and gives the lock back.
func (j *job) work(lease *holdfast.Lease) error {
	j.detail("holds " + printable(j.name))
	cmd := &supervisor.Command{
		Name: printable(j.name), Path: j.path, Args: j.argv, Env: environment(j.name, lease.Token()),
		Grace: j.grace, Loss: j.loss, Limit: j.limit, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Interrupts: j.signals, Guard: func() (*exec.Cmd, error) { return guardOf(j) },
		Explain: explain, Say: func(text string) { j.insist("%s", text) }, Detail: j.detail,
	}
	result, err := supervisor.Run(lease, cmd)
	released := j.unlock(lease)
	if cannot := (*supervisor.NotStarted)(nil); errors.As(err, &cannot) {
		return notStarted(cannot.Err)
	}
	if err != nil {
		return cli.Exit(err, runFailed)
	}
	if !result.Lost && (errors.Is(released, holdfast.ErrLeaseLost) || errors.Is(released, holdfast.ErrMaxHold)) {
		result.Lost, result.Why = true, explain(released)
	}
	if result.Lost {
		if result.Why != "" {
			j.insist("%s: %s", printable(j.name), result.Why)
		}
		return silent(runLost)
	}
	if released != nil {
		j.insist("%s: %s; Redis frees it when its lease is over", printable(j.name), withoutPrefix(released))
	}
	return silent(result.Status)
}

// explain says why a lease has ended.
func explain(err error) string {
	lost := (*holdfast.LostError)(nil)
	switch {
	case errors.Is(err, holdfast.ErrMaxHold):
		return "the time for which the lock may be held is over"
	case !errors.As(err, &lost):
		return withoutPrefix(err)
	case lost.Reason == holdfast.LostDeleted:
		return "the lock is gone: it was deleted, or the server has lost it"
	case lost.Reason == holdfast.LostStolen:
		return "another owner has taken the lock"
	}
	return "the lease is over, no renewal was confirmed in time"
}

func (j *job) unlock(lease *holdfast.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), j.timeout)
	defer cancel()
	return lease.Unlock(ctx)
}

func (j *job) detail(text string) {
	if j.verbose {
		j.insist("%s", text)
	}
}

// environment is the command's. It does not have the owner id, with which others could free the lock.
func environment(name string, token uint64) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, lockEnv+"=") || strings.HasPrefix(e, tokenEnv+"=")
	})
	env = append(env, lockEnv+"="+name)
	if token > 0 {
		env = append(env, tokenEnv+"="+strconv.FormatUint(token, 10))
	}
	return env
}

// notStarted has the status that shells have for it.
func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return cli.Exit(err, runNotFound)
	}
	return cli.Exit(err, runCannot)
}

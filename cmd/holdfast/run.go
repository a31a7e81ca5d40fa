package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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

// nameAndCommand is after how many words the flags are the command's, even without the dashes before it.
var nameAndCommand = 2

func runCommand() *cli.Command {
	return &cli.Command{
		Name:          "run",
		Usage:         "run a command while it holds a lock",
		ArgsUsage:     "NAME -- CMD [ARG...]",
		ShellComplete: complete,
		Description: "CMD gets stdin, stdout and stderr, HOLDFAST_LOCK and with --fencing HOLDFAST_TOKEN. It is started without a\n" +
			"shell, and ended before another owner can get the lock: with TERM, and with KILL when the lease is over.\n\n" +
			"The exit status is that of CMD, or 128 and the number of the signal that ended it. Others: 121 if the lock was lost\n" +
			"and CMD was ended, 124 if the lock was not acquired, 125 if holdfast failed, 126 if CMD cannot be run, and 127 if\n" +
			"CMD was not found.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "kind", Value: "mutex", Usage: "take a lock of `KIND` mutex, fair, read or write"},
			&cli.BoolFlag{Name: "shared", Aliases: []string{"s"}, Usage: "the same as --kind read"},
			&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "do not wait if another holds the lock"},
			&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait at most `TIME` for the lock", DefaultText: "no limit"},
			&cli.IntFlag{Name: "busy-status", Aliases: []string{"E"}, Value: runBusy, Usage: "exit with `STATUS` if the lock was not acquired"},
			&cli.DurationFlag{Name: "lease", Value: holdfast.DefaultLease, Usage: "a lock whose holder has died is free after `TIME`"},
			&cli.DurationFlag{Name: "max-hold", Usage: "end CMD after `TIME`, at least the lease; 0 is no limit"},
			&cli.DurationFlag{Name: "hold-at-least", Usage: "keep the lock taken until `TIME` after it was acquired, if CMD ends earlier"},
			&cli.BoolFlag{Name: "fencing", Usage: "give CMD a fencing token"},
			&cli.DurationFlag{Name: "grace", Value: defaultGrace, Usage: "send TERM when less than `TIME` of the lease is left, at most a third of it; 0 sends none"},
			&cli.StringFlag{Name: "on-loss", Value: string(supervisor.LossTerm), Usage: "when the lock is lost, send TERM and KILL (term), only KILL (kill), or only say so (warn): `WHAT`"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say what happens, on stderr"},
		}, redisFlags()...),
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		StopOnNthArg:              &nameAndCommand,
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

	// A stderr without a reader must not end this process: the command would lose its lock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	supervisor.Listen(j.signals)
	defer signal.Stop(j.signals)

	opts := []holdfast.Option{holdfast.WithLease(c.Duration("lease")), holdfast.WithIdentity(appName(j.argv[0]))}
	if j.maxHold > 0 {
		opts = append(opts, holdfast.WithMaxHold(j.maxHold))
	}
	if c.IsSet("hold-at-least") {
		opts = append(opts, holdfast.WithHoldAtLeast(c.Duration("hold-at-least")))
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
	if j.fencing && len(j.conn.managers) > 1 {
		return cli.Exit(errors.New("--fencing needs one Redis: several have no common token"), runFailed)
	}
	kind := c.String("kind")
	if c.Bool("shared") {
		kind = "read"
	}
	if j.lock, err = locker(kind, j.conn, j.name); err != nil {
		return cli.Exit(err, runFailed)
	}
	lease, err := j.acquire(ctx)
	if err != nil {
		return err
	}
	return j.work(lease)
}

// appName is what the process calls itself in Redis: the command's name, without folder and extension.
func appName(command string) string {
	name := filepath.Base(command)
	if short := strings.TrimSuffix(name, filepath.Ext(name)); short != "" {
		name = short
	}
	return cmp.Or(strings.ToValidUTF8(name[:min(len(name), 100)], ""), "holdfast")
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

// work runs the command and gives the lock back.
func (j *job) work(lease *holdfast.Lease) error {
	j.detail("holds " + printable(j.name))
	cmd := &supervisor.Command{
		Name: printable(j.name), Path: j.path, Args: j.argv, Env: environment(j.name, lease.Token()),
		Grace: j.grace, Loss: j.loss, Limit: j.limit, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Interrupts: j.signals, Guard: func() (*exec.Cmd, error) { return guardOf(j) }, Explain: explain,
		Say: func(text string) { j.insist("%s", text) }, Detail: j.detail,
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
	if result.Interrupted {
		return byInterrupt{silent(result.Status), result.Key}
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

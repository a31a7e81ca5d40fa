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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/supervisor"
)

// Exit statuses of run and lead, beyond those of the command itself.
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

// jobCommand completes cmd with what run and lead have in common.
func jobCommand(cmd *cli.Command) *cli.Command {
	cmd.ArgsUsage = "NAME -- CMD [ARG...]"
	cmd.ShellComplete = complete
	cmd.Flags = append(append(cmd.Flags,
		&cli.DurationFlag{Name: "lease", Value: holdfast.DefaultLease, Usage: "a lock whose holder has died is free after `TIME`"},
		&cli.DurationFlag{Name: "grace", Value: defaultGrace, Usage: "send TERM when less than `TIME` of the lease is left, at most a third of it; 0 sends none"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say what happens, on stderr"},
	), redisFlags()...)
	cmd.DisableSliceFlagSeparator = true
	cmd.HideHelpCommand = true
	cmd.StopOnNthArg = &nameAndCommand
	cmd.OnUsageError = func(ctx context.Context, c *cli.Command, err error, sub bool) error {
		return cli.Exit(usageError(ctx, c, err, sub), runFailed)
	}
	return cmd
}

// job is one call of run or lead: a command that runs while this process has a lock.
type job struct {
	teller
	name    string // of the lock
	argv    []string
	path    string        // of the command
	wait    time.Duration // for the lock at most; 0: no limit
	busy    int           // the exit status if the lock was not acquired
	maxHold time.Duration
	limit   time.Time // of maxHold
	grace   time.Duration
	loss    supervisor.Loss
	timeout time.Duration
	verbose bool
	signals chan os.Signal
	waits   atomic.Bool // for the lock
	conn    *connection

	take     func(ctx context.Context) (*holdfast.Lease, error)
	giveBack func(ctx context.Context, lease *holdfast.Lease) error
}

func newJob(c *cli.Command) *job {
	return &job{
		teller: newTeller(c), loss: supervisor.LossTerm, timeout: c.Duration("timeout"), verbose: c.Bool("verbose"),
		signals: make(chan os.Signal, 64),
	}
}

// begin reads what run and lead have in common of the command line, and connects. The caller calls end, even after an error.
func (j *job) begin(ctx context.Context, c *cli.Command, opts ...holdfast.Option) error {
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

	opts = append(opts, holdfast.WithLease(c.Duration("lease")), holdfast.WithIdentity(appName(j.argv[0])))
	log := slog.Handler(&outages{slog.DiscardHandler, j})
	if j.verbose {
		log = slog.NewTextHandler(j.w, nil)
	}
	opts = append(opts, holdfast.WithLogger(slog.New(log)))
	if j.conn, err = connect(ctx, c, opts...); err != nil {
		return cli.Exit(err, runFailed)
	}
	return nil
}

// outages says why a job waits, if Redis is the reason. What happens to its lock the job says itself.
type outages struct {
	slog.Handler
	job *job
}

// Enabled makes Handle see all lines.
func (o *outages) Enabled(context.Context, slog.Level) bool { return true }

// Handle says what Redis does not answer, or refuses, to a job that waits.
func (o *outages) Handle(_ context.Context, line slog.Record) error {
	line.Attrs(func(a slog.Attr) bool {
		cause, ok := a.Value.Any().(error)
		switch {
		case !ok || !o.job.waits.Load():
		case line.Message == "holdfast: redis does not answer":
			o.job.say("still waiting for %s: %s", printable(o.job.name), plain(&unavailable{cause}))
		case line.Message == "holdfast: a waiting caller is refused, trying again":
			o.job.say("still waiting: %s", plain(cause)) // it names the lock
		}
		return true
	})
	return nil
}

func (j *job) end() {
	if j.conn != nil {
		j.conn.close()
	}
	signal.Stop(j.signals)
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
		return fmt.Errorf("a lock's name and a command are needed: %s NAME -- CMD", c.Name)
	}
	j.name, j.argv = args[0], args[1:]
	most := c.Duration("lease") / 3
	switch j.grace = c.Duration("grace"); {
	case !c.IsSet("grace"):
		j.grace = min(j.grace, most)
	case j.grace < 0 || j.grace > most:
		return fmt.Errorf("--grace must be between 0 and a third of the lease, %v", most)
	}
	return nil
}

// work runs the command and gives the lock back. It says why the lock was lost, if it was.
func (j *job) work(lease *holdfast.Lease) (supervisor.Result, error) {
	j.detail("holds " + printable(j.name))
	cmd := &supervisor.Command{
		Name: printable(j.name), Path: j.path, Args: j.argv, Env: environment(j.name, lease.Token()),
		Grace: j.grace, Loss: j.loss, Limit: j.limit, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Interrupts: j.signals, Guard: func() (*exec.Cmd, error) { return guardOf(j) }, Explain: explain,
		Say: func(text string) { j.insist("%s", text) }, Detail: j.detail,
	}
	result, err := supervisor.Run(lease, cmd)
	released := j.release(lease)
	if cannot := (*supervisor.NotStarted)(nil); errors.As(err, &cannot) {
		return result, notStarted(cannot.Err)
	}
	if err != nil {
		return result, cli.Exit(err, runFailed)
	}
	if !result.Lost && (errors.Is(released, holdfast.ErrLeaseLost) || errors.Is(released, holdfast.ErrMaxHold)) {
		result.Lost, result.Why = true, explain(released)
	}
	switch {
	case result.Lost && result.Why != "":
		j.insist("%s: %s", printable(j.name), result.Why)
	case !result.Lost && released != nil:
		j.insist("%s: %s; Redis frees it when its lease is over", printable(j.name), withoutPrefix(released))
	}
	return result, nil
}

// statusOfCommand is the exit status after the command has run to its end.
func statusOfCommand(result supervisor.Result) error {
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

func (j *job) release(lease *holdfast.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), j.timeout)
	defer cancel()
	return j.giveBack(ctx, lease)
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

package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/urfave/cli/v3"
)

// Scenario is how a program in examples is played.
type Scenario struct {
	Name    string
	Usage   string
	Program string // its directory in the module
	Modes   map[string]Mode
	Direct  func(ctx context.Context, d *Director) error
}

// Mode is another way to play a scenario than with Holdfast. Its name is a flag.
type Mode struct {
	Usage   string // what the help says
	Program string // the program instead of the scenario's; "": the same
}

const (
	// redisEnv can hold the URL instead of --redis: a password must not be seen in a list of processes.
	redisEnv = "HOLDFAST_EXAMPLE_REDIS"
	// playWithin bounds a whole scenario.
	playWithin = time.Minute
)

// Exit statuses.
const (
	exitWrong = 1 // or the scenario could not be played
	exitUsage = 2
)

// Main is the main function of the stage of an example. It does not return.
func Main(s Scenario) {
	logging.Disable() // go-redis's own log repeats on stderr what the errors say
	err := s.command().Run(context.Background(), os.Args)
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
	os.Exit(statusOf(err))
}

func statusOf(err error) int {
	if coded := cli.ExitCoder(nil); errors.As(err, &coded) {
		if _, child := coded.(*exec.ExitError); !child { // a child's status is not this program's
			return coded.ExitCode()
		}
	}
	return exitWrong
}

func (s Scenario) command() *cli.Command {
	usageError := func(_ context.Context, _ *cli.Command, err error, _ bool) error {
		return cli.Exit(fmt.Errorf("%w (see --help)", err), exitUsage)
	}
	flags := []cli.Flag{&cli.StringFlag{
		Name:    "redis",
		Usage:   "use the Redis at `URL`, redis://user:password@host:6379/0; by default the program starts a server of its own",
		Sources: cli.EnvVars(redisEnv),
	}}
	for _, mode := range slices.Sorted(maps.Keys(s.Modes)) {
		flags = append(flags, &cli.BoolFlag{Name: mode, Usage: s.Modes[mode].Usage})
	}
	return &cli.Command{
		Name:            s.Name,
		Usage:           s.Usage,
		HideHelpCommand: true,
		Flags:           flags,
		OnUsageError:    usageError,
		ExitErrHandler:  func(context.Context, *cli.Command, error) {}, // Main decides
		Action: func(ctx context.Context, c *cli.Command) error {
			mode := ""
			for m := range s.Modes {
				switch {
				case !c.Bool(m):
				case mode != "":
					return usageError(ctx, c, fmt.Errorf("--%s and --%s exclude each other", mode, m), false)
				default:
					mode = m
				}
			}
			if c.Args().Present() {
				return usageError(ctx, c, fmt.Errorf("unexpected argument %q", c.Args().First()), false)
			}
			return s.play(ctx, c.String("redis"), mode)
		},
	}
}

// play runs the scenario from beginning to end. When it returns no process is left, and no key in Redis.
func (s Scenario) play(ctx context.Context, redisURL, mode string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE) // else it ends the program; now the write fails, see Director.print
	defer signal.Stop(unread)
	ctx, cancel := context.WithTimeoutCause(ctx, playWithin, fmt.Errorf("not over after %v", playWithin))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	d, err := newDirector(ctx, end, redisURL, mode, cmp.Or(s.Modes[mode].Program, s.Program))
	defer func() { err = errors.Join(err, d.close()) }()
	if err != nil {
		return err
	}
	return d.direct(s.Direct)
}

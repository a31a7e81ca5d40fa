package holdfastgocron_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
	holdfastgocron "github.com/holdfast-go/holdfast/contrib/gocron"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	os.Exit(redistest.Main(m, map[string]func([]string){
		"locker": func(args []string) {
			play(gocron.WithDistributedLocker(holdfastgocron.NewLocker(locktest.ManagerOfRole(args[0]))))
		},
		"elector": func(args []string) {
			e := locktest.ManagerOfRole(args[0]).Election("jobs")
			play(gocron.WithDistributedElector(holdfastgocron.NewElector(context.Background(), e, "killed")))
		},
	}))
}

// A program with an elected leader, as README shows it.
func withLeader(ctx context.Context, locks *holdfast.Manager, hostname string) error {
	elector := holdfastgocron.NewElector(ctx, locks.Election("jobs:leader"), hostname)
	defer elector.Close()
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		return err
	}
	return s.Shutdown()
}

func TestElector_AsREADMEShows(t *testing.T) {
	srv := redistest.Start(t)
	redistest.Must(t, withLeader(t.Context(), locksOn(t, srv), "host"))
	srv.AwaitNone(t, "jobs:leader")
}

// play runs a job in this process that says so and does not end, until the process is killed.
func play(opts ...gocron.SchedulerOption) {
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		panic(err)
	}
	_, err = s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() {
		fmt.Println("run")
		select {}
	}), gocron.WithName("report"), gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		panic(err)
	}
	s.Start()
	bufio.NewScanner(os.Stdin).Scan()
}

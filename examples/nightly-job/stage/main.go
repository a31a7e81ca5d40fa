// Command stage plays the nightly job with 3 replicas, each a process. One is killed in step 3. The next one calls a service in step 5
// that does not answer.
package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/stage"
)

const (
	steps   = 6
	lease   = time.Second
	maxHold = 3 * time.Second
	enough  = 3 * (lease + maxHold) // for the other two to finish the job
)

func main() {
	stage.Main(stage.Scenario{
		Name:    "nightly-job",
		Usage:   "a job on every replica: one runs it, the next takes over if it dies or gets stuck",
		Program: "examples/nightly-job",
		Modes: map[string]stage.Mode{
			"recipe": {Usage: "guard the job with SET NX PX, a goroutine that renews it, and compare-and-delete", Program: "examples/nightly-job/recipe"},
		},
		Direct: direct,
	})
}

func direct(ctx context.Context, d *stage.Director) error {
	service, err := newService()
	d.Must(err)
	defer service.close()
	d.Say("%d steps, lease %v, at most %v for one replica", steps, lease, maxHold)
	dying := d.Start("replica-1", "-service", service.url("replica-1"))
	select {
	case <-service.third:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	others := []*stage.Process{d.Start("replica-2", "-service", service.url("replica-2")), d.Start("replica-3", "-service", service.url("replica-3"))}
	for _, p := range others {
		p.Await("is up")
	}
	dying.Kill("in step 3") // after a lease another replica takes over, at step 3

	d.Say("the others have %v to finish the job", enough)
	if _, finished := others[0].AwaitFor("sees that the job is done", enough); finished {
		for _, p := range others {
			p.Wait()
		}
	}
	done, err := d.Redis.Get(ctx, d.Key("done")).Int()
	d.Must(err)
	d.Check(done == steps, "%v later the job is still at step %d: %s is stuck and keeps the lock", enough, done+1, service.stuck())
	return nil
}

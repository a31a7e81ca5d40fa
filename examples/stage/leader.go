package main

import (
	"context"
	"strconv"
)

const ticks = 6

// leader pauses the leader of three replicas just before it runs a job, for longer than its lease, and kills the next one when it has
// won the election and told no process of it.
var leader = scenario{
	usage: "one replica leads and runs the jobs of a clock; leaders are paused and killed at the worst moment",
	modes: map[string]string{
		"recipe": "elect with SET NX PX, a goroutine that renews the key, and a flag",
	},
	direct: directLeader,
}

func directLeader(ctx context.Context, d *Director) error {
	holdfast := d.Mode == ""
	third := "hincrby " + d.Key("ticks") + " 3"
	var watcher *Process
	if holdfast {
		third = "1 " + d.Key("ticks") + " 3" // the script and its one key
		watcher = d.Start("watcher", "-watch")
		watcher.Await("sees no leader")
	}
	paused := d.StartUntil(third, "replica-1", "-name", "replica-1")
	paused.AwaitRequest()
	if holdfast {
		watcher.Await("sees replica-1 lead")
	}
	paused.Pause("just before it runs tick 3")

	if holdfast {
		dying := d.StartUntil("2 "+d.Key("seat")+" holdfast_leader:", "replica-2", "-name", "replica-2")
		dying.AwaitRequest()
		dying.Kill("when it has won, before it has said so")
	}
	next := d.Start("replica-3", "-name", "replica-3")
	next.Await("has run tick 4")

	paused.LetPass()
	paused.Resume()
	if holdfast {
		paused.Await("steps down")
	}
	next.Wait()
	paused.Wait() // it leads once more, and finds nothing to do
	if holdfast {
		watcher.Stop()
		watcher.Wait()
	}

	ran, err := d.Redis.HGetAll(ctx, d.Key("ticks")).Result()
	d.Must(err)
	for tick := 1; tick <= ticks; tick++ {
		times := ran[strconv.Itoa(tick)]
		d.Check(times == "1", "tick %d was run %s times", tick, times)
	}
	return nil
}

package main

import (
	"context"
	"strings"
)

// upload plays two requests and their workers. One worker is killed before it attaches the ticket of its job, and one when it has.
var upload = scenario{
	usage: "start in the request, finish in the worker, under one lock; workers die before and after they take it over",
	modes: map[string]string{
		"recipe": "lock with SET NX PX in the request, and again in the worker",
	},
	direct: directUpload,
}

func directUpload(ctx context.Context, d *Director) {
	document := d.Key("document")
	takeOver := "3 " + document + " redisson_lock_queue:{" + document + "} holdfast_tombstones:" // the keys of attach.lua
	if d.Mode == "recipe" {
		takeOver = "set " + document
	}
	handOut := func() {
		d.Must(d.Redis.LMove(ctx, d.Key("taken"), d.Key("jobs"), "left", "right").Err())
		d.Say("the queue hands the job out again")
	}
	d.Start("request-1", "-file", "one").Wait()
	dying := d.StartUntil(takeOver, "worker-1")
	dying.Kill("before it has the lock")
	second := d.Start("request-2", "-file", "two")
	if d.Mode == "recipe" {
		second.Wait() // it comes in between
	} else {
		second.Await("wants to upload")
	}
	handOut()
	d.Start("worker-2").Wait()
	second.Wait()

	dying = d.StartUntil("rpush "+d.Key("published"), "worker-3")
	dying.Kill("just before it publishes") // with the lock
	handOut()
	d.Start("worker-4").Wait()

	published, err := d.Redis.LRange(ctx, d.Key("published"), 0, -1).Result()
	d.Must(err)
	d.Say("published: %s", strings.Join(published, ", "))
	for _, file := range []string{"one", "two"} {
		n := 0
		for _, p := range published {
			if p == file {
				n++
			}
		}
		d.Check(n == 1, "file %s was published %d times", file, n)
	}
}

package main

import (
	"context"
	"strings"
)

// fencedWriter pauses a writer between its last look at the lock and its write, for longer than the lease, while others write.
var fencedWriter = scenario{
	usage: "a paused holder wakes up after its lease and writes; the store rejects the old token",
	modes: map[string]string{
		"recipe": "guard the document with SET key random PX lease NX and compare-and-delete; no tokens",
	},
	direct: directFencedWriter,
}

func directFencedWriter(ctx context.Context, d *Director) error {
	write := "1 " + d.Key("store") // the script and its one key
	if d.Mode == "recipe" {
		write = "hset " + d.Key("store")
	}
	paused := d.StartUntil(write, "writer-1", "one")
	paused.AwaitRequest()
	paused.Pause("just before it writes")

	d.Start("writer-2", "two").Wait() // as soon as the lease of writer-1 has run out

	dying := d.StartUntil(write, "writer-3", "three")
	dying.AwaitRequest()
	dying.Kill("just before it writes")
	d.Start("writer-4", "four").Wait()

	paused.LetPass()
	paused.Resume()
	paused.Wait()

	text, err := d.Redis.HGet(ctx, d.Key("store"), "text").Result()
	d.Must(err)
	d.Say("the document:%s", text)
	d.Check(strings.Fields(text)[0] == "two", "writer-1 has overwritten what came after it")
	d.Check(text == " two four", "the document is %q", text)
	return nil
}

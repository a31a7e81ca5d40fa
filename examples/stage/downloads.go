package main

import (
	"context"
	"strconv"
	"strings"
)

const (
	atOnce    = 5
	filesEach = 8 // per process
)

// downloads plays three processes that want eight files each. The first one is killed while it downloads its last file.
var downloads = scenario{
	usage: "five downloads at a time over three processes, one of which dies with a permit",
	modes: map[string]string{
		"recipe": "count the downloads with INCR and DECR",
	},
	direct: directDownloads,
}

func directDownloads(ctx context.Context, d *Director) {
	dying := d.StartHeld("rpush "+d.Key("seen")+" ends process-1 "+strconv.Itoa(filesEach), "process-1", "-name", "process-1")
	for range filesEach - 1 {
		dying.Await("has file")
	}
	dying.AwaitRequest()
	others := []*Process{d.Start("process-2", "-name", "process-2"), d.Start("process-3", "-name", "process-3")}
	dying.Kill("while it downloads") // it holds a permit; if it held all, the recipe would never let the others in
	d.Must(d.Redis.RPush(ctx, d.Key("seen"), "dies process-1").Err())
	for _, p := range others {
		p.Await("has them all")
	}

	seen, err := d.Redis.LRange(ctx, d.Key("seen"), 0, -1).Result()
	d.Must(err)
	most, after, done := hostSees(seen)
	d.Say("%d downloads at a time at most, %d after the death", most, after)
	d.Check(most <= atOnce, "%d downloads at a time, and %d are allowed", most, atOnce)
	d.Check(after == atOnce, "after the death only %d downloads at a time are possible", after)
	d.Check(done == len(others)*filesEach, "the processes that live have downloaded %d files of %d", done, len(others)*filesEach)
}

// hostSees returns how many downloads there were at a time at most, and after the death of a process, and how many the others have ended.
func hostSees(events []string) (most, after, done int) {
	open, dead := make(map[string]int), "" // downloads, by process
	for _, e := range events {
		what, who, _ := strings.Cut(e, " ")
		who, _, _ = strings.Cut(who, " ")
		switch {
		case who == dead: // a request that was under way
		case what == "begins":
			open[who]++
		case what == "ends":
			open[who]--
			if who != "process-1" {
				done++
			}
		default:
			delete(open, who)
			dead = who
		}
		n := 0
		for _, of := range open {
			n += of
		}
		most = max(most, n)
		if dead != "" {
			after = max(after, n)
		}
	}
	return most, after, done
}

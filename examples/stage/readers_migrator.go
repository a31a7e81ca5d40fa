package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	processes     = 3
	readersEach   = 5 // per process
	migrationTime = 6 * time.Second
)

// readersMigrator plays 15 readers in 3 processes, one of which is killed while it reads, and a migrator in a process of its own.
var readersMigrator = scenario{
	usage: "many readers and one migrator on a read-write lock, and a reader that dies",
	modes: map[string]string{
		"recipe": "guard the schema with a counter of readers and a flag for the writer",
	},
	direct: directReadersMigrator,
}

func directReadersMigrator(_ context.Context, d *Director) error {
	d.Say("%d readers in %d processes", processes*readersEach, processes)
	dying := d.StartUntil("get "+d.Key("data"), "reader-1")
	dying.AwaitRequest()
	var all []*Process
	for i := 2; i <= processes; i++ {
		p := d.Start(fmt.Sprintf("reader-%d", i))
		p.Await("sees schema 1")
		all = append(all, p)
	}
	dying.Kill("while it reads") // it holds the read side

	if _, migrated := d.Start("migrator", "-migrate").AwaitFor("has migrated", migrationTime); migrated {
		for _, p := range all {
			p.Await("sees schema 2")
		}
	} else {
		d.Check(false, "%v later the migrator still waits for a reader that is dead", migrationTime)
	}
	for _, p := range all {
		p.Stop()
		torn := p.Await("torn: ")
		p.Wait()
		d.Check(strings.HasPrefix(torn, "0 "), "a reader saw half a migration in %s", torn)
	}
	return nil
}

// Command stage plays 15 readers in 3 processes, one of which is killed while it reads, and a migrator in a process of its own.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/stage"
)

const (
	processes = 3
	readers   = 5               // per process
	enough    = 6 * time.Second // for the migration
)

func main() {
	stage.Main(stage.Scenario{
		Name:    "readers-migrator",
		Usage:   "many readers and one migrator on a read-write lock, and a reader that dies",
		Program: "examples/readers-migrator",
		Modes: map[string]stage.Mode{
			"recipe": {Usage: "guard the schema with a counter of readers and a flag for the writer", Program: "examples/readers-migrator/recipe"},
		},
		Direct: direct,
	})
}

func direct(_ context.Context, d *stage.Director) error {
	d.Say("%d readers in %d processes", processes*readers, processes)
	dying := d.StartUntil("get "+d.Key("data"), "reader-1")
	dying.AwaitRequest()
	var all []*stage.Process
	for i := 2; i <= processes; i++ {
		p := d.Start(fmt.Sprintf("reader-%d", i))
		p.Await("sees schema 1")
		all = append(all, p)
	}
	dying.Kill("while it reads") // it holds the read side

	if _, migrated := d.Start("migrator", "-migrate").AwaitFor("has migrated", enough); migrated {
		for _, p := range all {
			p.Await("sees schema 2")
		}
	} else {
		d.Check(false, "%v later the migrator still waits for a reader that is dead", enough)
	}
	for _, p := range all {
		p.Stop()
		torn := p.Await("torn: ")
		p.Wait()
		d.Check(strings.HasPrefix(torn, "0 "), "a reader saw half a migration in %s", torn)
	}
	return nil
}

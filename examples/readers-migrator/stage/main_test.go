package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) { stagetest.Main(m, main) }

// The migrator gets in although there is always a reader and one has died, and no reader sees half a migration.
func TestMigration_OutlivesADeadReader(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Order("-: reader-1 is killed while it reads", "migrator: migrates", "migrator: has migrated")
	for _, reader := range []string{"reader-2", "reader-3"} {
		run.Order(reader+": sees schema 1", "-: reader-1 is killed", reader+": sees schema 2", reader+": torn: 0 of ")
	}
}

func TestRecipe_WaitsForTheDead(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t, "--recipe")
	run.WantWrong("the migrator still waits for a reader that is dead")
	if got := run.Find(`^(migrates)$`); len(got) > 0 {
		t.Error("the migrator got in")
	}
}

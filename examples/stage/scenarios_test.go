package main

import (
	"strings"
	"testing"
)

// Each scenario comes out right with Holdfast. With the hand-written recipe it comes out wrong in the way that its README tells. The
// director judges the outcome; here stands what it does not see. Lines of several processes can change places on their way here: those of
// one kind are far apart.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		play   string
		wrong  string            // what the director says is wrong; empty: nothing is
		orders [][]string        // see stageRun.order
		finds  map[string]string // see stageRun.find
		counts map[string]int    // of what is found
		grow   string            // the numbers that it finds grow; empty: there are none
	}{
		{
			play:   "flash-sale",
			orders: [][]string{{"shop-1: sold phone 3", "-: shop-1 is killed in the sale of phone 4", "-: sold 10, left 0"}},
			counts: map[string]int{`^(sold) out$`: (shops-1)*crowd - 7},
		},
		{
			play: "flash-sale --recipe", wrong: "7 phones left, and no buyer could get them",
			counts: map[string]int{`(goes) home`: (shops - 1) * crowd},
		},
		{
			play:   "stock-decrement",
			orders: [][]string{{"service-1: reads 15", "-: service-1 is killed", "-: stock 11 after 4 orders"}},
			finds:  map[string]string{`^reads (\d+)$`: "15 15 14 13 12", `^writes (\d+)$`: "14 13 12 11"}, // the first 15 is what the service that died had read
		},
		{
			play: "stock-decrement --recipe", wrong: "updates are lost",
			counts: map[string]int{`^(writes)`: 4},
		},
		{
			play:   "stock-decrement --atomic",
			orders: [][]string{{"-: service-1 is killed", "-: stock 11 after 4 orders"}},
		},
		{
			play:   "gateway",
			orders: [][]string{{"-: gateway-3 is killed before it has given"}},
		},
		{play: "gateway --recipe", wrong: "ada got "},
		{
			play:   "nightly-job",
			orders: [][]string{{"replica-1: begins step 3", "-: replica-1 is killed in step 3"}},
			finds:  map[string]string{`^has done step (\d)$`: "1 2 3 4 5 6"},
			counts: map[string]int{`^(steps) down`: 1, `(sees) that the job is done`: 2}, // one replica hung; both that live see the end
		},
		{play: "nightly-job --recipe", wrong: "still at step 5"},
		{
			play: "fenced-writer",
			orders: [][]string{{"-: writer-1 is paused", "writer-2: has written", "-: writer-3 is killed", "writer-4: has written",
				"-: writer-1 wakes up", "writer-1: is rejected: stale token 1", "-: the document: two four"}},
			counts: map[string]int{`token (\d+)$`: 4},
			grow:   `token (\d+)$`,
		},
		{
			play: "fenced-writer --recipe", wrong: "writer-1 has overwritten what came after it",
			orders: [][]string{{"-: writer-1 wakes up", "writer-1: has written", "-: the document: one"}},
		},
		{
			play: "readers-migrator",
			orders: [][]string{
				{"-: reader-1 is killed while it reads", "migrator: migrates", "migrator: has migrated"},
				{"reader-2: sees schema 1", "-: reader-1 is killed", "reader-2: sees schema 2", "reader-2: torn: 0 of "},
				{"reader-3: sees schema 1", "-: reader-1 is killed", "reader-3: sees schema 2", "reader-3: torn: 0 of "},
			},
		},
		{play: "readers-migrator --recipe", wrong: "the migrator still waits for a reader that is dead"},
		{
			play: "leader",
			orders: [][]string{
				{"-: replica-1 is paused", "-: replica-2 is killed", "replica-3: has run tick 4", "-: replica-1 wakes up", "replica-1: steps down"},
				{"watcher: sees replica-1 lead", "watcher: sees no leader", "watcher: sees replica-3 lead"},
			},
			counts: map[string]int{`^sees (replica-2) lead`: 0, `^leads in term (\d+)$`: 3}, // replica-2 has died before it said so
			grow:   `^leads in term (\d+)$`,
		},
		{play: "leader --recipe", wrong: "tick 3 was run 2 times"},
		{
			play:   "downloads",
			orders: [][]string{{"process-1: downloads file", "-: process-1 is killed while it downloads", "-: 5 downloads at a time at most, 5 after the death"}},
		},
		{play: "downloads --recipe", wrong: "after the death only "},
		{
			play: "upload",
			orders: [][]string{
				{"request-1: has uploaded one", "-: worker-1 is killed before it has the lock", "worker-2: publishes one", "-: worker-3 is killed just before it publishes", "worker-4: publishes two"},
				{"worker-4: finds the ticket used", "worker-4: publishes two", "-: published: one, two"},
			},
			counts: map[string]int{`^(finds) the ticket used`: 1},
		},
		{play: "upload --recipe", wrong: "file one was published 0 times"},
	} {
		t.Run(tt.play, func(t *testing.T) {
			t.Parallel()
			run := play(t, tt.play)
			if tt.wrong == "" {
				run.wantRight()
			} else {
				run.wantWrong(tt.wrong)
			}
			for _, events := range tt.orders {
				run.order(events...)
			}
			for pattern, want := range tt.finds {
				if got := run.find(pattern); got != want {
					t.Errorf("%s: %s, want %s", pattern, got, want)
				}
			}
			for pattern, want := range tt.counts {
				if got := len(strings.Fields(run.find(pattern))); got != want {
					t.Errorf("%s: %d times, want %d", pattern, got, want)
				}
			}
			if tt.grow != "" {
				run.wantGrowing(tt.grow)
			}
		})
	}
}

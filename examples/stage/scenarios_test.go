package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A shop that dies with the lock, and the money, keeps no buyer away and sells no phone twice.
func TestFlashSale(t *testing.T) {
	t.Parallel()
	run := play(t, "flash-sale")
	run.wantRight()
	run.order("shop-1: sold phone 3", "-: shop-1 is killed in the sale of phone 4", "-: sold 10, left 0")
	sold := strings.Fields(run.find(`^sold phone (\d+)$`))
	slices.Sort(sold) // lines of several processes can change places on their way here
	if got := strings.Join(sold, " "); got != "1 10 2 3 4 5 6 7 8 9" {
		t.Errorf("phones sold: %s", got)
	}
	if got, want := strings.Count(run.find(`^(sold out)$`), "sold"), (shops-1)*crowd-7; got != want {
		t.Errorf("%d buyers came too late, want %d", got, want)
	}
}

// SETNX and DEL: the lock of the shop that died is held forever.
func TestFlashSale_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "flash-sale", "--recipe")
	run.wantWrong("7 phones left, and no buyer could get them")
	if got := strings.Count(run.find(`(goes home)`), "home"); got != (shops-1)*crowd {
		t.Errorf("%d buyers went home, want all of %d", got, (shops-1)*crowd)
	}
}

// Each service reads what was written last, although the work takes longer than the lease and one service dies in it.
func TestStockDecrement(t *testing.T) {
	t.Parallel()
	run := play(t, "stock-decrement")
	run.wantRight()
	run.order("service-1: reads 15", "-: service-1 is killed", "-: stock 11 after 4 orders")
	// Lines of two processes can change places on their way here; those of a kind are far
	// apart. The first 15 is what the service that died had read.
	for kind, want := range map[string]string{"reads": "15 15 14 13 12", "writes": "14 13 12 11"} {
		if got := run.find(`^` + kind + ` (\d+)$`); got != want {
			t.Errorf("%s %s, want %s", kind, got, want)
		}
	}
}

func TestStockDecrement_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "stock-decrement", "--recipe")
	run.wantWrong("updates are lost")
	if got := run.find(`^(writes)`); got != "writes writes writes writes" {
		t.Errorf("%s, want those of 4 orders", got)
	}
}

func TestStockDecrement_Atomic(t *testing.T) {
	t.Parallel()
	run := play(t, "stock-decrement", "--atomic")
	run.wantRight()
	run.order("-: service-1 is killed", "-: stock 11 after 4 orders")
}

// Both users get one gift, even the one whose gateway died over it.
func TestGateway(t *testing.T) {
	t.Parallel()
	run := play(t, "gateway")
	run.wantRight()
	run.order("-: gateway-3 is killed before it has given")
	if got := run.find(`^gave (\w+) a gift$`); got != "ada grace" {
		t.Errorf("gifts go to %s, want one to ada and one to grace", got)
	}
}

// A request that takes longer than the expiry is not alone.
func TestGateway_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "gateway", "--recipe")
	run.wantWrong("ada got ")
	if got := run.find(`^gave (ada) a gift$`); !strings.HasPrefix(got, "ada ada") {
		t.Errorf("gifts to ada: %q, want more than one", got)
	}
}

// Each step is done once and in order, although one replica dies and another gets stuck.
func TestNightlyJob(t *testing.T) {
	t.Parallel()
	run := play(t, "nightly-job")
	run.wantRight()
	run.order("replica-1: begins step 3", "-: replica-1 is killed in step 3")
	if got := run.find(`^has done step (\d)$`); got != "1 2 3 4 5 6" {
		t.Errorf("steps done: %s", got)
	}
	if got := run.find(`^(steps) down`); got != "steps" {
		t.Errorf("%q, want the one replica that hung to step down", got)
	}
	if got := run.find(`(sees) that the job is done`); got != "sees sees" {
		t.Errorf("%q, want both replicas that live to see the end", got)
	}
}

// The recipe outlives the crash, but not the replica that hangs.
func TestNightlyJob_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "nightly-job", "--recipe")
	run.wantWrong("still at step 5")
	if got := run.find(`^has done step (\d)$`); got != "1 2 3 4" {
		t.Errorf("steps done: %s", got)
	}
}

// The write of a process that was paused beyond its lease is rejected. What others wrote meanwhile stays.
func TestFencedWriter(t *testing.T) {
	t.Parallel()
	run := play(t, "fenced-writer")
	run.wantRight()
	run.order("-: writer-1 is paused", "writer-2: has written", "-: writer-3 is killed", "writer-4: has written",
		"-: writer-1 wakes up", "writer-1: is rejected: stale token 1", "-: the document: two four")
	tokens, last := strings.Fields(run.find(`token (\d+)$`)), 0
	for _, token := range tokens {
		n, err := strconv.Atoi(token)
		if err != nil || n <= last {
			t.Errorf("token %s after %d, want them to grow", token, last)
		}
		last = n
	}
	if len(tokens) != 4 {
		t.Errorf("%d grants, want 4", len(tokens))
	}
}

func TestFencedWriter_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "fenced-writer", "--recipe")
	run.wantWrong("writer-1 has overwritten what came after it")
	run.order("-: writer-1 wakes up", "writer-1: has written", "-: the document: one")
}

// The migrator gets in although there is always a reader and one has died, and no reader sees half a migration.
func TestReadersMigrator(t *testing.T) {
	t.Parallel()
	run := play(t, "readers-migrator")
	run.wantRight()
	run.order("-: reader-1 is killed while it reads", "migrator: migrates", "migrator: has migrated")
	for _, reader := range []string{"reader-2", "reader-3"} {
		run.order(reader+": sees schema 1", "-: reader-1 is killed", reader+": sees schema 2", reader+": torn: 0 of ")
	}
}

// A reader that died is counted forever.
func TestReadersMigrator_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "readers-migrator", "--recipe")
	run.wantWrong("the migrator still waits for a reader that is dead")
	if run.find(`^(migrates)$`) != "" {
		t.Error("the migrator got in")
	}
}

// Each job is run once, although one leader is paused in its term and the next one dies before it has said that it leads.
func TestLeader(t *testing.T) {
	t.Parallel()
	run := play(t, "leader")
	run.wantRight()
	run.order("-: replica-1 is paused", "-: replica-2 is killed", "replica-3: has run tick 4", "-: replica-1 wakes up", "replica-1: steps down")
	run.order("watcher: sees replica-1 lead", "watcher: sees no leader", "watcher: sees replica-3 lead")
	if got := run.find(`^sees (replica-2) lead`); got != "" {
		t.Error("a leader is seen that has died before it said so")
	}
	terms, last := strings.Fields(run.find(`^leads in term (\d+)$`)), 0
	for _, term := range terms {
		n, err := strconv.Atoi(term)
		if err != nil || n <= last {
			t.Errorf("term %s after %d, want them to grow", term, last)
		}
		last = n
	}
	if len(terms) != 3 {
		t.Errorf("%d terms, want 3", len(terms))
	}
}

// The leader that was paused finds its flag still set.
func TestLeader_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "leader", "--recipe")
	run.wantWrong("tick 3 was run 2 times")
}

// The permits of a process that died return, and no more than five downloads run at a time.
func TestDownloads(t *testing.T) {
	t.Parallel()
	run := play(t, "downloads")
	run.wantRight()
	run.order("process-1: downloads file", "-: process-1 is killed while it downloads", "-: 5 downloads at a time at most, 5 after the death")
	if got := strings.Count(run.find(`^has (them) all`), "them"); got != 2 {
		t.Errorf("%d processes have all their files, want 2", got)
	}
}

// What the dead process had counted stays.
func TestDownloads_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "downloads", "--recipe")
	run.wantWrong("after the death only ")
}

// Both files are published once, although one worker dies with the ticket and one with the lock. The second request waits for the first file.
func TestUpload(t *testing.T) {
	t.Parallel()
	run := play(t, "upload")
	run.wantRight()
	run.order("request-1: has uploaded one", "-: worker-1 is killed before it has the lock", "worker-2: publishes one", "-: worker-3 is killed just before it publishes", "worker-4: publishes two")
	run.order("worker-4: finds the ticket used", "worker-4: publishes two", "-: published: one, two")
	if got := run.find(`^(finds) the ticket used`); got != "finds" {
		t.Errorf("%q, want one worker to come after another", got)
	}
}

// The second request comes in between, and the first file is lost.
func TestUpload_Recipe(t *testing.T) {
	t.Parallel()
	run := play(t, "upload", "--recipe")
	run.wantWrong("file one was published 0 times")
}

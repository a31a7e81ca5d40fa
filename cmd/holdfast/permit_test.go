//go:build unix

package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Three commands run, and the fourth waits. One is killed with its lock: its command is dead before the fourth begins, which is when its
// permit has ended. An operator frees one permit, and one command ends.
func TestRun_AtMost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "lines")
	run := func(name string, flags ...string) *invocation {
		args := append([]string{"run", "job", "-N", "3", "--lease=" + lossLease.String(), "--grace=" + lossGrace}, flags...)
		return start(t, urlOf(srv), append(args, "--", "sh", "-c", leading, name, file)...)
	}
	a, left := run("a"), []*invocation{run("b"), run("c")}
	for _, name := range []string{"a", "b", "c"} {
		awaitLines(t, file, name+" works", 1)
	}
	left = append(left, run("d"))
	locktest.Queued(t, srv, "holdfast_permit_queue:{job}", 1)
	run("e", "-n").exits(t, runBusy, "job is held by sh@", " and 2 more, and 0 of 3 permits are available; not run")
	start(t, urlOf(srv), "wait", "job", "-w=100ms").exits(t, runBusy)

	must(t, a.Process.Kill())
	awaitLines(t, file, "d works", 1)
	a.wait(t) // its guard has stderr until it ends
	b, err := os.ReadFile(file)
	must(t, err)
	if _, after, _ := strings.Cut(string(b), "d begins"); strings.Contains(after, "a works") {
		t.Error("the command of the killed process works beside the fourth")
	}

	m := other(t, srv)
	info, err := m.Inspect(t.Context(), "job")
	if err != nil || len(info.Holders) != 3 {
		t.Fatalf("%+v, %v", info, err)
	}
	start(t, urlOf(srv), "unlock", "job", "--owner="+info.Holders[0].Owner).exits(t, 0, " and 2 more, and 0 of 3 permits are available; 0 wait for it", "job is freed")
	awaitLines(t, file, "[bcd] told", 1)
	if info, err := m.Inspect(t.Context(), "job"); err != nil || info.Available != 1 || len(info.Holders) != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	start(t, urlOf(srv), "wait", "job").exits(t, 0)
	lost := 0
	for _, i := range left {
		_ = i.Process.Signal(syscall.SIGTERM) // one has ended, or will
		if i.wait(t) == runLost {
			lost++
		}
	}
	redistest.Want(t, lost, 1, "%d commands have lost their permits, want %d")
	if n := srv.Admin().Exists(t.Context(), "{job}:timeout", "holdfast_permit_queue:{job}").Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	start(t, urlOf(srv), "run", "job", "-N", "5", "--", "true").exits(t, 0, "job has 3 permits in Redis, not 5: the number in Redis counts")
}

const (
	alicePermit  = "111111111111411181110000000000" // and two digits of a number
	ticketPermit = "11111111111141118111010000000008"
	javaPermit   = "5f1c0000aaaabbbbccccddddddddddff"
)

// cutPermits has a permit that ends soon.
const cutPermits = "cut{x}:timeout"

// newSemaphores returns a server with semaphores, as the scripts write them, and with what only looks like one.
func newSemaphores(t *testing.T) *redistest.Server {
	t.Helper()
	srv := redistest.Start(t)
	rdb, ctx := srv.Admin(), t.Context()
	now, err := rdb.Time(ctx).Result()
	must(t, err)
	semaphore := func(name, set string, available int, permits map[string]time.Duration) {
		rdb.Set(ctx, name, available, 0)
		for permit, left := range permits {
			var id []byte
			_, err := fmt.Sscanf(permit, "%x", &id)
			must(t, err)
			rdb.ZAdd(ctx, set, redis.Z{Score: float64(now.Add(left).UnixMilli()), Member: id})
		}
	}
	const long = 9 * time.Minute
	semaphore("downloads", "{downloads}:timeout", 1, map[string]time.Duration{alicePermit + "07": long, ticketPermit: long + time.Second, javaPermit: long + 2*time.Second, alicePermit + "01": -time.Minute})
	semaphore("cut{x}", cutPermits, -1, map[string]time.Duration{alicePermit + "02": 9 * time.Second})
	semaphore("idle", "", 5, nil)
	rdb.RPush(ctx, "holdfast_permit_queue:{downloads}", bobID+":2")
	rdb.ZAdd(ctx, "holdfast_permit_timeout:{downloads}", redis.Z{Score: float64(now.Add(long).UnixMilli()), Member: bobID + ":2"})
	rdb.ZAdd(ctx, "session:timeout", redis.Z{Score: 1, Member: "application"})
	rdb.ZAdd(ctx, "{user}:timeout", redis.Z{Score: float64(now.Add(long).UnixMilli()), Member: "application"})
	return srv
}

// endsSoon is that permit anew, which ends in nine seconds: the calls of a test may take longer.
func endsSoon(t *testing.T, srv *redistest.Server) redis.Z {
	t.Helper()
	now, err := srv.Admin().Time(t.Context()).Result()
	must(t, err)
	id, err := hex.DecodeString(alicePermit + "02")
	must(t, err)
	return redis.Z{Score: float64(now.Add(9 * time.Second).UnixMilli()), Member: id}
}

// steadyAge is what the command prints without what differs from run to run.
func steadyAge(i *invocation) string {
	return steady("\n" + regexp.MustCompile(`≥\S+ +`).ReplaceAllString(i.stdout.String(), "≥AGO     "))
}

func TestLook_Semaphore(t *testing.T) {
	t.Parallel()
	srv := newSemaphores(t)
	for _, tt := range []struct {
		args   []string
		status int
		stdout string
	}{
		{[]string{"ls"}, 0, `
NAME       KIND       HOLDER               TTL     WAITING  TOKEN  STATE
downloads  semaphore  hf-11111111…:7 (+2)  LONG    1        -      ok, 2 of 5 permits available
cut{x}     semaphore  hf-11111111…:2       SOME    0        -      expiring: not renewed for SOME, -1 of 0 permits available
`},
		{[]string{"ls", "down*", "-o", "name"}, 0, "\ndownloads\n"},
		{[]string{"ls", "cut{*", "-o", "name"}, 0, "\ncut{x}\n"},
		{[]string{"ls", "--prefix=down", "-o", "name"}, 0, "\nloads\n"},
		{[]string{"ls", "downloads", "-o", "jsonl"}, 0, `
{"name":"downloads","kind":"semaphore","held":true,"semaphore":{"permits":5,"available":1,"ended":1},"holders":[{"owner":"` + alicePermit + `07","write":false,"holdfast":true,"ttl":N},{"owner":"` + ticketPermit + `","write":false,"holdfast":true,"ttl":N,"detached":true},{"owner":"` + javaPermit + `","write":false,"holdfast":false,"ttl":N}],"moreHolders":0,"ttl":N,"waiting":1,"overdue":0,"token":0,"state":"ok"}
`},
		{[]string{"inspect", "downloads", "idle"}, exitNo, `
downloads
  kind     semaphore
  state    ok, 2 of 5 permits available
  ttl      LONG
  ended    1 of the available permits, whose time is over
  holder   ` + alicePermit + `07, until LONG   unless renewed
  holder   ` + ticketPermit + `, until LONG  , detached
  holder   redisson ` + javaPermit + `, until LONG   unless renewed
  waiting  1
  queue    ` + bobID + `:2
  messages 0 connections listen to the lock's channels
  slot     2212

idle
  kind     semaphore
  state    free, 5 of 5 permits available
  waiting  0
  messages 0 connections listen to the lock's channels
  slot     8010
`},
		{[]string{"top", "--once", "--every=100ms"}, 0, `
2 locks are held, 1 waiters, 0.0 remote hand-offs/s   by waiting, all
NAME       KIND       HOLDER               AGE     TTL     WAITING  HANDOFFS/S  STATE
downloads  semaphore  hf-11111111…:7 (+2)  ≥AGO     LONG    1        0.0         ok, 2 of 5 permits available
cut{x}     semaphore  hf-11111111…:2       ≥AGO     SOME    0        0.0         expiring: not renewed for SOME, -1 of 0 permits available
`},
		{[]string{"unlock", "downloads", "--owner=" + bobID}, exitRefused, ""},
		{[]string{"unlock", "downloads", "--owner=" + alicePermit + "07", "--owner=" + ticketPermit}, 0, ""},
		{[]string{"unlock", "idle", "--force"}, exitNo, ""},
		{[]string{"wait", "downloads"}, 0, ""},
	} {
		must(t, srv.Admin().ZAddArgs(t.Context(), cutPermits, redis.ZAddArgs{XX: true, Members: []redis.Z{endsSoon(t, srv)}}).Err())
		i := start(t, urlOf(srv), tt.args...)
		if status := i.wait(t); status != tt.status || tt.stdout != "" && steadyAge(i) != tt.stdout {
			t.Errorf("%q: exit status %d, prints\n%s\nwant %d, and\n%s", tt.args, status, steadyAge(i), tt.status, tt.stdout)
		}
	}
	if permits := srv.Admin().ZCard(t.Context(), "{downloads}:timeout").Val(); permits != 2 {
		t.Errorf("%d permits are left, want 2", permits)
	}
	start(t, urlOf(srv), "unlock", "downloads", "--force").exits(t, 0)
	if text := srv.Admin().Get(t.Context(), "downloads").Val(); text != "5" {
		t.Errorf("%s permits are available, want 5", text)
	}
}

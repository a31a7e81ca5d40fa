//go:build unix

package main

import (
	"context"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	aliceID  = "hf-11111111-1111-4111-8111-111111111111:7"
	lingerID = "hf-11111111-1111-4111-8111-111111111111:08"
	valueID  = "hf-11111111-1111-4111-8111-111111111111:9:build%2042"
	ticketID = "hf-11111111-1111-4111-8111-111111111111:4611686018427387904"
	bobID    = "hf-22222222-2222-4222-8222-222222222222:3"
	javaID   = "5f1c0000-aaaa-bbbb-cccc-dddddddddddd:57"
	evil     = "evil\x1b[31m\n\xff"

	alicePermit  = "111111111111411181110000000000" // and two digits of a number
	ticketPermit = "11111111111141118111010000000008"
	javaPermit   = "5f1c0000aaaabbbbccccddddddddddff"
)

// newGallery returns a server with one lock of each state, written as the scripts write them.
func newGallery(t *testing.T) *redistest.Server {
	t.Helper()
	srv := redistest.Start(t)
	rdb, ctx := srv.Admin(), t.Context()
	now, err := rdb.Time(ctx).Result()
	must(t, err)
	place := func(queue, deadlines, id string, left time.Duration) {
		rdb.RPush(ctx, queue, id)
		rdb.ZAdd(ctx, deadlines, redis.Z{Score: float64(now.Add(left).UnixMilli()), Member: id})
	}
	held := func(name, kind string, ttl time.Duration, fields ...any) {
		rdb.HSet(ctx, name, fields...)
		if kind != "" {
			rdb.HSet(ctx, name, "mode", kind)
		}
		if ttl > 0 {
			rdb.PExpire(ctx, name, ttl)
		}
	}
	const long = 10 * time.Minute
	held("stock:42", "", long, aliceID, 1)
	rdb.Set(ctx, "redisson_lock_token:{stock:42}", 812, 0)
	place("redisson_lock_queue:{stock:42}", "redisson_lock_timeout:{stock:42}", bobID, long)
	held("report:daily", "", long, javaID, 1)
	held("schema", "write", long, aliceID+":write", 1)
	held("old", "", long, bobID, 1)
	held("forever", "", 0, aliceID, 1)
	held("stuck", "", long, aliceID, 1)
	place("redisson_lock_queue:{stuck}", "redisson_lock_timeout:{stuck}", bobID, -time.Minute)
	held(evil, "", long, aliceID, 1)
	held("kept", "", long, lingerID, 1)
	held("deploy", "write", long, valueID+":write", 1)
	held("upload:7", "", long, ticketID, 1)
	permits := func(name, set string, available int, ends map[string]time.Duration) {
		rdb.Set(ctx, name, available, 0)
		for permit, left := range ends {
			id, err := hex.DecodeString(permit)
			must(t, err)
			rdb.ZAdd(ctx, set, redis.Z{Score: float64(now.Add(left).UnixMilli()), Member: id})
		}
	}
	permits("downloads", "{downloads}:timeout", 1, map[string]time.Duration{
		alicePermit + "07": long - time.Minute, ticketPermit: long - 59*time.Second, javaPermit: long - 58*time.Second, alicePermit + "01": -time.Minute,
	})
	place("holdfast_permit_queue:{downloads}", "holdfast_permit_timeout:{downloads}", bobID+":2", long)
	permits("cut{x}", "cut{x}:timeout", -1, map[string]time.Duration{alicePermit + "02": time.Second})
	permits("idle", "", 5, nil)
	endSoon(t, srv)
	for _, key := range []string{"session:timeout", "{user}:timeout"} { // which no semaphore has
		rdb.ZAdd(ctx, key, redis.Z{Score: float64(now.Add(long).UnixMilli()), Member: "application"})
	}
	rdb.HSet(ctx, "user:1", "name", "Ada", "mail", "x")
	rdb.HSet(ctx, "votes", "candidate:7", 12)
	rdb.Set(ctx, "plain", "text", 0)
	return srv
}

// endSoon has a lock and a permit of the gallery end in nine seconds: the calls of a test may take longer.
func endSoon(t *testing.T, srv *redistest.Server) {
	t.Helper()
	rdb := srv.Admin()
	now, err := rdb.Time(t.Context()).Result()
	must(t, err)
	id, err := hex.DecodeString(alicePermit + "02")
	must(t, err)
	rdb.PExpire(t.Context(), "old", 9*time.Second)
	rdb.ZAddXX(t.Context(), "cut{x}:timeout", redis.Z{Score: float64(now.Add(9 * time.Second).UnixMilli()), Member: id})
}

// steady replaces what differs from run to run.
func steady(text string) string {
	text = regexp.MustCompile(`≥\S+ +`).ReplaceAllString(text, "≥AGO     ")
	text = regexp.MustCompile(`\b([45]\d\d|600)\.\d+s`).ReplaceAllString(text, "LONG  ")
	text = regexp.MustCompile(`"(ttl|notRenewedFor)": ?\d+`).ReplaceAllString(text, `"$1":N`)
	text = regexp.MustCompile(`not renewed for 2[1-9]\.\d+s`).ReplaceAllString(text, "not renewed for SOME")
	text = regexp.MustCompile(`\b[0-9]\.\d+s`).ReplaceAllString(text, "SOME")
	return regexp.MustCompile(` +\n`).ReplaceAllString(text, "\n")
}

func TestLook_Golden(t *testing.T) {
	t.Parallel()
	srv := newGallery(t)
	for _, tt := range []struct {
		args   []string
		status int
		stdout string
	}{
		{[]string{"ls"}, 0, `
NAME                  KIND       HOLDER                     TTL     WAITING  TOKEN  STATE
downloads             semaphore  hf-11111111…:7 (+2)        LONG    1        -      ok, 2 of 5 permits available
stock:42              mutex      hf-11111111…:7             LONG    1        812    ok
cut{x}                semaphore  hf-11111111…:2             SOME    0        -      expiring: not renewed for SOME if the lease is 30s, -1 of 0 permits available
deploy                write      hf-11111111…:9 "build 42"  LONG    0        -      ok
"evil\x1b[31m\n\xff"  mutex      hf-11111111…:7             LONG    0        -      ok
forever               mutex      hf-11111111…:7             -       0        -      no TTL
kept                  mutex      hf-11111111…:08            LONG    0        -      ok
old                   mutex      hf-22222222…:3             SOME    0        -      expiring: not renewed for SOME if the lease is 30s
report:daily          mutex      redisson 5f1c0000-aa…:57   LONG    0        -      ok
schema                write      hf-11111111…:7             LONG    0        -      ok
stuck                 mutex      hf-11111111…:7             LONG    0        -      queue stale
upload:7              mutex      hf-11111111…:46116860184…  LONG    0        -      ok
`},
		{[]string{"ls", "s*", "-o", "name"}, 0, "\nstock:42\nschema\nstuck\n"},
		{[]string{"ls", "--stale", "-o", "name"}, 0, "\ncut{x}\nforever\nold\nstuck\n"},
		{[]string{"ls", "--waiting", "-o", "name"}, 0, "\ndownloads\nstock:42\n"},
		{[]string{"ls", "--held-by=5f1c", "-o", "name"}, 0, "\ndownloads\nreport:daily\n"},
		{[]string{"ls", "--prefix=sto", "-o", "name"}, 0, "\nck:42\n"},
		{[]string{"ls", "--prefix=s*", "-o", "json"}, 0, "\n[]\n"},
		{[]string{"ls", "none"}, 0, "\nNAME  KIND  HOLDER  TTL  WAITING  TOKEN  STATE\n"},
		{[]string{"ls", "[eo][vl]*", "-o", "jsonl"}, 0, `
{"name":"evil\u001b[31m\n\ufffd","nameBytes":"ZXZpbBtbMzFtCv8=","kind":"mutex","held":true,"holders":[{"owner":"` + aliceID + `","write":false,"holdfast":true,"ttl":N}],"moreHolders":0,"ttl":N,"waiting":0,"overdue":0,"token":0,"state":"ok"}
{"name":"old","kind":"mutex","held":true,"holders":[{"owner":"` + bobID + `","write":false,"holdfast":true,"ttl":N}],"moreHolders":0,"ttl":N,"waiting":0,"overdue":0,"token":0,"state":"expiring","notRenewedFor":N}
`},
		{[]string{"inspect", "kept", "deploy", "upload:7"}, 0, `
kept
  kind     mutex
  state    ok
  ttl      LONG
  holder   ` + lingerID + `, until LONG   unless renewed, may be idle
  waiting  0
  messages 0 connections listen to the lock's channels
  slot     284

deploy
  kind     write
  state    ok
  ttl      LONG
  holder   ` + valueID + `, until LONG   unless renewed, value "build 42"
  waiting  0
  messages 0 connections listen to the lock's channels
  slot     15335

upload:7
  kind     mutex
  state    ok
  ttl      LONG
  holder   ` + ticketID + `, until LONG  , detached
  waiting  0
  messages 0 connections listen to the lock's channels
  slot     4138
`},
		{[]string{"ls", "*[tp]*[t7]", "-o", "jsonl"}, 0, `
{"name":"kept","kind":"mutex","held":true,"holders":[{"owner":"` + lingerID + `","write":false,"holdfast":true,"ttl":N,"lingers":true}],"moreHolders":0,"ttl":N,"waiting":0,"overdue":0,"token":0,"state":"ok"}
{"name":"upload:7","kind":"mutex","held":true,"holders":[{"owner":"` + ticketID + `","write":false,"holdfast":true,"ttl":N,"detached":true}],"moreHolders":0,"ttl":N,"waiting":0,"overdue":0,"token":0,"state":"ok"}
`},
		{[]string{"inspect", "stock:42", "user:1", "gone"}, 3, `
stock:42
  kind     mutex
  state    ok
  ttl      LONG
  holder   ` + aliceID + `, until LONG   unless renewed
  waiting  1
  queue    ` + bobID + `
  token    812
  messages 0 connections listen to the lock's channels
  slot     2594

user:1
  kind     other
  state    no lock
  waiting  0
  messages 0 connections listen to the lock's channels
  slot     10778

gone
  kind     free
  state    free
  waiting  0
  messages 0 connections listen to the lock's channels
  slot     11139
`},
		{[]string{"inspect", "stuck", "-o", "jsonl"}, 0, `
{"name":"stuck","kind":"mutex","held":true,"holders":[{"owner":"` + aliceID + `","write":false,"holdfast":true,"ttl":N}],"moreHolders":0,"ttl":N,"waiting":0,"overdue":1,"token":0,"state":"queue stale","queue":["` + bobID + `"],"tombstones":0,"subscribers":0,"slot":2972}
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
		{[]string{"top", "[cd]*[}s]", "--once", "--every=100ms"}, 0, `
2 locks are held, 1 waiters, 0.0 remote hand-offs/s   by waiting, all
NAME       KIND       HOLDER               AGE     TTL     WAITING  HANDOFFS/S  STATE
downloads  semaphore  hf-11111111…:7 (+2)  ≥AGO     LONG    1        0.0         ok, 2 of 5 permits available
cut{x}     semaphore  hf-11111111…:2       ≥AGO     SOME    0        0.0         expiring: not renewed for SOME if the lease is 30s, -1 of 0 permits available
`},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			endSoon(t, srv)
			i := start(t, urlOf(srv), tt.args...)
			i.exits(t, tt.status)
			redistest.Want(t, "\n"+steady(i.stdout.String()), tt.stdout, "stdout is%s\nwant%s")
			if i.stderr.Len() > 0 {
				t.Errorf("stderr: %q", &i.stderr)
			}
		})
	}
}

// Of a semaphore, unlock frees the permits that it is asked to, and wait waits for one.
func TestUnlock_Permits(t *testing.T) {
	t.Parallel()
	srv := newGallery(t)
	unlock := func(status int, args ...string) {
		t.Helper()
		start(t, urlOf(srv), append([]string{"unlock"}, args...)...).exits(t, status)
	}
	unlock(exitRefused, "downloads", "--owner="+bobID)
	unlock(0, "downloads", "--owner="+alicePermit+"07", "--owner="+ticketPermit)
	unlock(exitNo, "idle", "--force")
	start(t, urlOf(srv), "wait", "downloads").exits(t, 0)
	redistest.Want(t, srv.Admin().ZCard(t.Context(), "{downloads}:timeout").Val(), 2, "%d permits are left, want %d")
	unlock(0, "downloads", "--force")
	redistest.Want(t, srv.Admin().Get(t.Context(), "downloads").Val(), "5", "%s permits are available, want %s")
}

func TestWait_EndsWithTheRelease(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	lease := hold(t, srv, "job")
	srv.ResetStats()
	i := start(t, urlOf(srv), "wait", "job")
	redistest.Eventually(t, patience, "it has looked", func() bool { return srv.CommandCalls("evalsha", "eval") > 0 })
	must(t, lease.Unlock(context.Background()))
	i.exits(t, 0)
}

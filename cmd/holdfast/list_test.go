//go:build unix

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// 5,000 locks are listed without KEYS, and the most waited for come first. An application's 10,000 hashes beside them are no locks, nor is a
// lock of Redisson whose name is too long, and hundreds of keys are looked at in one call, with rests in between. With --for a part of them is,
// and ls says so.
func TestList_ManyKeys(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const n = 5_000
	script := `for i = ARGV[1], ARGV[2] do
		redis.call('hset', 'lock:' .. i, ARGV[3], 1)
		redis.call('pexpire', 'lock:' .. i, 600000)
		redis.call('hset', 'user:' .. i, 'name', 'Ann', 'visits', i)
		redis.call('hset', 'votes:' .. i, 'candidate:7', i)
	end`
	const part = n / 50 // a script that takes long on a busy machine would be sent again
	for from := 1; from < n; from += part {
		if err := srv.Admin().Eval(t.Context(), script, nil, from, from+part-1, aliceID).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	must(t, srv.Admin().HSet(t.Context(), strings.Repeat("j", 2<<10), aliceID, 1).Err()) // of Redisson: no name here
	must(t, srv.Admin().RPush(t.Context(), "redisson_lock_queue:{lock:4777}", bobID).Err())
	srv.ResetStats()
	i := start(t, urlOf(srv), "ls", "[uv]*", "-o", "name")
	if i.prints(t, 0, ""); i.stderr.Len() > 0 {
		t.Errorf("stderr is %q", &i.stderr)
	}
	redistest.WantMost(t, srv.CommandCalls("eval", "evalsha"), 3*n/5, "%d calls for 15,000 hashes")
	i = start(t, urlOf(srv), "ls", "--limit=3", "-o", "name")
	i.prints(t, 0, "lock:4777\nlock:1\nlock:10\n")
	if want := fmt.Sprintf("holdfast: 3 of %d locks are shown", n); !strings.Contains(i.stderr.String(), want) {
		t.Errorf("stderr is %q", &i.stderr)
	}
	redistest.WantMost(t, srv.CommandCalls("keys"), 0, "KEYS was called")
	start(t, urlOf(srv), "ls", "--for=1ms").exits(t, 0, "keys were looked at in 1ms: there may be more locks\n")
}

func TestSurvey_Progress(t *testing.T) {
	t.Parallel()
	var terminal strings.Builder
	s := &survey{terminal: &terminal}
	if s.progress(400, 3); terminal.String() != "\r\x1b[K400 keys looked at, 3 locks" {
		t.Errorf("%q", &terminal)
	}
}

// All masters of a cluster are asked. Of a lock, tombstones, subscribers and the node are shown.
func TestList_Cluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	m := locktest.ManagerAsIs(t, client)
	var want []string
	for n := range 12 {
		name := fmt.Sprintf("lock:%02d", n)
		locktest.MustLock(t, m.Mutex(name))
		want = append(want, name)
	}
	url := clusterURL(cluster, ":"+cluster.Nodes()[0].Password())
	i := start(t, url, "ls", "-o", "name")
	i.prints(t, 0, strings.Join(want, "\n")+"\n")

	owner := cluster.Owner("lock:00")
	do(t, owner, "zadd", "holdfast_tombstones:{lock:00}", 1, bobID)
	sub := owner.Admin().Subscribe(t.Context(), "redisson_lock__channel:{lock:00}")
	defer sub.Close()
	_, err := sub.Receive(t.Context())
	must(t, err)
	i = start(t, url, "inspect", "lock:00", "-o", "jsonl")
	i.wait(t)
	if place := fmt.Sprintf(`"tombstones":1,"subscribers":1,"slot":%d,"node":"%s"}`, wire.Slot("lock:00"), owner.Addr()); !strings.Contains(i.stdout.String(), place) {
		t.Errorf("inspect has no %s", place)
	}
	for _, node := range cluster.Nodes() {
		if node != cluster.Owner("lock:00") {
			node.Kill() // half of it is down
		}
	}
	for range 3 { // whichever master is asked first
		if err := answers(t.Context(), client); err != nil {
			t.Errorf("one master answers: %v", err)
		}
	}
	dead := want[slices.IndexFunc(want, func(name string) bool { return cluster.Owner(name) != cluster.Owner("lock:00") })]
	rows := []struct {
		args   []string
		status int
	}{
		{[]string{"ls", "--timeout=1s"}, exitUnreachable},
		{[]string{"inspect", dead, "--timeout=1s"}, exitUnreachable},
		{[]string{"unlock", dead, "--force", "--timeout=1s"}, exitUnreachable},
		{[]string{"wait", dead, "-w=1s", "--timeout=1s"}, runFailed},
		{[]string{"run", dead, "-n", "--timeout=1s", "--", "true"}, runFailed},
	}
	var runs []*invocation
	for _, tt := range rows { // side by side: each waits for seconds
		runs = append(runs, start(t, url, tt.args...))
	}
	for i, tt := range rows {
		if status := runs[i].wait(t); status != tt.status || runs[i].stderr.Len() == 0 {
			t.Errorf("half down: %q: exit status %d, want %d", tt.args, status, tt.status)
		}
	}
}

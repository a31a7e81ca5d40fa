//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A process that says what it is is shown by that, and --wait-gone waits for its end.
func TestProcesses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := other(t, srv, holdfast.WithLease(10*time.Minute))
	locktest.MustLock(t, m.Mutex("job"))
	owner := locktest.Inspected(t, m, "job").Holders[0].Owner
	start(t, urlOf(srv), "unlock", "job", "--force", "--wait-gone=1s").exits(t, exitRefused, "does not say what it is")
	redistest.Want(t, srv.Admin().Exists(t.Context(), "job").Val(), 1, "without an identity the lock is kept: %d, want %d")

	key := wire.ProcessKey(owner)
	srv.Admin().HSet(t.Context(), key, "app", "shop\x1b", "host", "web-3", "pid", "4121", "started", "2026-11-26T07:00:00Z", "version", "v1.2.0", "debug", "http://web-3:6060/\x1b")
	srv.Admin().PExpire(t.Context(), key, processTTL)
	srv.Admin().RPush(t.Context(), wire.InspectKeys("job")[2].(string), strings.Replace(owner, ":", ":9", 1), "hf-unknown:1")
	const who = `"shop\x1b@web-3/4121"`
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"ls", "job"}, "mutex  " + who + "  "},
		{[]string{"ls", "--held-by=web-3", "-o=name"}, "job\n"},
		{[]string{"ls", "job", "-o=wide"}, who + " " + owner},
		{[]string{"ls", "job", "-o=jsonl"}, `"process":{"app":"shop\u001b","host":"web-3","pid":4121,"started":"2026-11-26T07:00:00Z","version":"v1.2.0","debug":"http://web-3:6060/\u001b"}`},
		{[]string{"inspect", "job"}, "holder   " + who + " " + owner},
		{[]string{"inspect", "job"}, "queue    " + who + " " + strings.Replace(owner, ":", ":9", 1) + "\n  queue    hf-unknown:1\n"},
		{[]string{"inspect", "job", "-o=jsonl"}, `"queueProcesses":{"` + strings.Replace(owner, ":", ":9", 1) + `":{"app":"shop\u001b"`},
		{[]string{"inspect", "job"}, "\n           started 2026-11-26T07:00:00Z, version v1.2.0, page \"http://web-3:6060/\\x1b\"\n"},
	} {
		i := start(t, urlOf(srv), tt.args...)
		if i.wait(t); !strings.Contains(i.stdout.String(), tt.want) {
			t.Errorf("%q: stdout has no %q", tt.args, tt.want)
		}
	}
	start(t, urlOf(srv), "run", "job", "-n", "--", "true").exits(t, runBusy, "job is held by "+who+", "+owner)
	start(t, urlOf(srv), "unlock", "job", "--force", "--wait-gone=100ms").exits(t, exitNo, "its holder "+who+" still runs")
	redistest.Want(t, srv.Admin().Exists(t.Context(), "job").Val(), 0, "while its holder runs the lock is freed: %d, want %d")

	for _, end := range map[string]func(){
		"ended":         func() { srv.Admin().Del(t.Context(), key) },
		"not refreshed": func() { srv.Admin().PExpire(t.Context(), key, processTTL-refreshEvery-refreshLate-time.Second) },
	} {
		srv.Admin().HSet(t.Context(), key, "app", "shop")
		srv.Admin().PExpire(t.Context(), key, processTTL)
		srv.Admin().Del(t.Context(), "job")
		srv.Admin().HSet(t.Context(), "job", owner, 1)
		i := start(t, urlOf(srv), "unlock", "job", "--force", "--wait-gone=1m")
		srv.AwaitNone(t, "job")
		end()
		i.exits(t, 0, "is gone: it has ended, or has not refreshed its key for 25s")
	}
}

// Callers that wait inside the holder's process have no place in Redis: ls finds their lock by what that process says.
func TestProcesses_SayWhichCallersWait(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	mapper := holdfast.WithNameMapper(func(name string) string { return "app:" + name })
	m := other(t, srv, holdfast.WithIdentity("shop"), mapper)
	for _, name := range []string{"order:0007", "calm"} {
		locktest.MustLock(t, m.Mutex(name))
	}
	for range 12 {
		m.Mutex("order:0007").LockAsync(t.Context())
	}
	ask := func(args ...string) string {
		i := start(t, urlOf(srv), append(args, "--prefix=app:")...)
		i.wait(t)
		return i.stdout.String()
	}
	redistest.Eventually(t, patience, "ls --waiting finds it", func() bool { return ask("ls", "--waiting", "-o=name") == "order:0007\n" })
	if got := ask("ls"); !regexp.MustCompile(`(?s)order:0007 .*s +12 +- .*calm .*s +0 +- `).MatchString(got) {
		t.Errorf("ls prints\n%s", got)
	}
	if got := ask("inspect", "order:0007"); !strings.Contains(got, "\n           as it last said, 12 of its callers wait, the first since 20") || !strings.Contains(got, "\n  waiting  12\n") {
		t.Errorf("inspect prints\n%s", got)
	}
	if got := ask("ls", "--waiting", "-o=jsonl"); !strings.Contains(got, `"waiting":0,"waitingInside":12,`) || !strings.Contains(got, `"callers":12`) {
		t.Errorf("ls -o jsonl prints\n%s", got)
	}

	// A process in the queue counts once, whatever it says.
	w := other(t, srv, holdfast.WithIdentity("report"), mapper)
	for range 3 {
		w.Mutex("order:0007").LockAsync(t.Context())
	}
	redistest.Eventually(t, patience, "inspect shows its callers", func() bool {
		return strings.Contains(ask("inspect", "order:0007"), "as it last said, 3 of its callers wait")
	})
	if got := ask("inspect", "order:0007"); !regexp.MustCompile(`(?s)waiting  13\n  queue    report@\S+ hf-\S+\n           as it last said, 3 of its callers wait`).MatchString(got) {
		t.Errorf("inspect prints\n%s", got)
	}
	if got := ask("inspect", "order:0007", "-o=jsonl"); !regexp.MustCompile(`"queueCallers":\{"hf-[^"]+":3\}`).MatchString(got) {
		t.Errorf("inspect -o jsonl prints\n%s", got)
	}
}

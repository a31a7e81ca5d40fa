package docs

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// operatorPages are those whose commands are run.
var operatorPages = []string{"docs/RUNBOOK.md", "docs/SETUP.md", "docs/OPERATIONS.md"}

// sectionBlocks returns the fenced blocks of a language in one section of the pages for operators.
func sectionBlocks(t *testing.T, section, language string) []string {
	t.Helper()
	var pages strings.Builder
	for _, page := range operatorPages {
		pages.WriteString(read(t, page))
	}
	_, text, ok := strings.Cut(pages.String(), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return blocks(text, language)
}

// operations returns the commands of one section of the pages for operators.
func operations(t *testing.T, section string) (commands [][]any) {
	t.Helper()
	for _, block := range sectionBlocks(t, section, "redis") {
		for line := range strings.Lines(block) {
			var command []any
			for _, word := range strings.Fields(line) {
				command = append(command, word)
			}
			commands = append(commands, command)
		}
	}
	if len(commands) == 0 {
		t.Fatalf("no commands in section %q", section)
	}
	return commands
}

// do runs the section's commands and returns their replies.
func do(t *testing.T, rdb *redis.Client, section string) (replies []any) {
	t.Helper()
	for _, command := range operations(t, section) {
		reply, err := rdb.Do(t.Context(), command...).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("%v: %v", command, err)
		}
		replies = append(replies, reply)
	}
	return replies
}

// scene is what the pages for operators speak of: app:stock, held by one process while another
// waits for it.
type scene struct {
	srv    *redistest.Server
	holder *holdfast.Manager
	lease  *holdfast.Lease
	waiter <-chan holdfast.Result
}

const stock = "app:stock"

func newScene(t *testing.T) *scene {
	s := &scene{srv: redistest.Start(t)}
	s.holder = operated(t, s.srv.Client(t))
	s.lease = locktest.MustLock(t, s.holder.Mutex(stock, holdfast.WithFencing()))
	other := operated(t, s.srv.Client(t))
	s.waiter = other.Mutex(stock, holdfast.WithFencing()).LockAsync(t.Context())
	redistest.Eventually(t, locktest.Patience, "somebody waits", func() bool {
		return other.Stats().Waiting == 1 && other.Stats().Subscriptions > 0
	})
	return s
}

const operatedLease = 6 * time.Second

func operated(t *testing.T, rdb *redis.Client) *holdfast.Manager {
	t.Helper()
	return locktest.ManagerAsIs(t, rdb, holdfast.WithLease(operatedLease))
}

// granted waits for the waiter and gives its lock back.
func (s *scene) granted(t *testing.T) {
	t.Helper()
	locktest.MustUnlock(t, locktest.Granted(t, s.waiter))
}

// ended waits for the end of the holder's lease.
func (s *scene) ended(t *testing.T) {
	t.Helper()
	redistest.Next(t, s.lease.Done(), "the holder was not told")
}

func TestOperations_Settings(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	do(t, srv.Admin(), "Settings of the server")
	for name, want := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"} {
		if got := srv.Admin().ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	// Its child would write into the directory while that is removed.
	redistest.Eventually(t, locktest.Patience, "the append-only file is written anew", func() bool {
		info := srv.Admin().Info(t.Context(), "persistence").Val()
		return strings.Contains(info, "aof_rewrite_in_progress:0\r") && strings.Contains(info, "aof_rewrite_scheduled:0\r")
	})
}

func TestOperations_Looking(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	replies := do(t, s.srv.Admin(), "Looking at a lock")
	holders, _ := replies[0].(map[any]any)
	if len(holders) != 1 {
		t.Fatalf("HGETALL: %v", replies[0])
	}
	for owner, count := range holders {
		if !strings.HasPrefix(owner.(string), "hf-") || count != "1" {
			t.Errorf("holder %v: %v", owner, count)
		}
	}
	if ttl := replies[1].(int64); ttl <= 0 || ttl > operatedLease.Milliseconds() {
		t.Errorf("PTTL: %v", ttl)
	}
	if queue := replies[2].([]any); len(queue) != 1 || !strings.HasPrefix(queue[0].(string), "hf-") {
		t.Errorf("LRANGE: %v, want the process that waits", queue)
	}
	if replies[3] == nil {
		t.Error("no counter")
	}
	if subscribers := replies[5].([]any); subscribers[1] != int64(0) { // nothing of Redisson's is in the way
		t.Errorf("PUBSUB NUMSUB: %v", subscribers)
	}
	if found := replies[6].([]any)[1].([]any); !slices.Contains(found, any(stock)) {
		t.Errorf("SCAN: %v", found)
	}
	locktest.MustUnlock(t, s.lease)
	s.granted(t)
}

// What the runbook has operators type works on a server with a lock that is held and waited for: commands of redis-cli and
// those of the holdfast command, of which `run` gets the lock when it is free.
func TestOperations_Runbook(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	do(t, s.srv.Admin(), "Symptoms")
	lines := typed(t, "Symptoms")
	for _, line := range lines {
		if line[1] != "run" {
			shell(t, s.srv, line...)
		}
	}
	locktest.MustUnlock(t, s.lease)
	s.granted(t)
	ran := 0
	for _, line := range lines {
		if line[1] == "run" {
			shell(t, s.srv, append(line[:slices.Index(line, "--")+1:len(line)], "true")...)
			ran++
		}
	}
	if len(lines) < 5 || ran == 0 {
		t.Errorf("only %d commands, %d of them run", len(lines), ran)
	}
}

// typed returns the lines of a section that call the holdfast command, as words.
func typed(t *testing.T, section string) (lines [][]string) {
	t.Helper()
	for _, block := range sectionBlocks(t, section, "sh") {
		for line := range strings.Lines(block) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "holdfast" {
				t.Errorf("%q does not call holdfast", line)
				continue
			}
			lines = append(lines, words)
		}
	}
	return lines
}

// shell calls the holdfast command with a server.
func shell(t *testing.T, srv *redistest.Server, words ...string) {
	t.Helper()
	command := exec.Command("go", append([]string{"run", "./cmd/holdfast"}, words[1:]...)...)
	command.Env = append(os.Environ(), "HOLDFAST_REDIS=redis://:"+srv.Password()+"@"+srv.Addr())
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(words, " "), err, said)
	}
}

func TestOperations_TakingALockAwayByCommand(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, line := range typed(t, "Taking a lock away") {
		shell(t, s.srv, append(line, "--force")...)
	}
	s.granted(t)
	s.ended(t)
}

func TestOperations_TakingALockAway(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	do(t, s.srv.Admin(), "Taking a lock away")
	s.granted(t)
	s.ended(t)
	var lost *holdfast.LostError
	if !errors.As(s.lease.Err(), &lost) || lost.Reason == holdfast.LostDeadline {
		t.Errorf("the holder was told %v", s.lease.Err())
	}
}

func TestOperations_HarmlessAtAnyTime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	do(t, s.srv.Client(t), "Restarts and upgrades")
	renewed := s.holder.Stats().Renewals
	redistest.Eventually(t, locktest.Patience, "a renewal after it", func() bool { return s.holder.Stats().Renewals > renewed })
	locktest.MustUnlock(t, s.lease)
	s.granted(t)
}

// Each line that is logged is in the table, with its level.
func TestOperations_LogLinesAreListed(t *testing.T) {
	t.Parallel()
	text, n := read(t, "docs/OPERATIONS.md"), 0
	for _, f := range append(glob(t, "*.go"), glob(t, "internal/*/*.go")...) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, found := range regexp.MustCompile(`(?:\.(Warn|Info|Error|Debug)\(|Say(End)\(|[sS]ay(?:Locked)?\((?:line\{)?(?:slog\.Level(Warn|Info|Error|Debug)|level), |burstKey\{)"(holdfast: [^"]+)"`).FindAllStringSubmatch(read(t, f), -1) {
			n++
			level := strings.ToLower(found[1] + found[3])
			switch {
			case found[2] != "":
				level = "info"
			case level == "":
				level = "warn"
			}
			if !strings.Contains(text, "| `"+found[4]+"` | "+level+" |") {
				t.Errorf("%s: docs/OPERATIONS.md does not list %q as %s", f, found[4], level)
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d lines found", n)
	}
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// The texts are Redis 7.0.15's, captured, and those of Redis 6.2, Redis 8.2 and Valkey 9.1 for the same errors.
func TestClassify(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, tc := range []struct {
		err  error
		want lock.Outcome
	}{
		{nil, lock.Answered},
		{dial, lock.NotSent},
		{fmt.Errorf("wrapped: %w", dial), lock.NotSent},
		{redis.ErrPoolTimeout, lock.NotSent},
		{redis.ErrClosed, lock.Shut},
		{fmt.Errorf("wrapped: %w", redis.ErrClosed), lock.Shut},
		{io.EOF, lock.Unknown},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, lock.Unknown},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, lock.Unknown},
		{context.Canceled, lock.Unknown},
		{errors.New("something new in go-redis"), lock.Unknown},
		{scriptError("LOADING Redis is loading the dataset in memory"), lock.Refused},
		{scriptError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), lock.Refused},
		{scriptError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), lock.Refused},
		{scriptError("CLUSTERDOWN The cluster is down"), lock.Refused},
		{scriptError("TRYAGAIN Multiple keys request during rehashing of slot"), lock.Refused},
		{scriptError("READONLY You can't write against a read only replica. script: 5, on @user_script:1."), lock.Refused},
		{scriptError("OOM command not allowed when used memory > 'maxmemory'. script: 5, on @user_script:1."), lock.Refused},
		{scriptError("NOREPLICAS Not enough good replicas to write. script: 5, on @user_script:1."), lock.Refused},
		{scriptError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk."), lock.Refused},
		{scriptError("ERR Error running script (call to f_5): @user_script:6: @user_script: 6: -OOM command not allowed when used memory > 'maxmemory'."), lock.Refused},
		{scriptError("ERR The user executing the script can't publish to the channel mentioned in the command script: 5, on @user_script:3."), lock.Unknown},
		{scriptError("ERR invalid expire time in 'pexpire' command script: 5, on @user_script:2."), lock.Unknown},
		{scriptError("WRONGTYPE Operation against a key holding the wrong kind of value script: 5, on @user_script:1."), lock.Failed},
		{scriptError("ERR Unknown Redis command called from script script: 5, on @user_script:1."), lock.Failed},
		{scriptError("ERR Error running script (call to f_5): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script"), lock.Failed},
		{scriptError("ERR Unknown command called from script script: on @user_script:1."), lock.Failed},
		{scriptError("ERR This Valkey command is not allowed from script script: on @user_script:1."), lock.Failed},
		{scriptError("ERR user_script:3: attempt to index local 'x' (a nil value) script: 5, on @user_script:3."), lock.Failed},
		{scriptError("ERR Error running script (call to f_5): @user_script:3: user_script:3: attempt to compare nil with number"), lock.Failed},
		{scriptError("ERR Error running script (call to f_5): @user_script:1: Script killed by user with SCRIPT KILL..."), lock.Unknown},
		{scriptError("ERR ACL failure in script: User u has no permissions to run the 'pexpire' command script: on @user_script:1."), lock.Unknown},
		{scriptError("NOPERM User limited has no permissions to run the 'incr' command script: 5, on @user_script:1."), lock.Unknown},
		{scriptError("WRONGTYPE Operation against a key holding the wrong kind of value"), lock.Denied},
		{scriptError("NOPERM this user has no permissions to access one of the keys used as arguments"), lock.Barred},
		{scriptError("NOPERM No permissions to access a key"), lock.Barred},
		{scriptError("NOAUTH Authentication required."), lock.Barred},
		{scriptError("ERR Protocol error: unauthenticated bulk length"), lock.Barred},
		{scriptError("WRONGPASS invalid username-password pair or user is disabled."), lock.Barred},
		{fmt.Errorf("failed to authenticate: %w", scriptError("WRONGPASS invalid username-password pair or user is disabled.")), lock.Barred},
		{scriptError("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"), lock.Barred},
		{scriptError("ERR Client sent AUTH, but no password is set"), lock.Barred},
		{scriptError("ERR invalid password"), lock.Barred},
		{scriptError("ERR DB index is out of range"), lock.Denied},
		{scriptError("ERR invalid DB index"), lock.Denied},
		{scriptError("ERR SELECT is not allowed in cluster mode"), lock.Denied},
		{scriptError("ERR unknown command `evalsha`, with args beginning with: `5`"), lock.Denied},
		{scriptError("ERR unknown command 'EVALSHA'"), lock.Denied},
		{scriptError("unsupported command 'evalsha'"), lock.Denied},
		{scriptError("ERR Error compiling script (new function): user_script:1: malformed number near '5x'"), lock.Denied},
		{scriptError("CROSSSLOT Keys in request don't hash to the same slot"), lock.Refused},
		{scriptError("HOLDFAST cannot set a TTL: ERR something"), lock.Denied},
		{scriptError("HOLDFAST cannot set a TTL: NOPERM"), lock.Barred},
		// Proxies, while they look for a server.
		{scriptError("upstream failure"), lock.Unknown},
		{scriptError("no upstream host"), lock.Unknown},
		{scriptError("ERR Proxy error"), lock.Unknown},
		{scriptError("ERR server closed connection"), lock.Unknown},
		{scriptError("ERR Connection refused"), lock.Unknown},
		{scriptError("ERR backend conn reset"), lock.Unknown},
		{scriptError("ERR Connection timed out"), lock.Unknown},
		{scriptError("ERR"), lock.Unknown},
		{scriptError(""), lock.Unknown},
		{scriptError("\xff\r\n" + strings.Repeat("x", 64<<10)), lock.Unknown},
		{redis.Nil, lock.Unknown},
	} {
		if got := classify(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
}

// What is shown of an error is printable, on one line and not endless; what it is stays visible.
func TestLegible(t *testing.T) {
	for text, want := range map[string]string{
		"upstream failure":                    "upstream failure",
		"":                                    "an error without a text",
		"ERR a\r\nb\xff":                      `"ERR a\r\nb\xff"`,
		strings.Repeat("x", 64<<10):           strings.Repeat("x", longest) + "… (65536 bytes)",
		"x" + strings.Repeat("ä", 64<<10)[1:]: "",
	} {
		err := scriptError(text)
		got := Legible(err)
		if want != "" && got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%.100q: %.600q", text, got)
		}
		if shown := got.Error(); len(shown) > 4*longest+100 || strings.ContainsFunc(shown, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%.100q: %.600q", text, shown)
		}
	}
	if Legible(nil) != nil {
		t.Error("nil is an error")
	}
}

// Requests that fail and requests that are answered come from several connections. What is told of them is in turns: an
// outage ends after it has begun, and before the next begins.
func TestOutage_IsToldInOrder(t *testing.T) {
	var x Executor
	var told []string
	o := &x.outage
	note := func(what string) {
		if o.mu.TryLock() { // then another one could tell what came later before this is told
			o.mu.Unlock()
			t.Errorf("%s without the lock", what)
		}
		told = append(told, what)
	}
	x.Events = Events{Outage: func(error) { note("began") }, Answers: func(time.Duration) { note("ended") }}
	cause := errors.New("refused")
	for round := range 200 {
		x.failed(time.Now(), cause)
		o.mu.Lock()
		o.since = o.since.Add(-outageAfter) // it was long ago
		o.mu.Unlock()
		var wg sync.WaitGroup
		wg.Go(func() { x.failed(time.Now().Add(time.Hour), cause) })
		if round%2 == 0 {
			wg.Wait()
		}
		wg.Go(x.answered)
		wg.Wait()
		x.answered()
	}
	if len(told) < 200 || len(told)%2 != 0 {
		t.Errorf("%d lines", len(told))
	}
	for pair := range slices.Chunk(told, 2) {
		if !slices.Equal(pair, []string{"began", "ended"}) {
			t.Fatalf("%v", pair)
		}
	}
}

func TestLag(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		takes, quick := time.Duration(0), make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			if takes < 0 {
				<-quick
			}
			time.Sleep(takes)
			echo(ctx, cmd)
		}
		want := func(when string, lag time.Duration) {
			t.Helper()
			synctest.Wait()
			if got := x.Lag("k"); got != lag {
				t.Errorf("%s: %v, want %v", when, got, lag)
			}
		}
		ask := func() chan Reply { return submit(t, x, "k", time.Hour).replies }
		want("nothing was asked", 0)
		takes = 20 * time.Millisecond
		<-ask()
		want("the answer took its time", takes)
		takes = -1
		silent := ask()
		time.Sleep(10 * time.Millisecond)
		want("not silent for longer than the answer before took", 20*time.Millisecond)
		time.Sleep(90 * time.Millisecond)
		want("silent", 100*time.Millisecond)
		takes = time.Millisecond
		<-ask()
		want("one sent later was answered: the connection was dead", time.Millisecond)
		close(quick)
		<-silent
		want("what was sent before ends late", time.Millisecond)
	})
}

package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestServer_Inspection(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t)
	rdb.Set(t.Context(), "lock:a", "1", time.Minute)
	rdb.Set(t.Context(), "fence:a", "1", 0)

	if got := fmt.Sprint(s.Keys()); got != "[fence:a lock:a]" {
		t.Errorf("Keys() = %s", got)
	}
	s.RequireNoKeys(t, "fence:", "lock:")
	s.RequireTTLs(t, "fence:")
	wantFailure(t, `["lock:a"]`, func(tb testing.TB) { s.RequireNoKeys(tb, "fence:") })
	wantFailure(t, `["fence:a"]`, func(tb testing.TB) { s.RequireTTLs(tb) })
}

func TestServer_NumSub(t *testing.T) {
	s := Start(t)
	sub := s.Client(t).Subscribe(t.Context(), "ch")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.NumSub("ch"); got != 1 {
		t.Errorf("NumSub(ch) = %d, want 1", got)
	}
	if got := s.NumSub("other"); got != 0 {
		t.Errorf("NumSub(other) = %d, want 0", got)
	}
}

func TestServer_CommandCalls(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t)
	rdb.Ping(t.Context())
	s.ResetStats()
	if got := s.CommandCalls(); got != 0 {
		t.Errorf("CommandCalls() = %d after ResetStats, want 0", got)
	}
	rdb.Eval(t.Context(), "return redis.call('incr', KEYS[1])", []string{"n"})
	rdb.Get(t.Context(), "n")
	rdb.ClientID(t.Context())
	rdb.ClientInfo(t.Context())
	for _, c := range []struct {
		names []string
		want  int64
	}{
		{[]string{"GET"}, 1}, {[]string{"eval", "evalsha"}, 1}, {[]string{"client"}, 2},
		{[]string{"set"}, 0}, {nil, 5}, // with the script's INCR
	} {
		if got := s.CommandCalls(c.names...); got != c.want {
			t.Errorf("CommandCalls(%q) = %d, want %d", c.names, got, c.want)
		}
	}
}

func TestServer_MonitorSeesScriptsToo(t *testing.T) {
	s := Start(t)
	m := s.Monitor(t)
	s.Admin().Eval(t.Context(), "return redis.call('incr', KEYS[1])", []string{"n"})
	line := m.Wait(t, `"incr" "n"`, Patience)
	if !strings.Contains(line, "lua]") {
		t.Errorf("line = %q, want it marked lua", line)
	}
	if got := strings.Join(m.Lines(), "\n"); !strings.Contains(got, `"eval"`) {
		t.Errorf("lines = %q, want the EVAL itself", got)
	}
	wantFailure(t, "no such line within", func(tb testing.TB) { m.Wait(tb, "never", time.Millisecond) })
	s.Kill()
	wantFailure(t, errLogEnded.Error(), func(tb testing.TB) { m.Wait(tb, "never", Patience) })
}

package vredis_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

func client(t testing.TB, s *vredis.Server, change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr(), Dialer: s.Dial}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestServer_GoRedisUsesIt(t *testing.T) {
	for _, proto := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			s := vredis.New(vredis.Options{Password: "secret"})
			rdb := client(t, s, func(o *redis.Options) { o.Protocol, o.Password = proto, "secret" })
			want(t, "Set", rdb.Set(ctx, "k", "v", time.Minute).Err(), nil)
			want(t, "Get", rdb.Get(ctx, "k").Val(), "v")
			want(t, "PTTL", rdb.PTTL(ctx, "k").Val(), time.Minute)
			cmds, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.HSet(ctx, "h", "a", "1", "b", "2")
				p.HGetAll(ctx, "h")
				p.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "m"})
				p.ZRangeWithScores(ctx, "z", 0, -1)
				return nil
			})
			want(t, "pipeline", err, nil)
			want(t, "HGetAll", cmds[1].(*redis.MapStringStringCmd).Val(), map[string]string{"a": "1", "b": "2"})
			want(t, "ZRange", cmds[3].(*redis.ZSliceCmd).Val(), []redis.Z{{Score: 1.5, Member: "m"}})
			ps := rdb.Subscribe(ctx, "c")
			defer ps.Close()
			if _, err := ps.Receive(ctx); err != nil {
				t.Fatal(err)
			}
			want(t, "Publish", rdb.Publish(ctx, "c", "hello").Val(), int64(1))
			m, err := ps.ReceiveMessage(ctx)
			if err != nil || m.Payload != "hello" {
				t.Errorf("got %v, %v", m, err)
			}
			if err := client(t, s, nil).Ping(ctx).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
				t.Errorf("without password: %v", err)
			}
		})
	}
}

func TestServer_KeysExpireByTheClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := vredis.New(vredis.Options{Now: func() time.Time { return now }})
	s.Do("set", "k", "v", "px", "1000")
	s.Do("set", "other", "v")
	now = now.Add(999 * time.Millisecond)
	want(t, "before", s.Do("pttl", "k"), int64(1))
	now = now.Add(time.Millisecond)
	want(t, "number of keys", s.Do("dbsize"), int64(1))
	want(t, "after", s.Do("get", "k"), nil)
}

// A script's time stands still, although the clock goes on.
func TestServer_NothingExpiresInAScript(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := vredis.New(vredis.Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
	s.Do("set", "k", "v", "px", "1500")
	got := s.Do("eval", "local t = redis.call('time')[1]; for i = 1, 10 do redis.call('exists', 'k') end return {redis.call('exists', 'k'), t == redis.call('time')[1] and 1 or 0}", "0")
	want(t, "in the script", got, []any{int64(1), int64(1)})
	want(t, "after it", s.Do("exists", "k"), int64(0))
}

// What a script has written before it failed stays.
func TestServer_AScriptThatFailsIsNotUndone(t *testing.T) {
	s := vredis.New(vredis.Options{})
	if _, failed := s.Do("eval", "redis.call('set','k','v') redis.call('nosuch')", "0").(error); !failed {
		t.Error("no error")
	}
	want(t, "k", s.Do("get", "k"), "v")
}

func TestServer_FreezeAnswersWhenThawed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vredis.New(vredis.Options{})
		rdb := client(t, s, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = time.Second, -1 })
		want(t, "Ping", rdb.Ping(t.Context()).Err(), nil)
		s.Freeze()
		if err := rdb.Set(t.Context(), "late", "1", 0).Err(); err == nil {
			t.Error("a frozen server answered")
		}
		s.Thaw()
		want(t, "Get", rdb.Get(t.Context(), "late").Val(), "1") // though the client has closed that connection
		s.Freeze(vredis.Handshake...)
		go func() { time.Sleep(500 * time.Millisecond); s.Thaw() }()
		begin := time.Now()
		want(t, "Set", rdb.Set(t.Context(), "k", "1", 0).Err(), nil)
		want(t, "time", time.Since(begin), 500*time.Millisecond)
	})
}

func TestServer_RestartEndsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := vredis.New(vredis.Options{})
		rdb := client(t, s, func(o *redis.Options) { o.MaxRetries = -1 })
		rdb.Set(ctx, "k", "v", 0)
		sha, id := rdb.ScriptLoad(ctx, "return 1").Val(), rdb.ClientID(ctx).Val()
		s.Restart(true)
		if rdb.ClientID(ctx).Val() == id {
			t.Error("the connection lived on")
		}
		want(t, "data that was kept", rdb.Get(ctx, "k").Val(), "v")
		want(t, "a script", redis.HasErrorPrefix(rdb.EvalSha(ctx, sha, nil).Err(), "NOSCRIPT"), true)
		s.Restart(false)
		_ = rdb.Ping(ctx)
		want(t, "data that was lost", rdb.Get(ctx, "k").Err(), redis.Nil)
		s.Stop()
		want(t, "connections", s.Connections(), 0)
		_ = rdb.Ping(ctx)
		if err := rdb.Ping(ctx).Err(); err == nil {
			t.Error("a stopped server answered")
		}
		s.Start(true)
		want(t, "Ping", rdb.Ping(ctx).Err(), nil)
	})
}

func TestServer_RefusesWhatItSuffersFrom(t *testing.T) {
	s := vredis.New(vredis.Options{})
	rdb := client(t, s, func(o *redis.Options) { o.MaxRetries = -1 })
	ctx := context.Background()
	for _, c := range []struct {
		set    func(bool)
		prefix string
	}{{s.SetOOM, "OOM"}, {s.SetReadOnly, "READONLY"}, {s.SetLoading, "LOADING"}, {s.SetMisconf, "MISCONF"}} {
		want(t, "before "+c.prefix, rdb.Set(ctx, "k", "v", 0).Err(), nil)
		c.set(true)
		if err := rdb.Set(ctx, "k", "w", 0).Err(); !redis.HasErrorPrefix(err, c.prefix) {
			t.Errorf("%s: got %v", c.prefix, err)
		}
		if c.prefix != "LOADING" {
			want(t, "a read with "+c.prefix, rdb.Get(ctx, "k").Val(), "v")
		}
		want(t, "a look with "+c.prefix, s.Do("get", "k"), "v")
		c.set(false)
	}
}

func TestServer_WaitsForReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vredis.New(vredis.Options{})
		rdb := client(t, s, nil)
		s.SetReplicas(2, 1)
		want(t, "WAIT 1", rdb.Wait(t.Context(), 1, time.Second).Val(), int64(1))
		begin := time.Now()
		want(t, "WAIT 2", rdb.Wait(t.Context(), 2, time.Second).Val(), int64(1))
		want(t, "time", time.Since(begin), time.Second)
	})
}

func TestServer_ACopyIsAsItWas(t *testing.T) {
	s, replica := vredis.New(vredis.Options{}), vredis.New(vredis.Options{})
	for _, c := range [][]string{{"hset", "h", "a", "1"}, {"rpush", "l", "a"}, {"zadd", "z", "1", "a"}, {"set", "s", "v", "px", "100000"}} {
		s.Do(c...)
	}
	st := s.Snapshot()
	for _, c := range [][]string{{"hset", "h", "a", "2"}, {"rpush", "l", "b"}, {"zadd", "z", "2", "a"}, {"set", "s", "w"}} {
		s.Do(c...)
	}
	replica.Restore(st)
	want(t, "hash", replica.Do("hget", "h", "a"), "1")
	want(t, "list", replica.Do("llen", "l"), int64(1))
	want(t, "zset", replica.Do("zscore", "z", "a"), 1.0)
	want(t, "string", replica.Do("get", "s"), "v")
}

func TestServer_UsersMayDoWhatTheyMay(t *testing.T) {
	s := vredis.New(vredis.Options{})
	if err := s.SetUser("u", "on", ">p", "~a*", "&c", "+@all", "-del"); err != nil {
		t.Fatal(err)
	}
	rdb := client(t, s, func(o *redis.Options) { o.Username, o.Password = "u", "p" })
	ctx := context.Background()
	want(t, "allowed", rdb.Set(ctx, "a1", "v", 0).Err(), nil)
	for what, err := range map[string]error{"key": rdb.Set(ctx, "b", "v", 0).Err(), "command": rdb.Del(ctx, "a1").Err(), "channel": rdb.Publish(ctx, "d", "m").Err()} {
		if !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := s.SetUser("u", "~nonsense", "?"); err == nil {
		t.Error("an unknown rule was taken")
	}
}

func TestServer_LogsWhatItExecutes(t *testing.T) {
	var got []string
	s := vredis.New(vredis.Options{Log: func(e vredis.Executed) {
		from := "client "
		if e.Lua {
			from = "lua "
		}
		got = append(got, from+strings.Join(e.Args[:2], " ")+e.Err[:min(9, len(e.Err))])
	}})
	s.Do("set", "k", "v")
	s.Do("eval", "return redis.pcall('lpush', 'k', 'v')", "0")
	want(t, "log", got, []string{"client set k", "lua lpush kWRONGTYPE", "client eval return redis.pcall('lpush', 'k', 'v')WRONGTYPE"})
}

// What it does not do it says.
func TestServer_GuessesNothing(t *testing.T) {
	s := vredis.New(vredis.Options{})
	for _, c := range [][]string{{"select", "1"}, {"zrange", "z", "-", "+", "bylex"}, {"eval", "return cjson.encode({})", "0"}, {"eval", "return math.random()", "0"}, {"eval", "return {double=1}", "0"}, {"config", "set", "hz", "1"}} {
		err, failed := s.Do(c...).(error)
		if !failed || !strings.Contains(err.Error(), "vredis does not do") {
			t.Errorf("%q: got %v", c, err)
		}
	}
	if err, failed := s.Do("object", "encoding", "k").(error); !failed {
		t.Errorf("got %v", err)
	}
}

func TestConn_ClosedIsAnError(t *testing.T) {
	s := vredis.New(vredis.Options{})
	c, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(-time.Second))
	var timeout interface{ Timeout() bool }
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a read past its deadline: %v", err)
	}
	_ = c.Close()
	if _, err := c.Write([]byte("PING\r\n")); err == nil {
		t.Error("a write to a closed connection")
	}
	want(t, "connections", s.Connections(), 0)
}

// A pool does not use a connection again that the server has closed.
func TestConn_PoolsSeeThatItHasEnded(t *testing.T) {
	s := vredis.New(vredis.Options{})
	rdb := client(t, s, func(o *redis.Options) { o.MaxRetries = -1 })
	want(t, "Ping", rdb.Ping(t.Context()).Err(), nil)
	want(t, "killed", s.KillConnections(nil), 1)
	want(t, "Ping over a new connection", rdb.Ping(t.Context()).Err(), nil)
	want(t, "Ping over the same", rdb.Ping(t.Context()).Err(), nil)
	want(t, "connections", s.Connections(), 1)
}

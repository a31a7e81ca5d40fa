package vredis_test

import (
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

func TestServer_WantsItsPassword(t *testing.T) {
	s := vredis.New(vredis.Options{Password: "secret"})
	if err := client(t, s, nil).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without it: %v", err)
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
	want(t, "connections", s.Do("client", "list"), "")
}

// A pool does not use a connection again that the server has closed.
func TestConn_PoolsSeeThatItHasEnded(t *testing.T) {
	s := vredis.New(vredis.Options{})
	rdb := client(t, s, func(o *redis.Options) { o.MaxRetries = -1 })
	want(t, "Ping", rdb.Ping(t.Context()).Err(), nil)
	want(t, "killed", s.Do("client", "kill", "type", "normal"), int64(1))
	want(t, "Ping over a new connection", rdb.Ping(t.Context()).Err(), nil)
	want(t, "Ping over the same", rdb.Ping(t.Context()).Err(), nil)
	want(t, "killed", s.Do("client", "kill", "type", "normal"), int64(1))
}

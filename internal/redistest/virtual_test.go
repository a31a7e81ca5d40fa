package redistest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// virtually runs f in a bubble with a virtual server and a client behind a proxy that is in use.
func virtually(t *testing.T, f func(t *testing.T, s *Server, p *Proxy, c *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := StartVirtual(t)
		p := s.Proxy(t)
		c := p.ClientWith(t, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })
		Must(t, c.Set(t.Context(), "k", "v", 0).Err())
		f(t, s, p, c)
	})
}

// What stands still answers greetings, and nothing else, and loses nothing of what it was sent.
func TestVirtual_Silence(t *testing.T) {
	for name, silence := range map[string]struct{ begin, end func(*Server, *Proxy) }{
		"paused": {func(s *Server, _ *Proxy) { s.Pause() }, func(s *Server, _ *Proxy) { s.Resume() }},
		"frozen": {func(_ *Server, p *Proxy) { p.Freeze(true) }, func(_ *Server, p *Proxy) { p.Freeze(false) }},
		"stalled": {func(s *Server, _ *Proxy) {
			go s.Admin().Do(context.Background(), "debug", "sleep", "3")
			synctest.Wait()
		},
			func(*Server, *Proxy) { time.Sleep(3 * time.Second) }},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
				silence.begin(s, p)
				begin := time.Now()
				err := c.Set(t.Context(), "k", "late", 0).Err()
				if err == nil || time.Since(begin) != time.Second {
					t.Errorf("answered after %v: %v", time.Since(begin), err)
				}
				begin = time.Now()
				err = p.ClientWith(t, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second }).Get(t.Context(), "k").Err()
				if err == nil || time.Since(begin) != time.Second { // the greetings took none of it
					t.Errorf("a new connection: answered after %v: %v", time.Since(begin), err)
				}
				silence.end(s, p)
				Eventually(t, Patience, "it is executed, though its client has gone", func() bool { return c.Get(t.Context(), "k").Val() == "late" })
			})
		})
	}
}

// A server that is restarted keeps its data only with WithAOF.
func TestVirtual_Restart(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var opts []ServerOption
			if keep {
				opts = append(opts, WithAOF())
			}
			s := StartVirtual(t, opts...)
			s.Admin().Set(t.Context(), "k", "v", 0)
			s.Kill()
			if err := s.Client(t).Ping(t.Context()).Err(); err == nil {
				t.Error("a dead server answers")
			}
			s.Restart()
			Want(t, s.Admin().Exists(t.Context(), "k").Val() == 1, keep, "kept %v, want %v")
		})
	}
}

// A monitor has the lines of MONITOR.
func TestVirtual_Monitor(t *testing.T) {
	virtually(t, func(t *testing.T, s *Server, _ *Proxy, c *redis.Client) {
		m := s.Monitor(t)
		c.Eval(t.Context(), "return redis.call('get', KEYS[1])", []string{"k"})
		m.Wait(t, `lua] "get" "k"`, Patience)
		c.Echo(t.Context(), "that is all")
		if line := m.Wait(t, "that is all", Patience); !strings.Contains(line, `[0 client:`) || !strings.Contains(line, `"echo"`) {
			t.Errorf("got %q", line)
		}
	})
}

// A command that only a real server knows fails the test: its answer would prove nothing.
func TestVirtual_UnknownCommandsFailTheTest(t *testing.T) {
	WantFailure(t, "needs a real server", func(tb testing.TB) {
		StartVirtual(tb).Admin().Do(context.Background(), "blpop", "k", "1")
	})
}

// More callers at a time than go-redis's pools have connections by default, in one bubble after the other and in several at a time: no bubble gets a
// timer of another one, which would end the program.
func TestVirtual_ManyCallersInManyBubbles(t *testing.T) {
	for i := range 2 {
		t.Run(fmt.Sprint("beside another ", i), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				virtually(t, func(t *testing.T, s *Server, p *Proxy, _ *redis.Client) {
					clients := []*redis.Client{s.Client(t), p.Client(t)}
					s.Pause()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					var wg sync.WaitGroup
					for range min(15*runtime.GOMAXPROCS(0), ample) {
						for _, c := range clients {
							wg.Go(func() { _ = c.Get(ctx, "k").Err() })
						}
					}
					wg.Wait()
					s.Resume()
				})
			}
		})
	}
}

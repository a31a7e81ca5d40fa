package command

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// instant answers every pipeline at once, so that what is left is the executor's cost.
type instant struct{}

func (instant) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (instant) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (instant) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			cmd.(*once).SetVal(int64(0))
		}
		return nil
	}
}

// answered tells its caller.
type answered chan struct{}

func (a answered) Replied(*Call, Reply) { a <- struct{}{} }
func (a answered) Overdue(*Call)        {}
func (a answered) Stranded(*Call)       {}

// BenchmarkSubmit is one call, from Submit to Replied, without any server.
func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0"})
			defer client.Close()
			client.AddHook(instant{})
			x := New(client)
			defer x.Stop(context.Background())
			b.ReportAllocs()
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				done := make(answered, 1)
				args := testScript.Args(1, "k")
				for pb.Next() {
					x.Submit(time.Now(), &Call{Script: testScript, Args: args, Handler: done, Patience: time.Second})
					<-done
				}
			})
		})
	}
}

package command_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// spans notes for each pipeline whose values its context has.
type spans struct {
	redis.Hook
	alone, together chan any
}

type spanKey struct{}

func (*spans) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*spans) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (s *spans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		to := s.alone
		if len(cmds[0].Args()) > 20 {
			to = s.together
		}
		select {
		case to <- ctx.Value(spanKey{}):
		default:
		}
		return next(ctx, cmds)
	}
}

// A call that goes alone has the trace of its caller. A command of many callers has none.
func TestMerged_Traces(t *testing.T) {
	srv := redistest.Start(t)
	s := &spans{alone: make(chan any, 100), together: make(chan any, 100)}
	client := srv.Client(t)
	client.AddHook(s)
	x := executor(t, client)
	traced := func(k *wire.Keys, i int) *command.Call {
		c := acquire(k, i)
		c.Trace = context.WithValue(context.Background(), spanKey{}, k.Lock)
		return c
	}
	all(t, x, traced, "one")
	redistest.Want(t, <-s.alone, "one", "alone: %v")
	all(t, x, traced, names(64, "n%d")...)
	if got := <-s.together; got != nil {
		t.Errorf("together: %v", got)
	}
}

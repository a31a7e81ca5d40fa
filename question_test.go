package holdfast

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// isScript matches calls of scripts.
func isScript(cmd []string) bool {
	_, _, ok := redistest.ScriptCall(cmd)
	return ok
}

// The end of a dead connection is no answer to a question of which a copy is on its way over another one.
func TestQuestion_CopyAnswers(t *testing.T) {
	t.Parallel()
	p := redistest.Start(t).Proxy(t)
	m, err := New(p.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	if _, err := m.Inspect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	gate := p.HoldReply(isScript)
	keys := wire.ForceReleaseKeys("a")
	lock, rw := wire.Channels("a")
	call := &command.Call{Script: protocol.ForceRelease, Args: protocol.ForceRelease.Args(len(keys), append(keys, m.engine.Publish, lock, rw)...), Patience: time.Second}
	q, answer := m.engine.Question()
	q.Stranded(call)
	gate.Wait(t)
	q.Replied(call, command.Reply{Err: errors.New("i/o timeout"), Outcome: command.Unknown})
	gate.Release()
	if r := <-answer; r.Outcome != command.Answered {
		t.Errorf("%v, %v", r.Outcome, r.Err)
	}
}

package pubsub

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// asked is a listener that counts how often it was asked to prove that messages arrive.
type asked struct{ ear }

func (a asked) Unproven() { a.Heard("prove") }

// SUBSCRIBE and SSUBSCRIBE are confirmed, PING is answered, and no message comes.
func TestEcho_NoMessageArrives(t *testing.T) {
	for name, k := range map[string]channelKind{"plain": {false, 3}, "sharded": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
				p := srv.Proxy(t)
				client := p.Client(t)
				var unheard atomic.Int32
				c := Config{Client: client, Plain: !k.sharded, Journal: journal.New(slog.New(slog.DiscardHandler)), Lost: func(u bool) {
					if u {
						unheard.Add(1)
					}
				}}
				if k.sharded {
					c.Nodes = oneNode{client}
				}
				s := New(c)
				defer s.Stop(context.Background())
				const channel = "redisson_lock__channel:{a}"
				l := asked{make(ear, 100)}
				s.Add(channel, l)
				live := func() bool { return s.Live(channel) }
				prove := func() {
					redistest.Eventually(t, patience, "an echo is sent", func() bool {
						message := s.Echo(channel)
						if message == "" {
							return false
						}
						if k.sharded {
							client.SPublish(context.Background(), channel, message)
						} else {
							client.Publish(context.Background(), channel, message)
						}
						s.Published(channel, message, 1, 0)
						return true
					})
				}
				redistest.Eventually(t, patience, "it is live", live)
				prove()
				redistest.Eventually(t, patience, "the echo comes back", func() bool { return s.Echo(channel) == "" })

				p.Hush(true)
				prove()
				redistest.Eventually(t, patience, "the session is given up", func() bool { return unheard.Load() == 1 })
				if got := <-l.ear; got != "prove" { // of the next session
					t.Errorf("heard %q", got)
				}
				prove()
				redistest.Eventually(t, patience, "the channel counts as denied", func() bool { return s.Denied(channel) })
				if live() || unheard.Load() != 1 {
					t.Errorf("live: %v, %d sessions told of", live(), unheard.Load())
				}
				p.Hush(false)
				prove()
				redistest.Eventually(t, patience, "it is live again", live)
				if s.Denied(channel) {
					t.Error("it is denied")
				}
			})
		})
	}
}

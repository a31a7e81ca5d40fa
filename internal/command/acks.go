package command

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Acks asks for the acknowledgement of a call by replicas: WAIT follows it on the same
// connection, which is what Redis counts for.
type Acks struct {
	Replicas int
	Timeout  time.Duration // a millisecond or more
}

// command returns the WAIT.
func (a *Acks) command(ctx context.Context) *redis.Cmd {
	// 0 would be for ever.
	return redis.NewCmd(ctx, "wait", a.Replicas, max(1, a.Timeout.Milliseconds()))
}

// group is calls that are sent as one pipeline.
type group struct {
	master *redis.Client // that they go to; nil: through the executor's client, which may be of a type without ==
	calls  []*Call
	acks   *Acks // of all of them; nil: none
}

// groups divides a batch: calls to be acknowledged come last, because the replies of a
// pipeline are read together and WAIT can take long. One WAIT is for all that go over
// one connection, since replicas acknowledge in order.
//
// In a cluster these calls go to the master itself: WAIT has no key that would lead it
// there. A redirection is then a refusal, and the caller asks again.
func (l *lane) groups() []group {
	all := []group{{}}
	for _, c := range l.batch {
		if c.Acks == nil {
			all[0].calls = append(all[0].calls, c)
			continue
		}
		master, err := l.masterFor(c)
		if err != nil {
			outcome, err := l.failure(err)
			if !outcome.Final() && outcome != Barred {
				outcome = NotSent
			}
			c.Handler.Replied(c, Reply{Err: err, Outcome: outcome, Sent: time.Now()})
			continue
		}
		i := 1
		for i < len(all) && (all[i].master != master || *all[i].acks != *c.Acks) {
			i++
		}
		if i == len(all) {
			all = append(all, group{master: master, acks: c.Acks})
		}
		all[i].calls = append(all[i].calls, c)
	}
	return all
}

// masterFor returns the server that a call and its WAIT are sent to; nil where there is no
// cluster. It may do I/O: the first call of all has no call before it to learn its master from.
func (l *lane) masterFor(c *Call) (*redis.Client, error) {
	x := l.shard.x
	if x.cluster == nil || c.master != nil {
		return c.master, nil
	}
	return x.cluster.MasterForKey(l.ctx, c.key())
}

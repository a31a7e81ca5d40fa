package command

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lag returns how long the server that has key takes to answer: what it took for the latest request
// that has ended, or how long a later one has been unanswered if that is longer. It is 0 as long as
// nothing was sent there.
func (x *Executor) Lag(key string) time.Duration {
	var master *redis.Client
	if x.cluster != nil && x.located.Load() {
		master, _ = x.cluster.MasterForKey(context.Background(), key)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shards[master]
	if s == nil {
		return 0
	}
	lag, now := s.lasted, time.Now()
	for l := range s.busy {
		// A request that was sent before the latest one that ended says nothing: its connection is dead.
		if l.since.After(s.latest) {
			lag = max(lag, now.Sub(l.since))
		}
	}
	return lag
}

// endedLocked records that a batch that was sent at sent has ended after lasted.
func (s *shard) endedLocked(sent time.Time, lasted time.Duration) {
	if sent.After(s.latest) {
		s.latest, s.lasted = sent, lasted
	}
}

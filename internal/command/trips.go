package command

import "time"

// trips are the durations of the latest batches that were answered.
type trips struct {
	latest [4]time.Duration // 0: none yet
	next   int
}

func (t *trips) add(d time.Duration) {
	t.latest[t.next] = d
	t.next = (t.next + 1) % len(t.latest)
}

// least is the shortest of them, and so what the round trip is now: a batch takes longer if it dials,
// if the server stands still or the process does, and the next one that does not corrects that at once.
// It is 0 until Redis has answered.
func (t *trips) least() time.Duration {
	var least time.Duration
	for _, d := range t.latest {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// RoundTrip is how long Redis takes to answer, as the latest batches show: in a cluster the master that
// takes longest. It is 0 until Redis has answered.
func (x *Executor) RoundTrip() time.Duration { return time.Duration(x.roundTrip.Load()) }

// firstWithin is how long Redis has for its first answer of all: by then the round trip is unknown, and a new
// connection takes about five of them.
const firstWithin = 5 * time.Second

// FirstWithin is how much of the time for the first answer of all is left; 0: Redis has answered, or that time is over.
func (x *Executor) FirstWithin() time.Duration {
	if x.RoundTrip() > 0 {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.began.IsZero() {
		return firstWithin
	}
	return max(0, firstWithin-time.Since(x.began))
}

// tookLocked records how long a batch to s took.
func (x *Executor) tookLocked(s *shard, d time.Duration) {
	s.trips.add(d)
	longest := s.trips.least()
	if len(x.shards) > 1 {
		for _, other := range x.shards {
			longest = max(longest, other.trips.least())
		}
	}
	x.roundTrip.Store(int64(longest))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// sift is one step of SCAN, of whose keys only those come back that hold a lock. ARGV: cursor, pattern, count. It returns
// {next cursor, microseconds that it took, key, ...}. Where a script's time stands still it took 0.
var sift = redis.NewScript("-- holdfast sift\n" + protocol.Function("keys", "kind_of") + `
local begun = redis.call('time')
local step = redis.call('scan', ARGV[1], 'match', ARGV[2], 'count', ARGV[3], 'type', 'hash')
local reply = {step[1], 0}
for _, key in ipairs(step[2]) do
  local kind = kind_of(key, 16)
  if kind ~= 'free' and kind ~= 'other' then
    reply[#reply + 1] = key
  end
end
local ended = redis.call('time')
reply[2] = (ended[1] - begun[1]) * 1000000 + ended[2] - begun[2]
return reply`)

// A step looks at siftFirst keys at first, and later at as many as take the server about siftTime.
const (
	siftFirst, siftLeast, siftMost = 100, 10, 400
	siftTime                       = 500 * time.Microsecond
)

// sifter looks for locks at one server. It belongs to one goroutine.
type sifter struct {
	client  *redis.Client
	pattern string
	kind    string // of keys: hash, or zset, with which the script is not needed
	count   int
	plain   bool          // the server does not run the script: all hashes are taken for locks
	rtt     time.Duration // of a PING
}

// step returns the keys of the next step, and how long it kept the server busy.
func (s *sifter) step(ctx context.Context, cursor uint64) (keys []string, next uint64, busy time.Duration, err error) {
	begun := time.Now()
	if !s.plain && s.kind == "hash" {
		reply, err := sift.Run(ctx, s.client, nil, cursor, s.pattern, s.count).Slice()
		if said := redis.Error(nil); !errors.As(err, &said) {
			if err == nil {
				keys, next, busy, err = readStep(reply)
			}
			if busy == 0 {
				busy = time.Since(begun) - s.rtt
			}
			return keys, next, busy, err
		}
		s.plain = true
	}
	keys, next, err = s.client.ScanType(ctx, cursor, s.pattern, int64(s.count), s.kind).Result()
	return keys, next, time.Since(begun) - s.rtt, err
}

// readStep reads the reply of sift.
func readStep(reply []any) (keys []string, next uint64, busy time.Duration, err error) {
	var micros int64
	for i, value := range reply {
		switch value := value.(type) {
		case int64:
			micros = value
		case string:
			if i > 0 {
				keys = append(keys, value)
			} else if _, err := fmt.Sscan(value, &next); err != nil {
				return nil, 0, 0, fmt.Errorf("cursor %q: %w", value, err)
			}
		}
	}
	return keys, next, time.Duration(micros) * time.Microsecond, nil
}

// all looks at all keys, and lets the server rest after each step. found gets the number of keys that were looked at, about,
// and the locks among them; it returns false to end.
func (s *sifter) all(ctx context.Context, found func(looked int, keys []string) bool) error {
	begun := time.Now()
	if err := s.client.Ping(ctx).Err(); err != nil {
		return &unavailable{err}
	}
	s.count, s.rtt = siftFirst, time.Since(begun)
	for cursor := uint64(0); ; {
		keys, next, busy, err := s.step(ctx, cursor)
		if err != nil {
			return &unavailable{err}
		}
		if !found(s.count, keys) || next == 0 {
			return nil
		}
		cursor = next
		switch {
		case busy > siftTime:
			s.count = max(s.count/2, siftLeast)
		case busy < siftTime/2:
			s.count = min(s.count*2, siftMost)
		}
		if err := rest(ctx, busy); err != nil {
			return &unavailable{err}
		}
	}
}

// restAfter work: a server is busy with a look for a quarter of the time at most.
const restAfter = 3

// rest waits for restAfter times as long as a server was busy.
func rest(ctx context.Context, busy time.Duration) error {
	timer := time.NewTimer(restAfter * busy)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

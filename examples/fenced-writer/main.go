// Command fenced-writer appends a word to a document under a lock, with a fencing token. The store rejects the word if a later
// holder of the lock has written, even if this process was paused beyond its lease just before it wrote:
//
//	fenced-writer hello
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

func main() {
	prefix := flag.String("prefix", "fenced-writer:", "prefix of the keys in Redis")
	recipe := flag.Bool("recipe", false, "lock with a unique value and without tokens, as in recipe.go")
	flag.Parse()
	if err := run(context.Background(), *prefix, flag.Arg(0), *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, word string, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	s := &store{client: client, key: prefix + "store"}
	if recipe {
		return writeUnfenced(ctx, s, prefix+"document", word)
	}
	locks, err := holdfast.New(client, holdfast.WithLease(time.Second))
	if err != nil {
		return err
	}
	defer locks.Close(ctx)

	lease, err := locks.Mutex(prefix+"document", holdfast.WithFencing()).Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx) // if the lease was lost, the store has decided
	token, err := lease.FencingToken()
	if err != nil {
		return err
	}
	fmt.Println("has the lock, token", token)
	text, err := s.read(ctx)
	if err != nil {
		return err
	}
	if !lease.Valid() {
		return errors.New("the lease is over")
	}
	// However close to the write this look at the lease is: the process can be paused here, for longer than the lease.
	switch err := s.write(ctx, text+" "+word, token); {
	case errors.Is(err, errStale):
		fmt.Println("is rejected:", err)
		return nil // the text was made from what a later holder has replaced
	case err != nil:
		return err
	}
	fmt.Println("has written")
	return nil
}

// store is what the lock protects. Here it is a hash in the same Redis. In a database it would be
//
//	UPDATE document SET text = $1, fence = $2 WHERE id = 1 AND fence <= $2
//
// and a look at how many rows that has changed.
type store struct {
	client *redis.Client
	key    string
}

var fencedWrite = redis.NewScript(`
local fence = tonumber(redis.call('hget', KEYS[1], 'fence') or 0)
if tonumber(ARGV[2]) < fence then
  return fence
end
redis.call('hset', KEYS[1], 'text', ARGV[1], 'fence', ARGV[2])
return 0`)

var errStale = errors.New("stale token")

func (s *store) read(ctx context.Context) (string, error) {
	text, err := s.client.HGet(ctx, s.key, "text").Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return text, err
}

// write returns errStale if the store has seen a larger token.
func (s *store) write(ctx context.Context, text string, token uint64) error {
	fence, err := fencedWrite.Run(ctx, s.client, []string{s.key}, text, token).Int()
	if err == nil && fence > 0 {
		err = fmt.Errorf("%w %d, the store has seen %d", errStale, token, fence)
	}
	return err
}

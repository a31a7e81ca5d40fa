// Command recipe appends a word to a document under the careful recipe: an expiry, a unique value and compare-and-delete. That
// protects the lock from a paused process, and not the document: nothing in the write says that it is late.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const expiry = time.Second

var release = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`)

func main() {
	prefix := flag.String("prefix", "fenced-writer:", "prefix of the keys in Redis")
	flag.Parse()
	if err := run(context.Background(), *prefix, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, word string) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()

	lock, value := prefix+"document", rand.Text()
	for {
		locked, err := client.SetNX(ctx, lock, value, expiry).Result()
		if err != nil {
			return err
		}
		if locked {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	defer release.Run(ctx, client, []string{lock}, value)
	fmt.Println("has the lock")
	text, err := client.HGet(ctx, prefix+"store", "text").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if err := client.HSet(ctx, prefix+"store", "text", text+" "+word).Err(); err != nil {
		return err
	}
	fmt.Println("has written")
	return nil
}

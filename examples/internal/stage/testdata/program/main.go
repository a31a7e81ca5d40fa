// Command program is what the tests of the stage play.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	prefix := flag.String("prefix", "", "prefix of the keys in Redis")
	flag.Parse()
	opt, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, client := context.Background(), redis.NewClient(opt)
	switch flag.Arg(0) {
	case "wait":
		fmt.Println("waits")
		select {}
	case "work":
		for _, key := range []string{"beginning", "middle", "middle"} { // a request is held back once
			if err := client.Set(ctx, *prefix+key, 1, 0).Err(); err != nil {
				log.Fatal(err)
			}
		}
		fmt.Println("goes on")
	default:
		os.Exit(1)
	}
}

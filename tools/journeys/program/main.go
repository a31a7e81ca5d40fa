// Command program is what [tools/journeys] traces. It does what the lines of its input say, locks and unlocks at the same time as other
// lines, and prints a line for each that is done.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/tools/journeys/trace"
)

func main() {
	locks, err := holdfast.New(redis.NewClient(&redis.Options{Addr: os.Args[1]}),
		holdfast.WithLease(3*time.Second), holdfast.WithPollInterval(20*time.Second), holdfast.WithFairPatience(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	var leases sync.Map // by the name of the lock
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch what, name, _ := strings.Cut(in.Text(), " "); what {
		case "start":
			trace.Start()
			fmt.Println("done")
		case "stop":
			fmt.Println(strings.Join(trace.Stop(), " "))
		case "lock":
			lock := locks.Mutex(name)
			if name == "lingering" {
				lock = locks.Mutex(name, holdfast.WithLinger(time.Minute))
			}
			go func() {
				lease, err := lock.Lock(context.Background())
				trace.Stop() // what follows, such as the first renewal, is another journey
				if err != nil {
					log.Fatal(err)
				}
				leases.Store(name, lease)
				fmt.Println("done")
			}()
		case "unlock":
			lease, _ := leases.Load(name)
			go func() {
				err := lease.(*holdfast.Lease).Unlock(context.Background())
				trace.Stop()
				if err != nil {
					log.Fatal(err)
				}
				fmt.Println("done")
			}()
		default:
			log.Fatalf("not understood: %q", in.Text())
		}
	}
}

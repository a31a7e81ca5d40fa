package locktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const (
	// CounterRole is the role of a process that reads and writes a counter in Redis which
	// only a read-write lock protects.
	CounterRole = "locktest-counter"
	// LooperRole is the role of a process that takes one side of a read-write lock again
	// and again.
	LooperRole = "locktest-looper"
)

// roleManager is called with what every role begins with: address, password, lock name.
func roleManager(args []string) (*redis.Client, *holdfast.Manager, string) {
	client := redis.NewClient(&redis.Options{Addr: args[0], Password: args[1]})
	return client, must(holdfast.New(client, Unlogged, holdfast.WithLease(lease))), args[2]
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// counter is called with how often each of its goroutines takes the lock. It prints
// "done", the number of its writes and that of its reads.
func counter(args []string) {
	client, m, name := roleManager(args)
	key, rounds := name+":counter", must(strconv.Atoi(args[3]))
	l := m.RWMutex(name)
	bg := context.Background()
	number := func() int {
		n, err := client.Get(bg, key).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			panic(err)
		}
		return n
	}
	var writes, reads atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range rounds {
				if i == 0 {
					got := must(l.Lock(bg))
					n := number()
					if err := client.Set(bg, key, n+1, 0).Err(); err != nil {
						panic(err)
					}
					writes.Add(1)
					if err := got.Unlock(bg); err != nil {
						panic(err)
					}
					continue
				}
				got := must(l.RLock(bg))
				if a, b := number(), number(); a != b {
					panic(fmt.Sprintf("written while reading: %d, %d", a, b))
				}
				reads.Add(1)
				if err := got.Unlock(bg); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("done", writes.Load(), reads.Load())
}

// looper is called with the side and the number of goroutines. It prints "looping", and
// how often they got the lock when told to stop.
func looper(args []string) {
	_, m, name := roleManager(args)
	rw := m.RWMutex(name)
	l := holdfast.Locker(rw)
	if args[3] == "read" {
		l = rw.RLocker()
	}
	ctx, cancel := context.WithCancel(context.Background())
	var rounds atomic.Int64
	var wg, first sync.WaitGroup
	for range must(strconv.Atoi(args[4])) {
		first.Add(1)
		wg.Go(func() {
			got := must(l.Lock(ctx))
			first.Done()
			for {
				if err := got.Unlock(ctx); err != nil {
					panic(err)
				}
				rounds.Add(1)
				var err error
				if got, err = l.Lock(ctx); err != nil {
					return
				}
			}
		})
	}
	first.Wait()
	fmt.Println("looping")
	bufio.NewScanner(os.Stdin).Scan()
	cancel()
	wg.Wait()
	// What a caller asked for that has left is given back in the background.
	if err := m.Close(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("rounds", rounds.Load())
}

// Command stock-decrement lets several services take from one stock, with business code
// between reading and writing it that takes longer than the lease. One of them dies
// in the middle.
package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/example"
)

const (
	stock  = 15
	orders = 2 // per service
	lease  = time.Second
	work   = 1500 * time.Millisecond // of each order
)

func main() {
	example.Main(example.Scenario{
		Name:  "stock-decrement",
		Usage: "read stock, work, write stock - 1, in several services at once; the work is longer than the lease",
		Modes: map[string]string{
			"recipe": "guard the order with SET key 1 PX lease NX, and DEL",
			"atomic": "no lock: take one and check the stock in a single script, before the work",
		},
		Direct: direct,
		Roles:  map[string]func(context.Context, *example.Worker) error{"service": service},
	})
}

// guard runs fn while nobody else does.
type guard func(ctx context.Context, fn func(ctx context.Context) error) error

func service(ctx context.Context, w *example.Worker) error {
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))

	mutex := locks.Mutex(w.Key("guard"))
	alone := guard(func(ctx context.Context, fn func(context.Context) error) error {
		return holdfast.Do(ctx, mutex, func(ctx context.Context, _ *holdfast.Lease) error { return fn(ctx) })
	})
	if w.Mode == "recipe" {
		alone = setEX(w.Redis, w.Key("guard"))
	}
	for range orders {
		if w.Mode == "atomic" {
			err = orderAtomically(ctx, w)
		} else {
			err = alone(ctx, func(ctx context.Context) error { return order(ctx, w) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order needs the lock: between GET and SET nobody else may do the same.
func order(ctx context.Context, w *example.Worker) error {
	n, err := w.Redis.Get(ctx, w.Key("stock")).Int()
	if err != nil {
		return err
	}
	w.Say("reads %d", n)
	w.Here("working")
	if err := w.Think(ctx, work); err != nil {
		return err
	}
	if err := w.Redis.Set(ctx, w.Key("stock"), n-1, 0).Err(); err != nil {
		return err
	}
	w.Say("writes %d", n-1)
	return w.Redis.Incr(ctx, w.Key("done")).Err()
}

// take is all the exclusion that a counter needs.
var take = redis.NewScript(`
if tonumber(redis.call('get', KEYS[1])) <= 0 then
  return 0
end
redis.call('decr', KEYS[1])
return 1`)

// orderAtomically needs none. What was taken for work that then fails has to be put
// back, by whoever finds that out: that is the price.
func orderAtomically(ctx context.Context, w *example.Worker) error {
	w.Here("working")
	ok, err := take.Run(ctx, w.Redis, []string{w.Key("stock")}).Bool()
	if err != nil || !ok {
		return err
	}
	w.Say("takes one")
	if err := w.Think(ctx, work); err != nil {
		return err
	}
	return w.Redis.Incr(ctx, w.Key("done")).Err()
}

func direct(ctx context.Context, d *example.Director) error {
	d.Must(d.Redis.Set(ctx, d.Key("stock"), stock, 0).Err())
	d.Say("stock %d, lease %v, %v of work for each order", stock, lease, work)

	dying := d.StartUntil("working", "service", "service-1")
	dying.AwaitStop()
	services := []*example.Process{d.Start("service", "service-2"), d.Start("service", "service-3")}
	dying.Kill() // its order has changed nothing yet, and must not
	for _, p := range services {
		p.Wait()
	}

	done, err := d.Redis.Get(ctx, d.Key("done")).Int()
	d.Must(err)
	left, err := d.Redis.Get(ctx, d.Key("stock")).Int()
	d.Must(err)
	want := orders * len(services)
	d.Say("stock %d after %d orders", left, done)
	d.Check(done == want, "%d orders instead of %d", done, want)
	d.Check(left == stock-done, "%d orders took %d from the stock: updates are lost", done, stock-left)
	return nil
}

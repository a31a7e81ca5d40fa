// Command flash-sale sells 10 phones to 100 buyers in 4 shops, processes that share one
// lock. One shop dies in the middle of a sale.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/example"
)

const (
	phones = 10
	shops  = 4
	crowd  = 25 // buyers per shop
	paying = 20 * time.Millisecond
	lease  = time.Second
	// patience is for how long a buyer queues.
	patience = 6 * time.Second
)

func main() {
	example.Main(example.Scenario{
		Name:   "flash-sale",
		Usage:  "100 buyers, 10 phones, one lock, and a shop that dies in the middle of a sale",
		Modes:  map[string]string{"recipe": "guard the sale with SETNX and DEL"},
		Direct: direct,
		Roles:  map[string]func(context.Context, *example.Worker) error{"shop": shop},
	})
}

// guard runs fn while nobody else does.
type guard func(ctx context.Context, fn func(ctx context.Context) error) error

// shop lets its buyers in, all at once.
func shop(ctx context.Context, w *example.Worker) error {
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))

	mutex := locks.Mutex(w.Key("phones"))
	alone := guard(func(ctx context.Context, fn func(context.Context) error) error {
		return holdfast.Do(ctx, mutex, func(ctx context.Context, _ *holdfast.Lease) error { return fn(ctx) })
	})
	if w.Mode == "recipe" {
		alone = setnx(w.Redis, w.Key("phones"))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var buyers errgroup.Group
	for range crowd {
		buyers.Go(func() error {
			err := alone(ctx, func(ctx context.Context) error { return buy(ctx, w) })
			if errors.Is(err, context.DeadlineExceeded) {
				w.Say("a buyer goes home: nobody is served")
				return nil
			}
			return err
		})
	}
	return buyers.Wait()
}

// buy is the sale at its most naive: read the stock, take the money, write the stock.
func buy(ctx context.Context, w *example.Worker) error {
	left, err := w.Redis.Get(ctx, w.Key("stock")).Int()
	if err != nil {
		return err
	}
	if left == 0 {
		w.Say("sold out")
		return nil
	}
	phone := phones - left + 1
	w.Here(fmt.Sprintf("paying for phone %d", phone))
	if err := w.Think(ctx, paying); err != nil {
		return err
	}
	if err := w.Redis.Set(ctx, w.Key("stock"), left-1, 0).Err(); err != nil {
		return err
	}
	w.Say("sold phone %d", phone)
	return w.Redis.RPush(ctx, w.Key("sales"), phone).Err()
}

func direct(ctx context.Context, d *example.Director) error {
	d.Must(d.Redis.Set(ctx, d.Key("stock"), phones, 0).Err())
	d.Say("%d phones, one lock with a lease of %v", phones, lease)

	first := d.StartUntil("paying for phone 4", "shop", "shop-1")
	first.AwaitStop()
	var others []*example.Process
	for i := 2; i <= shops; i++ {
		others = append(others, d.Start("shop", fmt.Sprintf("shop-%d", i)))
	}
	first.Kill() // it holds the lock, and has taken the money
	for _, p := range others {
		p.Wait()
	}

	left, err := d.Redis.Get(ctx, d.Key("stock")).Int()
	d.Must(err)
	sales, err := d.Redis.LRange(ctx, d.Key("sales"), 0, -1).Result()
	d.Must(err)
	d.Say("sold %d, left %d", len(sales), left)
	d.Check(left == 0, "%d phones left, and nobody could buy them", left)
	for i, phone := range sales {
		d.Check(phone == fmt.Sprint(i+1), "sale %d is of phone %s", i+1, phone)
	}
	d.Check(len(sales)+left == phones, "%d sold and %d left of %d", len(sales), left, phones)
	return nil
}

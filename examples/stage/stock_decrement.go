package main

import (
	"context"
	"fmt"
)

const (
	stockLeft   = 15
	stockOrders = 2 // per service
)

// stockDecrement plays the orders of 3 services, each a process. One service is killed in its first order.
var stockDecrement = scenario{
	usage: "read stock, work, write stock - 1, in several services at once; the work is longer than the lease",
	modes: map[string]string{
		"recipe": "guard the order with SET key 1 PX lease NX, and DEL",
		"atomic": "no lock: take one and check the stock in a single script, before the work",
	},
	direct: directStockDecrement,
}

func directStockDecrement(ctx context.Context, d *Director) error {
	write := fmt.Sprintf("set %s %d", d.Key("stock"), stockLeft-1)
	if d.Mode == "atomic" {
		write = "1 " + d.Key("stock") // the script and its one key
	}
	dying := d.StartUntil(write, "service-1")
	dying.AwaitRequest()
	services := []*Process{d.Start("service-2"), d.Start("service-3")}
	dying.Kill("before it has written") // its order has changed nothing yet, and must not
	for _, p := range services {
		p.Wait()
	}

	done, err := d.Redis.Get(ctx, d.Key("done")).Int()
	d.Must(err)
	left, err := d.Redis.Get(ctx, d.Key("stock")).Int()
	d.Must(err)
	want := stockOrders * len(services)
	d.Say("stock %d after %d orders", left, done)
	d.Check(done == want, "%d orders instead of %d", done, want)
	d.Check(left == stockLeft-done, "%d orders took %d from the stock: updates are lost", done, stockLeft-left)
	return nil
}

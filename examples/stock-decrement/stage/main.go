// Command stage plays the orders of 3 services, each a process. One service is killed in its first order.
package main

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/examples/internal/stage"
)

const (
	stock  = 15
	orders = 2 // per service
)

func main() {
	stage.Main(stage.Scenario{
		Name:    "stock-decrement",
		Usage:   "read stock, work, write stock - 1, in several services at once; the work is longer than the lease",
		Program: "examples/stock-decrement",
		Modes: map[string]stage.Mode{
			"recipe": {Usage: "guard the order with SET key 1 PX lease NX, and DEL", Program: "examples/stock-decrement/recipe"},
			"atomic": {Usage: "no lock: take one and check the stock in a single script, before the work", Program: "examples/stock-decrement/atomic"},
		},
		Direct: direct,
	})
}

func direct(ctx context.Context, d *stage.Director) error {
	write := fmt.Sprintf("set %s %d", d.Key("stock"), stock-1)
	if d.Mode == "atomic" {
		write = "1 " + d.Key("stock") // the script and its one key
	}
	dying := d.StartUntil(write, "service-1")
	dying.AwaitRequest()
	services := []*stage.Process{d.Start("service-2"), d.Start("service-3")}
	dying.Kill("before it has written") // its order has changed nothing yet, and must not
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

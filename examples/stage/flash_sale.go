package main

import (
	"context"
	"fmt"
)

const (
	onSale = 10
	shops  = 4
	crowd  = 25 // buyers per shop
	fourth = 4  // the phone in whose sale the first shop dies
)

// flashSale plays the flash sale with 4 shops, each a process. One shop is killed in the middle of a sale.
var flashSale = scenario{
	usage: "100 buyers, 10 phones, one lock, and a shop that dies in the middle of a sale",
	modes: map[string]string{
		"recipe": "guard the sale with SETNX and DEL",
	},
	direct: directFlashSale,
}

func directFlashSale(ctx context.Context, d *Director) error {
	first := d.StartUntil(fmt.Sprintf("set %s %d", d.Key("stock"), onSale-fourth), "shop-1")
	first.AwaitRequest()
	var others []*Process
	for i := 2; i <= shops; i++ {
		others = append(others, d.Start(fmt.Sprintf("shop-%d", i)))
	}
	first.Kill(fmt.Sprintf("in the sale of phone %d", fourth)) // it holds the lock, and has taken the money
	for _, p := range others {
		p.Wait()
	}

	left, err := d.Redis.Get(ctx, d.Key("stock")).Int()
	d.Must(err)
	sales, err := d.Redis.LRange(ctx, d.Key("sales"), 0, -1).Result()
	d.Must(err)
	d.Say("sold %d, left %d", len(sales), left)
	d.Check(left == 0, "%d phones left, and no buyer could get them", left)
	for i, phone := range sales {
		d.Check(phone == fmt.Sprint(i+1), "sale %d is of phone %s", i+1, phone)
	}
	d.Check(len(sales)+left == onSale, "%d sold and %d left of %d", len(sales), left, onSale)
	return nil
}

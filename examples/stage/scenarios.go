package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
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

func directFlashSale(ctx context.Context, d *Director) {
	first := d.StartUntil(fmt.Sprintf("set %s %d", d.Key("stock"), onSale-fourth), "shop-1")
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
}

// fencedWriter pauses a writer between its last look at the lock and its write, for longer than the lease, while others write.
var fencedWriter = scenario{
	usage: "a paused holder wakes up after its lease and writes; the store rejects the old token",
	modes: map[string]string{
		"recipe": "guard the document with SET key random PX lease NX and compare-and-delete; no tokens",
	},
	direct: directFencedWriter,
}

func directFencedWriter(ctx context.Context, d *Director) {
	write := "1 " + d.Key("store") // the script and its one key
	if d.Mode == "recipe" {
		write = "hset " + d.Key("store")
	}
	paused := d.StartUntil(write, "writer-1", "one")
	paused.Pause("just before it writes")

	d.Start("writer-2", "two").Wait() // as soon as the lease of writer-1 has run out

	dying := d.StartUntil(write, "writer-3", "three")
	dying.Kill("just before it writes")
	d.Start("writer-4", "four").Wait()

	paused.LetPass()
	paused.Resume()
	paused.Wait()

	text, err := d.Redis.HGet(ctx, d.Key("store"), "text").Result()
	d.Must(err)
	d.Say("the document:%s", text)
	d.Check(strings.Fields(text)[0] == "two", "writer-1 has overwritten what came after it")
	d.Check(text == " two four", "the document is %q", text)
}

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

func directStockDecrement(ctx context.Context, d *Director) {
	write := fmt.Sprintf("set %s %d", d.Key("stock"), stockLeft-1)
	if d.Mode == "atomic" {
		write = "1 " + d.Key("stock") // the script and its one key
	}
	dying := d.StartUntil(write, "service-1")
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
}

const (
	processes     = 3
	readersEach   = 5 // per process
	migrationTime = 6 * time.Second
)

// readersMigrator plays 15 readers in 3 processes, one of which is killed while it reads, and a migrator in a process of its own.
var readersMigrator = scenario{
	usage: "many readers and one migrator on a read-write lock, and a reader that dies",
	modes: map[string]string{
		"recipe": "guard the schema with a counter of readers and a flag for the writer",
	},
	direct: directReadersMigrator,
}

func directReadersMigrator(_ context.Context, d *Director) {
	d.Say("%d readers in %d processes", processes*readersEach, processes)
	dying := d.StartUntil("get "+d.Key("data"), "reader-1")
	var all []*Process
	for i := 2; i <= processes; i++ {
		p := d.Start(fmt.Sprintf("reader-%d", i))
		p.Await("sees schema 1")
		all = append(all, p)
	}
	dying.Kill("while it reads") // it holds the read side

	if _, migrated := d.Start("migrator", "-migrate").AwaitFor("has migrated", migrationTime); migrated {
		for _, p := range all {
			p.Await("sees schema 2")
		}
	} else {
		d.Check(false, "%v later the migrator still waits for a reader that is dead", migrationTime)
	}
	for _, p := range all {
		p.Stop()
		torn := p.Await("torn: ")
		p.Wait()
		d.Check(strings.HasPrefix(torn, "0 "), "a reader saw half a migration in %s", torn)
	}
}

const ticks = 6

// leader pauses the leader of three replicas just before it runs a job, for longer than its lease, and kills the next one when it has
// won the election and told no process of it.
var leader = scenario{
	usage: "one replica leads and runs the jobs of a clock; leaders are paused and killed at the worst moment",
	modes: map[string]string{
		"recipe": "elect with SET NX PX, a goroutine that renews the key, and a flag",
	},
	direct: directLeader,
}

func directLeader(ctx context.Context, d *Director) {
	holdfast := d.Mode == ""
	third := "hincrby " + d.Key("ticks") + " 3"
	var watcher *Process
	if holdfast {
		third = "1 " + d.Key("ticks") + " 3" // the script and its one key
		watcher = d.Start("watcher", "-watch")
		watcher.Await("sees no leader")
	}
	paused := d.StartUntil(third, "replica-1", "-name", "replica-1")
	if holdfast {
		watcher.Await("sees replica-1 lead")
	}
	paused.Pause("just before it runs tick 3")

	if holdfast {
		dying := d.StartUntil("2 "+d.Key("seat")+" holdfast_leader:", "replica-2", "-name", "replica-2")
		dying.Kill("when it has won, before it has said so")
	}
	next := d.Start("replica-3", "-name", "replica-3")
	next.Await("has run tick 4")

	paused.LetPass()
	paused.Resume()
	if holdfast {
		paused.Await("steps down")
	}
	next.Wait()
	paused.Wait() // it leads once more, and finds nothing to do
	if holdfast {
		watcher.Stop()
		watcher.Wait()
	}

	ran, err := d.Redis.HGetAll(ctx, d.Key("ticks")).Result()
	d.Must(err)
	for tick := 1; tick <= ticks; tick++ {
		times := ran[strconv.Itoa(tick)]
		d.Check(times == "1", "tick %d was run %s times", tick, times)
	}
}

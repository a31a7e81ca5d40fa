// Command stage plays two users who tap on the buttons of 3 gateways, each a process. One gateway is killed while it gives a gift.
package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/stage"
)

const tapping = 50 * time.Millisecond

func main() {
	stage.Main(stage.Scenario{
		Name:    "gateway",
		Usage:   "sign in and get a gift: while a user's request is processed, further ones are refused at once",
		Program: "examples/gateway",
		Modes: map[string]stage.Mode{
			"recipe": {Usage: "guard the user with SET key 1 PX lease NX, and DEL", Program: "examples/gateway/recipe"},
		},
		Direct: direct,
	})
}

func direct(ctx context.Context, d *stage.Director) error {
	g1 := d.Start("gateway-1", "-listen", "127.0.0.1:0")
	g2 := d.Start("gateway-2", "-listen", "127.0.0.1:0")
	dying := d.StartUntil("rpush "+d.Key("gifts:grace"), "gateway-3", "-listen", "127.0.0.1:0")
	a1, a2, a3 := g1.Await("listens on "), g2.Await("listens on "), dying.Await("listens on ")

	d.Say("ada taps every %v, on all gateways, until she is welcome", tapping)
	adas, err := tapUntilServed(ctx, "ada", a1, a2, a3)
	d.Must(err)

	d.Say("grace signs in on gateway-3, which dies in the middle of it")
	gone := make(chan struct{})
	go func() {
		tapUntilDead(ctx, "grace", a3)
		close(gone)
	}()
	dying.AwaitRequest()
	dying.Kill("before it has given grace a gift")
	<-gone
	began := time.Now()
	graces, err := tapUntilServed(ctx, "grace", a1, a2)
	d.Must(err)
	d.Say("grace was let in and served %.1fs after the crash", time.Since(began).Seconds())

	for user, refused := range map[string]int{"ada": adas, "grace": graces} {
		gifts, err := d.Redis.LLen(ctx, d.Key("gifts:"+user)).Result()
		d.Must(err)
		d.Say("%s: %d gifts, %d requests refused", user, gifts, refused)
		d.Check(gifts == 1, "%s got %d gifts", user, gifts)
		d.Check(refused > 0, "%s was never refused", user)
	}
	return nil
}

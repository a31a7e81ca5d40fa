package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const tapping = 50 * time.Millisecond

// gateway plays two users who tap on the buttons of 3 gateways, each a process. One gateway is killed while it gives a gift.
var gateway = scenario{
	usage: "sign in and get a gift: while a user's request is processed, further ones are refused at once",
	modes: map[string]string{
		"recipe": "guard the user with SET key 1 PX lease NX, and DEL",
	},
	direct: directGateway,
}

func directGateway(ctx context.Context, d *Director) {
	g1 := d.Start("gateway-1", "-listen", "127.0.0.1:0")
	g2 := d.Start("gateway-2", "-listen", "127.0.0.1:0")
	dying := d.StartHeld("rpush "+d.Key("gifts:grace"), "gateway-3", "-listen", "127.0.0.1:0")
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
}

// tap sends one request and returns the status of the answer.
func tap(ctx context.Context, user, gateway string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+gateway+"/sign-in/"+user, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch res.StatusCode {
	case http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable: // the last two: not now
		return res.StatusCode, err
	}
	return res.StatusCode, errors.Join(err, fmt.Errorf("%s: %s", res.Status, body))
}

// tapUntilDead taps until the gateway does not answer any more.
func tapUntilDead(ctx context.Context, user, gateway string) {
	for {
		if _, err := tap(ctx, user, gateway); err != nil {
			return
		}
	}
}

// tapUntilServed is a user without patience, who does not wait for one answer before the next request, on any of the gateways,
// until one is served. It returns when all requests are answered, and how many were refused.
func tapUntilServed(ctx context.Context, user string, gateways ...string) (refused int, err error) {
	var (
		wg sync.WaitGroup
		mu sync.Mutex // guards refused and err
	)
	waits, served := context.WithCancel(ctx)
	defer served()
	again := time.NewTicker(tapping)
	defer again.Stop()
	for n := 0; ; n++ {
		wg.Go(func() {
			status, tapErr := tap(ctx, user, gateways[n%len(gateways)])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case tapErr != nil:
				err = tapErr
				served()
			case status == http.StatusOK:
				served()
			default:
				refused++
			}
		})
		select {
		case <-again.C:
			continue
		case <-waits.Done():
		}
		wg.Wait()
		return refused, err
	}
}

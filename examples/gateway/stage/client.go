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
		wg     sync.WaitGroup
		mu     sync.Mutex // guards refused and err
		served = make(chan struct{})
		once   sync.Once
	)
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
				once.Do(func() { close(served) })
			case status == http.StatusOK:
				once.Do(func() { close(served) })
			default:
				refused++
			}
		})
		select {
		case <-again.C:
			continue
		case <-served:
		case <-ctx.Done():
		}
		wg.Wait()
		return refused, err
	}
}

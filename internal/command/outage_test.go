package command

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// Requests that fail and requests that are answered come from several connections. What is told of them is in turns: an
// outage ends after it has begun, and before the next begins.
func TestOutage_IsToldInOrder(t *testing.T) {
	var o outage
	var told []string
	note := func(what string) {
		if o.mu.TryLock() { // then another one could tell what came later before this is told
			o.mu.Unlock()
			t.Errorf("%s without the lock", what)
		}
		told = append(told, what)
	}
	o.began = func(error) { note("began") }
	o.ended = func(time.Duration) { note("ended") }
	cause := errors.New("refused")
	for round := range 200 {
		o.failed(time.Now(), cause)
		o.mu.Lock()
		o.since = o.since.Add(-outageAfter) // it was long ago
		o.mu.Unlock()
		var wg sync.WaitGroup
		wg.Go(func() { o.failed(time.Now().Add(time.Hour), cause) })
		if round%2 == 0 {
			wg.Wait()
		}
		wg.Go(o.answered)
		wg.Wait()
		o.answered()
	}
	if len(told) < 200 || len(told)%2 != 0 {
		t.Errorf("%d lines", len(told))
	}
	for pair := range slices.Chunk(told, 2) {
		if !slices.Equal(pair, []string{"began", "ended"}) {
			t.Fatalf("%v", pair)
		}
	}
}

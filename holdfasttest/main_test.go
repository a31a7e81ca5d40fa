package holdfasttest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBothWorlds runs f in real time and in a bubble, whose end shows that no goroutine is left.
func inBothWorlds(t *testing.T, f func(t *testing.T)) {
	t.Run("real time", func(t *testing.T) {
		t.Parallel()
		f(t)
	})
	t.Run("bubble", func(t *testing.T) { inBubble(t, f) })
}

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// recorder is a TB that keeps what it is told.
type recorder struct {
	mu       sync.Mutex
	failure  string   // guarded by mu
	cleanups []func() // guarded by mu
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.mu.Lock()
	r.failure = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}

// failure runs f as a test of its own and returns what it failed with; "": it did not.
func failure(f func(tb *recorder)) string {
	r := &recorder{}
	var wg sync.WaitGroup
	wg.Go(func() { f(r) })
	wg.Wait()
	for _, clean := range r.cleanups {
		clean()
	}
	return r.failure
}

func wantFailure(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("failed with %q, want %q in it", got, p)
		}
	}
}

package redistest

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Eventually waits for a state that has no event of its own, and fails the test if it is not
// there within limit.
func Eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check reports err if it is not nil, and the test goes on.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Begin makes a call in the background, and returns a channel that gets its error.
func Begin(call func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	return ended
}

// Want fails unless got is want. says is what is wrong then, with a verb for got, and perhaps one for want.
func Want[T comparable](t testing.TB, got, want T, says string) {
	t.Helper()
	if got != want {
		report(t, says, got, want)
	}
}

// WantMost fails if got is more than most.
func WantMost[T cmp.Ordered](t testing.TB, got, most T, says string) {
	t.Helper()
	if got > most {
		report(t, says, got, most)
	}
}

// report fills a text in, in which the verbs for its values may be left out.
func report(t testing.TB, says string, values ...any) {
	t.Helper()
	verbs := strings.Count(strings.ReplaceAll(says, "%%", ""), "%")
	if verbs == 0 {
		says, verbs = says+": %v", 1
	}
	t.Errorf(says, values[:verbs]...)
}

// Next receives what comes within Patience, or ends the test; late says what has not come.
func Next[T any](t testing.TB, c <-chan T, late string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(Patience):
		t.Fatal(late)
	}
	return v
}

// leakPatience bounds the wait for goroutines that end by themselves. go-redis dials a dead server once a second, and sees
// only then that its client is closed.
const leakPatience = 10 * time.Second

// Leaked returns an error that lists the goroutines that are left behind. It waits for those that are about to end.
func Leaked(options ...goleak.Option) error {
	deadline := time.Now().Add(leakPatience)
	for {
		// Find looks for half a second.
		if err := goleak.Find(options...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

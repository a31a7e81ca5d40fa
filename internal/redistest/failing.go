package redistest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// fakeTB records failures instead of passing them on, for tests of failing.
type fakeTB struct {
	testing.TB
	failed   bool
	messages []string
	cleanups []func()
}

func (f *fakeTB) Helper()                   {}
func (f *fakeTB) Failed() bool              { return f.failed }
func (f *fakeTB) Cleanup(fn func())         { f.cleanups = append(f.cleanups, fn) }
func (f *fakeTB) Logf(s string, a ...any)   { f.messages = append(f.messages, fmt.Sprintf(s, a...)) }
func (f *fakeTB) Errorf(s string, a ...any) { f.failed = true; f.Logf(s, a...) }
func (f *fakeTB) Fatalf(s string, a ...any) { f.Errorf(s, a...); runtime.Goexit() }

// runFake runs test and its cleanups with a fakeTB, as the testing package
// would, and returns whether it failed and what it logged.
func runFake(t *testing.T, test func(tb testing.TB)) (failed bool, log string) {
	t.Helper()
	f := &fakeTB{TB: t}
	run := func(fn func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			fn()
		}()
		<-done
	}
	run(func() { test(f) })
	for len(f.cleanups) > 0 {
		last := f.cleanups[len(f.cleanups)-1]
		f.cleanups = f.cleanups[:len(f.cleanups)-1]
		run(last)
	}
	return f.failed, strings.Join(f.messages, "\n")
}

// WantFailure requires that test fails with a message that contains substr.
func WantFailure(t *testing.T, substr string, test func(tb testing.TB)) {
	t.Helper()
	failed, log := runFake(t, test)
	if !failed || !strings.Contains(log, substr) {
		t.Errorf("failed = %t with %q, want a failure with %q", failed, log, substr)
	}
}

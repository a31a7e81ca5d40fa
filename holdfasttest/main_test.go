package holdfasttest_test

import (
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

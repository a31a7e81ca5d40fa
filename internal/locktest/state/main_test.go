// Package state has tests of what is in Redis: which keys there are and what they hold, keys in states that no script makes, and the calls that
// look at it or take it away. Some of it was written by other versions of the library, or by Redisson.
package state

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }

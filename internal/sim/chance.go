package sim

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/retry"
)

// The pauses between repeated requests depend on the moment at which the first one is made: worlds run side by side, and pauses do not know
// whose they are.
func init() {
	retry.Seed = func() uint64 { return mix(uint64(time.Now().UnixNano())) }
}

package engine

import (
	"sync"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// tokenMarks remembers the highest fencing token seen of recently used locks. If Redis
// loses a counter (FLUSHALL, a restart without persistence), the next grant in this
// process goes on above the mark instead of repeating tokens. Other processes know
// other marks: it narrows the damage of lost data and does not undo it.
//
// It keeps two generations, so that memory stays bounded however many names there
// are: when the young one is full, the old one is dropped.
type tokenMarks struct {
	mu         sync.Mutex
	young, old map[string]uint64
}

// tokenGeneration is how many names a generation holds.
const tokenGeneration = 1024

// TokenSeen returns the mark of a lock, 0 if there is none.
func (t *tokenMarks) TokenSeen(keys *wire.Keys) uint64 { return t.seen(keys.Lock.(string)) }

func (t *tokenMarks) seen(name string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.young[name], t.old[name])
}

// saw moves the mark of name up to token.
func (t *tokenMarks) saw(name string, token uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young == nil || len(t.young) >= tokenGeneration {
		t.young, t.old = make(map[string]uint64), t.young
	}
	t.young[name] = max(token, t.young[name], t.old[name])
}

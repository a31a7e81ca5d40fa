package holdfast

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Identity is what a process says of itself, with [WithIdentity].
type Identity struct {
	App     string // as WithIdentity was given it
	Host    string
	PID     int
	Started time.Time // when the program began
	Version string    // of the program, from its build information; empty: not known
	Debug   string    // where its page of package debug is, as WithDebugPage was given it; empty: it has not said
}

// identities bounds the processes that one Inspect asks about.
const identities = 64

// identify adds to holders what their processes say of themselves. What Redis does not answer is left out.
func (m *Manager) identify(ctx context.Context, name string, holders []Holder) {
	of := make(map[string]*Identity) // by key
	for _, h := range holders {
		if key := wire.ProcessKey(h.Owner); key != "" && len(of) < identities {
			of[key] = nil
		}
	}
	var mu sync.Mutex // guards of
	var asking errgroup.Group
	for _, key := range slices.Collect(maps.Keys(of)) {
		asking.Go(func() error {
			value, err := m.engine.Ask(ctx, name, engine.Unrepeatable, protocol.Introduced, protocol.Introduced.Args(1, key))
			if err == nil {
				mu.Lock()
				of[key] = parseIdentity(value)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = asking.Wait()
	for i := range holders {
		holders[i].Identity = of[wire.ProcessKey(holders[i].Owner)]
	}
}

// parseIdentity reads the reply of introduced.lua; nil if it is none of a process.
func parseIdentity(value any) *Identity {
	list, _ := value.([]any)
	said := make(map[string]string)
	for i := 1; i+1 < len(list); i += 2 {
		field, _ := list[i].(string)
		said[field], _ = list[i+1].(string)
	}
	if said["app"] == "" {
		return nil
	}
	id := &Identity{App: said["app"], Host: said["host"], Version: said["version"], Debug: said["debug"]}
	id.PID, _ = strconv.Atoi(said["pid"])
	id.Started, _ = time.Parse(time.RFC3339, said["started"])
	return id
}

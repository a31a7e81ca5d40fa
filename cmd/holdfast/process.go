package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Process is what a process says of itself in its key. It is exported for its JSON.
type Process struct {
	App     string `json:"app" redis:"app"`
	Host    string `json:"host" redis:"host"`
	PID     int    `json:"pid" redis:"pid"`
	Started string `json:"started" redis:"started"`
	Version string `json:"version" redis:"version"`
	Debug   string `json:"debug,omitempty" redis:"debug"` // the address of its page
	Waits   string `json:"-" redis:"waits"`               // for which locks its callers wait: see wire.FindWaits
}

// String is app@host/pid, for a terminal.
func (p *Process) String() string {
	return printable(fmt.Sprintf("%s@%s/%d", p.App, p.Host, p.PID))
}

// details is what String leaves out.
func (p *Process) details() string {
	text := "started " + printable(p.Started)
	if p.Version != "" {
		text += ", version " + printable(p.Version)
	}
	if p.Debug != "" {
		text += ", page " + printable(p.Debug)
	}
	return text
}

// processesOf returns those of the owners' processes that say what they are, by the owners' ids. The user may lack the
// right to look: then there are none.
func processesOf(ctx context.Context, client redis.UniversalClient, owners []string) map[string]*Process {
	answers := make(map[string]*redis.MapStringStringCmd) // by key
	pipe := client.Pipeline()
	for _, owner := range owners {
		if key := wire.ProcessKey(owner); key != "" && answers[key] == nil {
			answers[key] = pipe.HGetAll(ctx, key)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	_, _ = pipe.Exec(ctx) // each answer has its error
	found := make(map[string]*Process)
	for _, owner := range owners {
		p := new(Process)
		if answer := answers[wire.ProcessKey(owner)]; answer != nil && len(answer.Val()) > 0 && answer.Scan(p) == nil {
			found[owner] = p
		}
	}
	return found
}

// identify adds to each look which processes hold the lock, and how many of their callers wait for it.
func identify(ctx context.Context, client redis.UniversalClient, prefix string, looks []look) {
	var owners []string
	for _, l := range looks {
		for _, h := range l.Holders {
			owners = append(owners, h.Owner)
		}
	}
	found := processesOf(ctx, client, owners)
	for i := range looks {
		l := &looks[i]
		counted := make(map[string]bool) // processes, by their keys: those in the queue are among Waiting
		for _, id := range l.queued {
			counted[wire.ProcessKey(id)] = true
		}
		for i := range l.Holders {
			h := &l.Holders[i]
			h.Process = found[h.Owner]
			h.Callers = h.Process.waits(prefix + l.Name).Callers
			if key := wire.ProcessKey(h.Owner); !counted[key] {
				counted[key] = true
				l.Inside += h.Callers
			}
		}
	}
}

// waits is how many of its callers wait for a lock, by its own account.
func (p *Process) waits(mapped string) wire.Waits {
	if p == nil {
		return wire.Waits{}
	}
	return wire.FindWaits(p.Waits, mapped)
}

// holdersAt is holdersOf, with the process of the first holder if that says what it is.
func holdersAt(ctx context.Context, client redis.UniversalClient, info holdfast.Info) string {
	text := holdersOf(info)
	if len(info.Holders) == 0 {
		return text
	}
	owner := info.Holders[0].Owner
	if p := processesOf(ctx, client, []string{owner})[owner]; p != nil {
		text = p.String() + ", " + text
	}
	return text
}

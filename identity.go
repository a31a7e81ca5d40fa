package holdfast

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// WithIdentity has the Manager write to Redis which process it belongs to, as a part of app. The
// commands holdfast ls, inspect, unlock and run, and [Holder.Identity] of [Manager.Inspect], then show
// more of a holder than its owner id: see [Identity]. The default is to write nothing.
//
// There is one key per Manager, holdfast_process: and the id that its owner ids begin with, and none per
// lock. It is written with the first lock and every 20 seconds from then on, with a TTL of a minute, and
// Close removes it. While callers have waited for a second or more, the key also says for which locks, how
// many callers of the process wait for each, and since when: [Holder.Callers]. The process looks for that
// every five seconds, and writes the key if it has changed. Name mappers do not change the key. If Redis refuses the key, the log says so once, and
// the locks work without it: see docs/SETUP.md for the right that it needs.
//
// app must have 1 to 100 bytes. [WithDebugPage] adds where the process's page is.
func WithIdentity(app string) Option {
	return option(func(c *config) {
		if app == "" || len(app) > maxAppLen {
			fail(&c.err, "WithIdentity", app, "must have 1 to 100 bytes")
		}
		c.identity = app
	})
}

// maxAppLen bounds what WithIdentity takes.
const maxAppLen = 100

// WithValue puts a text of at most 128 bytes of UTF-8 into the lock, for people and programs that look at it: [Holder.Value], holdfast ls
// and inspect, and the page. It lives as long as what the process has in Redis, of which it is a part, and costs no command and no key. It
// changes nothing about which owners exclude each other.
//
// Callers with different values do not pass a lock on to each other inside the process: they go through Redis. A ticket of [Lease.Detach]
// has no value; [Manager.Attach] takes one. A [Semaphore] refuses the option, because a permit has no room for it: it does not count
// if it was passed to [New]. Everyone who can look at the lock reads the value: it is not for secrets. To name a caller inside its process, use
// [WithLabel], and to find the process of an owner, [WithIdentity]. The default is "", none.
func WithValue(v string) LockOption {
	return lockOption(func(c *lockConfig) {
		if len(v) > maxValue || !utf8.ValidString(v) {
			fail(&c.err, "WithValue", v, "must be valid UTF-8 of at most 128 bytes")
		}
		c.terms.Value = wire.EncodeValue(v)
	})
}

const maxValue = 128

// WithDebugPage adds to [WithIdentity] where the page of package debug of this process is:
// [Identity].Debug. People who find the process as the holder of a lock can then follow the address. The
// page says since when the process holds the lock, and for which caller.
//
// page is an http or https URL of at most 500 bytes, such as "http://web-3:6060/debug/holdfast/". It must
// be valid for those people, and not only on this host. Each client that may read the key sees it, so it
// must not have a user or a password. WithDebugPage needs [WithIdentity].
func WithDebugPage(page string) Option {
	return option(func(c *config) {
		u, err := url.Parse(page)
		if err != nil || len(page) > maxPageLen || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
			// The value is left out: it may have a password.
			fail(&c.err, "WithDebugPage", nil, "WithDebugPage: page must be an http or https URL of at most 500 bytes, without user and password")
		}
		c.page = page
	})
}

// maxPageLen bounds what WithDebugPage takes.
const maxPageLen = 500

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

// identify adds to info what the processes of its owner ids say. What Redis does not answer is left out.
func (m *Manager) identify(ctx context.Context, name string, info *Info) {
	mapped, err := m.keyOf(name)
	if err != nil {
		return
	}
	of := make(map[string]said) // by key
	ask := func(owner string) {
		if key := wire.ProcessKey(owner); key != "" && len(of) < identities {
			of[key] = said{}
		}
	}
	for _, h := range info.Holders {
		ask(h.Owner)
	}
	for _, w := range info.Queue {
		ask(w.Owner)
	}
	var mu sync.Mutex // guards of
	var asking errgroup.Group
	for _, key := range slices.Collect(maps.Keys(of)) {
		asking.Go(func() error {
			p := m.saidAt(ctx, name, mapped, key)
			mu.Lock()
			of[key] = p
			mu.Unlock()
			return nil
		})
	}
	_ = asking.Wait()
	for i := range info.Holders {
		h := &info.Holders[i]
		p := of[wire.ProcessKey(h.Owner)]
		h.Identity, h.Callers, h.CallersSince = p.identity, p.callers, p.since
	}
	for i := range info.Queue {
		w := &info.Queue[i]
		p := of[wire.ProcessKey(w.Owner)]
		w.Identity, w.Callers, w.CallersSince = p.identity, p.callers, p.since
	}
}

// saidAt returns what the process of a key says; nothing if Redis does not answer.
func (m *Manager) saidAt(ctx context.Context, name, mapped, key string) said {
	value, err := m.engine.Ask(ctx, name, engine.Unrepeatable, protocol.Introduced, protocol.Introduced.Args(1, key))
	if err != nil {
		return said{}
	}
	return parseSaid(value, mapped)
}

// said is what a process says of itself and of its callers that wait for a lock.
type said struct {
	identity *Identity
	callers  int
	since    time.Time // of the oldest
}

// parseSaid reads the reply of introduced.lua; it is empty if the reply is none of a process.
func parseSaid(value any, mapped string) said {
	list, _ := value.([]any)
	fields := make(map[string]string)
	for i := 1; i+1 < len(list); i += 2 {
		field, _ := list[i].(string)
		fields[field], _ = list[i+1].(string)
	}
	if fields["app"] == "" {
		return said{}
	}
	id := &Identity{App: fields["app"], Host: fields["host"], Version: fields["version"], Debug: fields["debug"]}
	id.PID, _ = strconv.Atoi(fields["pid"])
	id.Started, _ = time.Parse(time.RFC3339, fields["started"])
	waits := wire.FindWaits(fields[wire.WaitsField], mapped)
	return said{id, waits.Callers, waits.Since}
}

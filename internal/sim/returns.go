package sim

import (
	"slices"
	"strings"
)

// An owner id belongs to one hold, and is never used again: what is given back, or found to be gone, does not come back.

// beforeLocked is called before a script runs on s.
func (j *judge) beforeLocked(c call, touched []*unit) {
	for _, u := range touched {
		u.lapseLocked()
		switch {
		case strings.HasPrefix(c.script, "renew"):
			u.dirty = true
			u.loadLocked()
		case c.script == "join":
			for _, tail := range c.args[2:] {
				u.asks(c.args[1]+tail, c.args[0])
			}
		case strings.HasSuffix(c.script, "_acquire") && len(c.args) > 2:
			u.asks(c.args[0], c.args[2])
		}
	}
}

// asks is called when an id asks for the lock, with or without a place; wait is as protocol.Stand makes it.
func (u *unit) asks(id, wait string) {
	switch {
	case strings.HasPrefix(wait, "same "):
		u.line.returns(id)
	case strings.HasPrefix(wait, "new "):
		u.arrives(id)
	}
}

// afterLocked is called when it has run.
func (j *judge) afterLocked(c call, touched []*unit) {
	for _, u := range touched {
		switch {
		case strings.HasPrefix(c.script, "renew"):
			before := u.state.holders
			u.loadLocked()
			for _, h := range u.state.holders {
				if !slices.ContainsFunc(before, func(o holder) bool { return o.id == h.id }) {
					j.failLocked("resurrection", "%v: %s makes %s its owner", u, c.script, h.id)
				}
			}
		case c.script == "force_release":
			j.freesLocked(u, c)
		case strings.HasSuffix(c.script, "_release"):
			u.givenBackLocked(c.args[0])
		case c.script == "leave":
			for _, tail := range c.args[5:] {
				u.givenBackLocked(c.args[4] + tail)
			}
		}
	}
}

// givenBackLocked says that a script has given an owner id back, if the server has not refused that.
func (u *unit) givenBackLocked(id string) {
	u.loadLocked()
	if u.s.refusesLocked() {
		return
	}
	if !slices.ContainsFunc(u.state.holders, func(h holder) bool { return h.id == id }) {
		u.gone[id] = u.w.now()
		delete(u.line.came, id)
		delete(u.line.first, id)
		delete(u.line.lapsed, id)
	}
}

// returnedFromLocked finds owners that hold a lock again after it was given back.
func (j *judge) returnedFromLocked(u *unit) {
	for _, h := range u.state.holders {
		if at, ok := u.gone[h.id]; ok && !j.closed {
			j.failLocked("resurrection", "%v: %s has it again, which was given back at %v", u, h.id, at)
		}
	}
}

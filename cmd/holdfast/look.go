package main

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/visible"
)

// Exit statuses of the commands that look, beyond exitFailed and exitUsage.
const (
	exitNo          = 3 // the answer is no
	exitRefused     = 4 // nothing was done
	exitUnreachable = 5 // Redis cannot be reached
)

// coded is an error with the exit status that says what it means.
type coded struct {
	error
	status int
}

func (c *coded) ExitCode() int { return c.status }
func (c *coded) Unwrap() error { return c.error }

// failure gives err the exit status that it has by its kind, if it has none yet.
func failure(err error) error {
	usage, away, done := (*badUsage)(nil), (*unavailable)(nil), cli.ExitCoder(nil)
	switch {
	case err == nil, errors.As(err, &done):
		return err
	case errors.As(err, &usage), errors.Is(err, holdfast.ErrInvalidName), errors.Is(err, holdfast.ErrInvalidOption):
		return &coded{err, exitUsage}
	case errors.As(err, &away), errors.Is(err, holdfast.ErrUnavailable):
		return &coded{err, exitUnreachable}
	}
	return &coded{err, exitFailed}
}

// look is what is known of one lock, for people and as JSON. Durations are in ms; -1 is no TTL.
type look struct {
	Name      string              `json:"name"`
	NameBytes []byte              `json:"nameBytes,omitempty"` // if the name is not UTF-8
	Kind      string              `json:"kind"`
	Held      bool                `json:"held"`
	Semaphore *lookSemaphore      `json:"semaphore,omitempty"` // nil: it is another kind
	Holders   []lookHolder        `json:"holders"`
	Leader    *lookLeader         `json:"leader,omitempty"` // of an election; nil: none, or not looked at
	More      int                 `json:"moreHolders"`
	TTL       int64               `json:"ttl"`
	Waiting   int                 `json:"waiting"`
	Inside    int                 `json:"waitingInside,omitempty"` // callers in the holders' processes, which have no place in the queue
	Overdue   int                 `json:"overdue"`
	Token     uint64              `json:"token"`
	State     string              `json:"state"`
	Since     int64               `json:"notRenewedFor,omitempty"` // if the state is expiring
	Queue     []string            `json:"queue,omitempty"`
	Processes map[string]*Process `json:"queueProcesses,omitempty"` // by owner id: of Queue, those that say what they are
	Callers   map[string]int      `json:"queueCallers,omitempty"`   // likewise, how many of their callers wait
	Broken    []lookBroken        `json:"broken,omitempty"`
	Server    string              `json:"server,omitempty"`  // of several, the one that knows this
	Servers   []string            `json:"servers,omitempty"` // of a Redlock, those at which it is held
	queued    []string            // the owner ids of the queue
	of        int                 // so many servers were asked; 0: one, or Server alone
	*Place                        // nil: not looked at
}

type lookHolder struct {
	Owner    string `json:"owner"`
	Write    bool   `json:"write"`
	Holdfast bool   `json:"holdfast"`
	TTL      int64  `json:"ttl"`
	Lingers  bool   `json:"lingers,omitempty"`  // it may be idle: its process keeps it after Unlock, until another one wants it
	Value    string `json:"value,omitempty"`    // of WithValue
	Detached bool   `json:"detached,omitempty"` // no process has the lock: it is left to a ticket, and not renewed
	Server   string `json:"server,omitempty"`   // of a Redlock

	Process *Process `json:"process,omitempty"` // nil: it does not say what it is
	Callers int      `json:"callers,omitempty"` // of its process, which wait for the lock by the process's own account
}

// lookSemaphore is how many permits there are, and how many no one holds.
type lookSemaphore struct {
	Permits   int `json:"permits"`
	Available int `json:"available"` // below 0 after a cut
	Ended     int `json:"ended"`     // no process has released them, and their time is over: they are available as well
}

// lookLeader is what the holder of an election's lock says of itself.
type lookLeader struct {
	Term  uint64 `json:"term"`
	Value string `json:"value"`
}

type lookBroken struct {
	Key   string `json:"key"`
	Holds string `json:"holds"`
}

// States of a lock.
const (
	stateFree     = "free"
	stateOK       = "ok"
	stateExpiring = "expiring" // less than a third of a lease is left: the holder is dead or cut off
	stateNoTTL    = "no TTL"   // it is held for good
	stateStale    = "queue stale"
	stateWriter   = "writer waits"
	stateOther    = "no lock"
	statePaused   = "paused"      // a semaphore without permits
	stateMinority = "no majority" // of the servers of a Redlock
)

// newLook judges info by the lease that the programs use.
func newLook(info holdfast.Info, lease time.Duration) look {
	l := look{
		Name: info.Name, NameBytes: visible.Bytes(info.Name), Kind: string(info.Kind), Held: info.Held, Holders: []lookHolder{},
		More: info.More, TTL: milliseconds(info.TTL), Waiting: info.Waiters, Overdue: info.Overdue, Token: info.Token,
	}
	for _, h := range info.Holders {
		l.Holders = append(l.Holders, lookHolder{Owner: h.Owner, Write: h.Write, Holdfast: h.Holdfast, TTL: milliseconds(h.TTL), Lingers: h.Lingers, Value: h.Value, Detached: h.Detached})
	}
	for _, w := range info.Queue {
		l.queued = append(l.queued, w.Owner)
	}
	for _, b := range info.Broken {
		l.Broken = append(l.Broken, lookBroken{b.Key, b.Holds})
	}
	if info.Kind == holdfast.KindSemaphore {
		l.Semaphore = &lookSemaphore{info.Permits, info.Available, info.Ended}
		if len(l.Holders) > 0 { // they end one by one, in this order. Those of tickets are not renewed
			l.TTL = l.Holders[max(0, slices.IndexFunc(l.Holders, lookHolder.renewed))].TTL
		}
	}
	l.judge(lease)
	return l
}

// judge says in which state the lock is.
func (l *look) judge(lease time.Duration) {
	l.Since = 0
	switch {
	case l.Kind == string(holdfast.KindOther):
		l.State = stateOther
	case l.Semaphore != nil && !l.Held && l.Semaphore.Permits <= 0:
		l.State = statePaused
	case l.Kind == string(holdfast.KindFree), l.Semaphore != nil && !l.Held:
		l.State = stateFree
	case l.TTL < 0:
		l.State = stateNoTTL
	case len(l.Servers)*2 <= l.of && l.of > 0:
		l.State = stateMinority
	case l.TTL < (lease/3).Milliseconds() && slices.ContainsFunc(l.Holders, lookHolder.renewed):
		l.State, l.Since = stateExpiring, lease.Milliseconds()-l.TTL
	case l.Overdue > 0:
		l.State = stateStale
	case l.Kind == string(holdfast.KindRead) && l.Waiting > 0:
		l.State = stateWriter
	default:
		l.State = stateOK
	}
}

// wrong reports whether the state is one that a person should know.
func (l *look) wrong() bool { return l.State != stateOK && l.State != stateWriter }

// waiters counts the places in the queue and the callers beside them that are known.
func (l *look) waiters() int { return l.Waiting + l.Inside }

// milliseconds keeps -1, no TTL.
func milliseconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

// merge makes one look at each lock of what the servers of a Redlock know. found has the looks of each of the sites.
func merge(found [][]look, sites []*site, lease time.Duration) (all []look) {
	parts := make(map[string][]look) // by name
	for i, looks := range found {
		for _, l := range looks {
			l.Server = sites[i].name
			parts[l.Name] = append(parts[l.Name], l)
		}
	}
	for _, of := range parts {
		all = append(all, joined(of, len(sites), lease))
	}
	return all
}

// joined is what the parts say together. A majority holds the lock until as many of the TTLs are over as leave none.
func joined(parts []look, of int, lease time.Duration) look {
	l := parts[0]
	l.Server, l.of, l.Holders, l.Broken, l.More, l.Token = "", of, []lookHolder{}, nil, 0, 0 // servers have no common token
	processes := make(map[string]int)
	var ttls []int64
	for _, p := range parts {
		if p.Held {
			l.Servers = append(l.Servers, p.Server)
			ttls = append(ttls, p.TTL)
		}
		for _, h := range p.Holders {
			h.Server = p.Server
			l.Holders = append(l.Holders, h)
			processes[h.who()]++
		}
		l.More += p.More
		l.Waiting, l.Inside, l.Overdue = max(l.Waiting, p.Waiting), max(l.Inside, p.Inside), max(l.Overdue, p.Overdue)
		l.Broken = append(l.Broken, p.Broken...)
	}
	slices.SortStableFunc(l.Holders, func(a, b lookHolder) int { return cmp.Compare(processes[b.who()], processes[a.who()]) })
	most := of/2 + 1
	if l.Held = len(ttls) >= most; len(ttls) > 0 {
		slices.Sort(ttls)
		l.TTL = ttls[max(len(ttls)-most, 0)]
		if ttls[0] < 0 { // without a TTL: at that server it is held for good
			l.TTL = -1
		}
	}
	l.judge(lease)
	return l
}

// renewed reports whether a process is to renew it: it is not left to a ticket.
func (h lookHolder) renewed() bool { return !h.Detached }

// who tells holders apart. A process has another owner id at each server of a Redlock, so there the process counts if it
// says what it is.
func (h lookHolder) who() string {
	if h.Server != "" && h.Process != nil {
		return h.Process.String()
	}
	return h.Owner
}

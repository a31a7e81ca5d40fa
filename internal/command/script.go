package command

import (
	"context"
	"crypto/sha1" // what EVALSHA is defined with; not used for secrecy
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Script is one Lua script, ready to be sent by its digest.
type Script struct {
	name string
	text any // the source, boxed for an argument list
	sha  any // its SHA-1 in hex, boxed
	fits func(value any) bool
	many *Script // its form for many calls; nil: each call goes by itself
}

// NewScript prepares the script of the given source; name is for messages, and fits reports whether a value can be
// a reply of it. A nil fits accepts each value. many is the source of its form for many calls, see merge.go; "": there is none.
func NewScript(name, text, many string, fits func(value any) bool) *Script {
	sum := sha1.Sum([]byte(text))
	s := &Script{name: name, text: text, sha: hex.EncodeToString(sum[:]), fits: fits}
	if many != "" {
		s.many = NewScript(name, many, "", nil)
	}
	return s
}

// errShifted is why a reply is not believed: another one of its batch is none that the script asked for gives, so
// something between the client and Redis has added a reply or left one out, and each may be that to another request.
var errShifted = errors.New("replies out of order: something between the client and Redis adds or loses some")

// Name returns the name given to NewScript.
func (s *Script) Name() string { return s.name }

// Positions in the argument list of an EVALSHA.
const (
	argCommand = iota
	argScript
	argNumKeys
	argFirstKey
)

var (
	evalsha any = "evalsha" // boxed once: an argument list is built per request
	eval    any = "eval"
)

// Args builds the argument list of one call of s: its keys, which must share a
// cluster slot, then its other arguments.
func (s *Script) Args(keys int, keysThenArgs ...any) []any {
	return append(append(make([]any, 0, argFirstKey+len(keysThenArgs)), evalsha, s.sha, keys), keysThenArgs...)
}

// Begin is Args in steps: the caller appends the keys, calls CountKeys, and appends the other arguments.
func (s *Script) Begin(r *Room) []any { return append(r[:0], evalsha, s.sha, nil) }

// Room is where the arguments of one call are put together. go-redis, and so a hook of the client, may keep what it is given: it
// gets a copy, and the room is used again. Calls that are merged have their copies in one list, and the copy of a lone call is part
// of its command.
type Room [13]any

var rooms = sync.Pool{New: func() any { return new(Room) }}

// NewRoom returns an empty one.
func NewRoom() *Room { return rooms.Get().(*Room) }

// leave gives up the room of a call that has been sent, and has ended. The call stays in its lane's batch until the lane
// takes another, and other goroutines look at the calls there under Executor.mu, which leave does without: after Submit, only the
// lane reads the arguments of a call with a room. What others need of them is lane.key.
func (c *Call) leave() {
	r := c.Room
	if r == nil {
		return
	}
	c.Room, c.Args = nil, nil
	clear(r[:])
	rooms.Put(r)
}

// CountKeys tells Redis that all arguments so far are keys.
func CountKeys(args []any) []any {
	args[argNumKeys] = len(args) - argFirstKey
	return args
}

// inFull returns args with the digest replaced by the source.
func (s *Script) inFull(args []any) []any {
	full := append([]any(nil), args...)
	full[argCommand], full[argScript] = eval, s.text
	return full
}

// scripts is a set of a few scripts. A look is for each request, and a change for each script.
type scripts struct {
	list atomic.Pointer[[]*Script] // does not change; nil: the set is empty
}

func (s *scripts) has(script *Script) bool {
	list := s.list.Load()
	return list != nil && slices.Contains(*list, script)
}

func (s *scripts) add(script *Script) {
	for !s.has(script) {
		old := s.list.Load()
		more := []*Script{script}
		if old != nil {
			more = slices.Concat(*old, more)
		}
		s.list.CompareAndSwap(old, &more)
	}
}

func (s *scripts) remove(script *Script) {
	for s.has(script) {
		old := s.list.Load()
		less := slices.DeleteFunc(slices.Clone(*old), func(other *Script) bool { return other == script })
		s.list.CompareAndSwap(old, &less)
	}
}

// Acks asks for the acknowledgement of a call by replicas: WAIT follows it on the same
// connection, which is what Redis counts for.
type Acks struct {
	Replicas int
	Timeout  time.Duration // a millisecond or more
}

// command returns the WAIT.
func (a *Acks) command(ctx context.Context) *redis.Cmd {
	// 0 would wait without a limit.
	return redis.NewCmd(ctx, "wait", a.Replicas, max(1, a.Timeout.Milliseconds()))
}

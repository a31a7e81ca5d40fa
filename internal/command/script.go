package command

import (
	"crypto/sha1" // what EVALSHA is defined with; not used for secrecy
	"encoding/hex"
	"fmt"
	"time"
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
// gets a copy, so that a Recycler can use the room again. Calls that are merged have their copies in one list, and the copy of a
// lone call is part of its command.
type Room [13]any

// CountKeys tells Redis that all arguments so far are keys.
func CountKeys(args []any) []any {
	args[argNumKeys] = len(args) - argFirstKey
	return args
}

// Acks asks for the acknowledgement of a call by replicas: WAIT follows it on the same
// connection, which is what Redis counts for.
type Acks struct {
	Replicas int
	Timeout  time.Duration // a millisecond or more
}

// Unacked is that too few replicas have acknowledged a call.
type Unacked struct {
	Want, Acked int
	Err         error // why the number is not known; nil: it is
}

func (u *Unacked) Error() string { return fmt.Sprintf("acknowledged by %d of %d", u.Acked, u.Want) }

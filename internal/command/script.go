package command

import (
	"crypto/sha1" // what EVALSHA is defined with; not used for secrecy
	"encoding/hex"
)

// Script is one Lua script, ready to be sent by its digest.
type Script struct {
	name string
	text any // the source, boxed for an argument list
	sha  any // its SHA-1 in hex, boxed
}

// NewScript prepares the script of the given source; name is for messages.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
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
	return s.ArgsIn(make([]any, 0, argFirstKey+len(keysThenArgs)), keys, keysThenArgs...)
}

// ArgsIn is Args in the room of a slice, as far as that goes.
func (s *Script) ArgsIn(room []any, keys int, keysThenArgs ...any) []any {
	return append(append(room[:0], evalsha, s.sha, keys), keysThenArgs...)
}

// inFull returns args with the digest replaced by the source.
func (s *Script) inFull(args []any) []any {
	full := append([]any(nil), args...)
	full[argCommand], full[argScript] = eval, s.text
	return full
}

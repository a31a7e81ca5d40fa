package sim

import (
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// What the network reads of the bytes that pass: commands, the names of scripts, grants.

// parseCommand takes the first command off b; ok is false if b has not all of it.
func parseCommand(b []byte) (args []string, rest []byte, ok bool) {
	args, rest, wrong := vredis.ParseCommand(b)
	return args, rest, args != nil && wrong == ""
}

// isHandshake reports whether a packet has nothing but what go-redis sends before its first command.
func isHandshake(packet []byte) bool {
	for len(packet) > 0 {
		args, rest, ok := parseCommand(packet)
		if !ok || len(args) == 0 || !redistest.IsGreeting(args[0]) {
			return false
		}
		packet = rest
	}
	return true
}

// call is a script's.
type call struct {
	script string // its name; "": it is none of the library's
	keys   []string
	args   []string
	had    *look // what there was before it, if it asks for that or frees it
}

// callsOf returns the calls of a script that a command makes.
func callsOf(args []string) (calls []call) {
	script := redistest.ScriptName(args)
	for _, one := range redistest.Calls(args) {
		keys, args, _ := redistest.ScriptCall(one)
		calls = append(calls, call{script: script, keys: keys, args: args})
	}
	return calls
}

// listens reports whether it asks for a place and says that its process hears its inbox; wait is as protocol.Stand makes it.
func (c *call) listens() bool {
	wait := ""
	switch {
	case c.script == "join" && len(c.args) > 0:
		wait = c.args[0]
	case strings.HasSuffix(c.script, "_acquire") && c.script != "multi_acquire" && len(c.args) > 2:
		wait = c.args[2]
	}
	words := strings.Fields(wait)
	return len(words) > 1 && words[0] != "none" && words[1] == "heard"
}

var ownerPrefix = regexp.MustCompile(`hf-[0-9a-f-]{36}:`)

// prefixIn returns what a manager's owner ids begin with, if one is in the arguments; those of force_release are another's.
func (c *call) prefixIn() string {
	if c.script == "force_release" {
		return ""
	}
	for _, a := range c.args {
		if p := ownerPrefix.FindString(a); p != "" {
			return p
		}
	}
	return ""
}

// content is a number that what a packet says decides: its lines, in any order, but for the random part of owner ids.
func content(packet []byte) (sum uint64) {
	z := uint64(basis)
	for i := 0; i < len(packet); i++ {
		switch {
		case isRandom(packet[i:]):
			i += 35
			if n := ticketNumber.FindIndex(packet[i+1 : min(i+22, len(packet))]); n != nil && n[0] == 0 {
				i += n[1]
			}
		case packet[i] == '*': // a command or a reply begins
			sum += mix(z)
			z = basis
		default:
			z = (z ^ uint64(packet[i])) * prime
		}
	}
	return sum + mix(z)
}

// Those of the FNV-1a hash.
const basis, prime = 14695981039346656037, 1099511628211

// ticketNumber is what owner ids of tickets have behind the UUID, which is random as well.
var ticketNumber = regexp.MustCompile(`:\d{13,}`)

// isRandom reports whether b begins with a UUID.
func isRandom(b []byte) bool {
	return len(b) >= 36 && b[8] == '-' && b[13] == '-' && b[18] == '-' && b[23] == '-'
}

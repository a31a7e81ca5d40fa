package protocol

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
)

// The scripts. Each is a file of that name, with its contract in its header; see scripts/README.md.
var (
	LockAcquire  = script("lock_acquire", givesToken)
	LockRelease  = script("lock_release", givesCount)
	MultiAcquire = alone("multi_acquire", givesTokens)
	RWAcquire    = script("rw_acquire", givesToken)
	RWRelease    = script("rw_release", givesCount)
	RWDowngrade  = script("rw_downgrade", givesCount)
	Renew        = script("renew", givesCodes)
	RenewRead    = script("renew_read", givesCodes)
	Join         = script("join", givesList)
	Leave        = script("leave", givesCount)
	Keep         = script("keep", givesList)
	Demand       = script("demand", givesList)
	Busy         = script("busy", givesCode)
	Inspect      = alone("inspect", givesInfo)
	ForceRelease = alone("force_release", givesCode)
	LockStay     = script("lock_stay", givesCode)
	RWStay       = script("rw_stay", givesCode)
	Introduce    = alone("introduce", givesCode)
	Introduced   = alone("introduced", givesList)
)

// script is for scripts about one lock, or about some in few words: calls of them are merged.
func script(name string, gives func(reply any) bool) *command.Script {
	text := Text(name)
	return command.NewScript(name, text, Many(name, text), gives)
}

// alone is for scripts that are seldom called, or of which one call can take long.
func alone(name string, gives func(reply any) bool) *command.Script {
	return command.NewScript(name, Text(name), "", gives)
}

// givesToken is for scripts that take a lock: a token, or a verdict.
func givesToken(reply any) bool {
	if n, ok := reply.(int64); ok {
		return n >= 0
	}
	_, verdict := ParseVerdict(reply)
	return verdict
}

// givesTokens is the same for several locks.
func givesTokens(reply any) bool {
	if n, ok := reply.(int64); ok {
		return n >= 0
	}
	_, refusal := ParseRefusal(reply)
	return refusal
}

// givesCodes is for scripts that give a code for each hold, or what Redis said instead.
func givesCodes(reply any) bool {
	list, _ := reply.([]any)
	return len(list) > 0 && !slices.ContainsFunc(list, func(code any) bool {
		n, ok := code.(int64)
		_, text := code.(string)
		return !text && (!ok || n < RenewGone || n > RenewStolen)
	})
}

// infoFields is how many fields inspect gives.
const infoFields = 9

func givesInfo(reply any) bool {
	list, _ := reply.([]any)
	return len(list) == infoFields
}

// givesCount is for scripts that give a lock back: how many heard it, a code below 0, or a message.
func givesCount(reply any) bool {
	message, _ := reply.(string)
	return strings.HasPrefix(message, "g ") || givesCode(reply)
}

func givesCode(reply any) bool {
	_, ok := reply.(int64)
	return ok
}

func givesList(reply any) bool {
	list, ok := reply.([]any)
	return ok && len(list) > 0
}

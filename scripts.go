package holdfast

import (
	"embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
)

// The scripts are files, with their contract in their header; see scripts/README.md.
//
//go:embed scripts/*.lua scripts/prelude/*.lua
var scriptFiles embed.FS

var (
	lockAcquire  = newScript("lock_acquire", givesToken)
	lockRelease  = newScript("lock_release", givesCount)
	multiAcquire = newScript("multi_acquire", givesToken)
	rwAcquire    = newScript("rw_acquire", givesToken)
	rwRelease    = newScript("rw_release", givesCount)
	rwDowngrade  = newScript("rw_downgrade", givesCount)
	renewScript  = newScript("renew", givesList)
	renewRead    = newScript("renew_read", givesList)
	joinScript   = newScript("join", givesList)
	leaveScript  = newScript("leave", givesCount)
	keepScript   = newScript("keep", givesList)
	demandScript = newScript("demand", givesList)
	inspect      = newScript("inspect", givesList)
	forceRelease = newScript("force_release", givesCode)
)

// newScript puts a script together from its file and the preludes that it names.
func newScript(name string, gives func(reply any) bool) *command.Script {
	return command.NewScript(name, withPreludes("scripts/"+name+".lua"), gives)
}

// givesToken is for scripts that take a lock: a token, or a verdict.
func givesToken(reply any) bool {
	n, ok := reply.(int64)
	return ok && n >= 0 || givesList(reply)
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

func withPreludes(file string) string {
	return preludeLine.ReplaceAllStringFunc(mustRead(file), func(line string) string {
		var preludes []string
		for _, p := range strings.Fields(line)[2:] {
			preludes = append(preludes, withPreludes("scripts/prelude/"+p+".lua"))
		}
		return strings.Join(preludes, "")
	})
}

// preludeLine names the preludes that stand in its place. A function takes 55 ns to define,
// at each call: what a script does often, it does before that line, and what it does
// rarely, it defines only there.
var preludeLine = regexp.MustCompile(`(?m)^ *-- prelude:( \w+)+\n`)

func mustRead(file string) string {
	text, err := scriptFiles.ReadFile(file)
	if err != nil {
		panic(err) // cannot happen: it is embedded
	}
	return string(text)
}

// Codes of the acquire scripts, where the answer is not a token.
const (
	acquireHeld   = 0
	acquireKind   = -1
	acquireBuried = -2
)

// Codes of the release scripts below 0.
const (
	releaseGone       = -1 // nobody holds the lock
	releaseStolen     = -2 // another owner does
	releaseHandedOver = -3 // granted to another process, or left to Redisson
	releaseCrowded    = -4 // free; the next request removes more of the dead who stand in front
)

// Codes of the renew scripts, per hold; anything else is a text, what Redis said instead.
const (
	renewGone   = 0
	renewDone   = 1
	renewStolen = 2
)

// Codes of keep, per waiter.
const (
	keepGone    = 0 // it has no place any more
	keepDone    = 1
	keepGranted = 2 // it has the lock
)

// verdict is the reply of an acquire script that is not a token.
type verdict struct {
	code    int64
	state   int64 // of the lock, if another owner is in the way
	ttl     int64 // of the holder, milliseconds; -1: it has none. Of a free lock, when to ask again
	clock   int64 // the server's time, milliseconds
	foreign bool  // the holder, or the next one, is Redisson's
	wrong   error // which key holds what, if one holds something of another kind
}

// States of a lock that is free: others are before the caller, or so many of the dead are that one request does not
// remove them all, and the next goes on at once. Another owner has one of state 0, and Redisson has been offered one of state 2;
// both are waited for in the same way.
const (
	stateOpen    = 1
	stateCrowded = 3
)

// parseVerdict reads what follows a code. What a later version may add behind it is ignored.
func parseVerdict(value any) (v verdict, ok bool) {
	list, _ := value.([]any)
	if len(list) == 0 {
		return v, false
	}
	if v.code, ok = list[0].(int64); !ok {
		return v, false
	}
	switch rest := list[1:]; v.code {
	case acquireHeld:
		var n [4]int64
		if !integers(rest, n[:]) {
			return v, false
		}
		v.state, v.ttl, v.clock, v.foreign = n[0], n[1], n[2], n[3] != 0
	case acquireKind:
		v.wrong, ok = wrongKey(rest)
	}
	return v, ok
}

// refusal is the reply of multi_acquire that is not a grant.
type refusal struct {
	verdict
	lock   int64 // which of the locks it is about, from 1
	waited bool  // that is free, and others wait for it
}

func parseRefusal(value any) (r refusal, ok bool) {
	list, _ := value.([]any)
	var n [2]int64
	if !integers(list, n[:]) {
		return r, false
	}
	r.code, r.lock = n[0], n[1]
	switch rest := list[2:]; r.code {
	case acquireHeld:
		var waited [1]int64
		ok = integers(rest, waited[:])
		r.waited = waited[0] != 0
	case acquireKind:
		r.wrong, ok = wrongKey(rest)
	}
	return r, ok
}

// integers reads the first of a list.
func integers(list []any, n []int64) (ok bool) {
	if len(list) < len(n) {
		return false
	}
	for i := range n {
		if n[i], ok = list[i].(int64); !ok {
			return false
		}
	}
	return true
}

// wrongKey reads a key, and what it holds.
func wrongKey(list []any) (error, bool) {
	if len(list) < 2 {
		return nil, false
	}
	key, ok1 := list[0].(string)
	holds, ok2 := list[1].(string)
	return fmt.Errorf("the key %s holds %s", key, holds), ok1 && ok2
}

package holdfast

import (
	"embed"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
)

// The scripts are files, with their contract in their header; see scripts/README.md.
//
//go:embed scripts/*.lua scripts/prelude/*.lua
var scriptFiles embed.FS

var (
	lockAcquire  = newScript("lock_acquire")
	lockRelease  = newScript("lock_release")
	multiAcquire = newScript("multi_acquire")
	rwAcquire    = newScript("rw_acquire")
	rwRelease    = newScript("rw_release")
	rwDowngrade  = newScript("rw_downgrade")
	renewScript  = newScript("renew")
	renewRead    = newScript("renew_read")
	joinScript   = newScript("join")
	keepScript   = newScript("keep")
	demandScript = newScript("demand")
	inspect      = newScript("inspect")
	forceRelease = newScript("force_release")
)

// newScript puts a script together from its file and the preludes that it names.
func newScript(name string) *command.Script {
	return command.NewScript(name, withPreludes("scripts/"+name+".lua"))
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
)

// Codes of the renew scripts, per hold; anything else is a text, what Redis said instead.
const (
	renewGone   = 0
	renewDone   = 1
	renewStolen = 2
)

// keepDone is the code of keep for a waiter that has its place.
const keepDone = 1

// verdict is the reply of an acquire script that is not a token.
type verdict struct {
	code    int64
	ttl     int64 // of the holder, milliseconds; -1: it has none; to a sweep: which lock, from 1
	clock   int64 // the server's time, milliseconds
	foreign bool  // the holder, or the next one, is Redisson's
}

func parseVerdict(value any) (v verdict, ok bool) {
	list, ok := value.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return v, false
	}
	var n [4]int64
	for i, x := range list {
		if n[i], ok = x.(int64); !ok {
			return v, false
		}
	}
	return verdict{n[0], n[1], n[2], n[3] != 0}, true
}

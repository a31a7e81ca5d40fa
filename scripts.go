package holdfast

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/command"
)

// The scripts are files, with their contract in their header; see scripts/README.md.
var (
	//go:embed scripts/mutex_acquire.lua
	mutexAcquireText string
	//go:embed scripts/mutex_release.lua
	mutexReleaseText string
	//go:embed scripts/renew.lua
	renewText string
	//go:embed scripts/inspect.lua
	inspectText string
	//go:embed scripts/force_release.lua
	forceReleaseText string

	mutexAcquire = command.NewScript("mutex_acquire", mutexAcquireText)
	mutexRelease = command.NewScript("mutex_release", mutexReleaseText)
	renewScript  = command.NewScript("renew", renewText)
	inspect      = command.NewScript("inspect", inspectText)
	forceRelease = command.NewScript("force_release", forceReleaseText)
)

// Codes of mutex_acquire, where the answer is not a token.
const (
	acquireHeld   = 0
	acquireKind   = -1
	acquireBuried = -2
)

// releaseStolen is the reply of mutex_release when another owner holds the lock; -1:
// nobody does.
const releaseStolen = -2

// Codes of renew, per key.
const (
	renewGone    = 0
	renewDone    = 1
	renewStolen  = 2
	renewRefused = -1
)

// pair reads the reply {code, n} of a script.
func pair(value any) (code, n int64, ok bool) {
	list, ok := value.([]any)
	if !ok || len(list) != 2 {
		return 0, 0, false
	}
	code, ok1 := list[0].(int64)
	n, ok2 := list[1].(int64)
	return code, n, ok1 && ok2
}

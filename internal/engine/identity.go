package engine

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const (
	// identityTTL is how long the key of a process outlives it, should it not be able to remove it.
	identityTTL = time.Minute
	// refreshIdentity is how often the key is written. Two refreshes may fail.
	refreshIdentity = identityTTL / 3
	// lookForWaits is how often the process looks which of its callers wait, and writes the key if that has changed.
	lookForWaits = refreshIdentity / 4
	// longWait is after what the wait of a caller is worth a command.
	longWait = time.Second
	// retryIdentity is when it is written again after a request without an answer.
	retryIdentity = time.Second
)

// identity keeps the key that says what process a manager is of, from the manager's first lock until Close. It has no
// goroutine: a timer and the answers to its requests, of which there is one at a time, move it.
type identity struct {
	engine *Engine
	args   []any // of the script, but for the TTL

	mu       sync.Mutex    // guards the following; Executor.mu comes behind it
	call     *command.Call // under way; nil: none
	timer    *time.Timer   // looks whether to send the next; nil: the key has not been written yet
	due      time.Time     // when the key is written again, even if nothing has changed
	waits    string        // as the latest request says them
	closing  bool
	removing bool          // call is the last one: it removes the key
	refused  bool          // the log says that Redis refuses the key
	gone     chan struct{} // closed when there is nothing left to do
	left     bool          // gone is closed
}

var programBegan = time.Now()

// newIdentity returns the identity of the process as a part of app; nil if that is empty. page is the address of its
// debug page; empty: none.
func newIdentity(eng *Engine, app, page string) *identity {
	if app == "" {
		return nil
	}
	host, _ := os.Hostname() // without one it is empty
	i := &identity{
		engine: eng,
		args: []any{
			"app", app, "host", host, "pid", strconv.Itoa(os.Getpid()),
			"started", programBegan.UTC().Format(time.RFC3339), "version", programVersion(),
		},
		gone: make(chan struct{}),
	}
	if page != "" {
		i.args = append(i.args, "debug", page)
	}
	return i
}

// App is what WithIdentity was given; empty: nothing.
func (i *identity) App() string {
	if i == nil {
		return ""
	}
	return i.args[1].(string)
}

// programVersion is that of the module, or the commit, that the program was built from.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	at := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if at < 0 {
		return ""
	}
	revision := info.Settings[at].Value
	return revision[:min(12, len(revision))]
}

// begin has the key written, if it has not been. A manager without an identity has a nil one.
func (i *identity) begin() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer == nil && !i.closing {
		i.timer = time.AfterFunc(lookForWaits, i.refresh)
		i.sendLocked()
	}
}

// refresh is called by the timer.
func (i *identity) refresh() {
	waits := wire.FormatWaits(i.engine.longWaits())
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.call != nil || i.closing:
	case waits == i.waits && time.Now().Before(i.due):
		i.timer.Reset(lookForWaits)
	default:
		i.waits = waits
		i.sendLocked()
	}
}

// sendLocked sends a request: to write the key, or to remove it.
func (i *identity) sendLocked() {
	args := append([]any{wire.ProcessKey(i.engine.Process.Owners), validity.Milliseconds(identityTTL), wire.WaitsField, i.waits}, i.args...)
	if i.closing {
		args = []any{args[0], 0}
	}
	i.call = &command.Call{
		Script:   protocol.Introduce,
		Args:     protocol.Introduce.Args(1, args...),
		Handler:  i,
		Patience: i.engine.askPatience(),
		Lapses:   true, // the timer sends another
	}
	if !i.engine.Executor.Submit(time.Now(), i.call) {
		i.call = nil
		i.endLocked()
	}
}

// Replied is called by the executor with the end of a request.
func (i *identity) Replied(c *command.Call, r command.Reply) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.call != c {
		return // overdue, or sent again since
	}
	i.call = nil
	err := r.Err
	if r.Outcome == command.Answered && r.Value != int64(1) {
		err = protocol.Unexpected(r.Value)
	}
	switch {
	case i.removing, r.Outcome == command.Closed:
		i.endLocked()
	case i.closing:
		i.removeLocked()
	case err == nil:
		i.refused = false
		i.due = time.Now().Add(refreshIdentity - lookForWaits/2) // at the fourth look
		i.timer.Reset(lookForWaits)
	case r.Outcome == command.Answered, r.Outcome == command.Barred, r.Outcome.Final():
		if !i.refused {
			i.engine.Journal.Say(slog.LevelWarn, "holdfast: identity not written", "error", err)
		}
		i.refused, i.due = true, time.Time{}
		i.timer.Reset(refreshIdentity) // rights can change
	default:
		i.retryLocked()
	}
}

// Overdue is called by the executor when the reply takes too long. Close does not wait for it.
func (i *identity) Overdue(c *command.Call) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.call != c:
	case i.closing:
		i.endLocked()
	default:
		i.retryLocked()
	}
}

// Stranded is called by the executor when the connection is dead.
func (i *identity) Stranded(c *command.Call) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.call == c {
		i.sendLocked()
	}
}

func (i *identity) retryLocked() {
	i.call, i.due = nil, time.Time{}
	i.timer.Reset(retryIdentity)
}

// close has the key removed. A refresh that is under way comes first: it could write the key again.
func (i *identity) close() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closing = true
	switch {
	case i.timer == nil:
		i.endLocked()
	case i.call == nil:
		i.timer.Stop()
		i.removeLocked()
	}
}

func (i *identity) removeLocked() {
	i.removing = true
	i.sendLocked()
}

func (i *identity) endLocked() {
	i.call = nil
	if !i.left {
		i.left = true
		close(i.gone)
	}
}

// wait returns when close has removed the key, or cannot, or ctx is done: then it ends with its TTL.
func (i *identity) wait(ctx context.Context) {
	if i == nil {
		return
	}
	select {
	case <-i.gone:
	case <-ctx.Done():
	}
}

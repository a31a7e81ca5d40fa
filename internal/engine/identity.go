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
	"github.com/holdfast-go/holdfast/internal/lock"
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

// identity keeps the key that says what process a manager is of, from the manager's first lock until Close. A goroutine of its own
// writes it, by one request at a time.
type identity struct {
	engine  *Engine
	args    []any // of the script, but for the TTL
	begun   sync.Once
	closing chan struct{} // closed by close
	gone    chan struct{} // closed when there is nothing left to do

	// Of the goroutine.
	due     time.Time // when the key is written again, even if nothing has changed
	waits   string    // as the latest request says them
	refused bool      // the log says that Redis refuses the key
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
		closing: make(chan struct{}),
		gone:    make(chan struct{}),
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
	if i != nil {
		i.begun.Do(func() { go i.run() })
	}
}

func (i *identity) run() {
	defer close(i.gone)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			timer.Reset(i.refresh())
		case <-i.closing: // a refresh that was under way has ended: it could write the key again
			i.ask(wire.ProcessKey(i.engine.Process.Owners), 0)
			return
		}
	}
}

// refresh has the key written, if that is due, or it has more to say. It returns after what pause to look again.
func (i *identity) refresh() time.Duration {
	waits := wire.FormatWaits(i.engine.longWaits())
	if waits == i.waits && time.Now().Before(i.due) {
		return lookForWaits
	}
	i.waits, i.due = waits, time.Time{}
	r := i.ask(append([]any{wire.ProcessKey(i.engine.Process.Owners), validity.Milliseconds(identityTTL), wire.WaitsField, waits}, i.args...)...)
	err := r.Err
	if r.Outcome == lock.Answered && r.Value != int64(1) {
		err = protocol.Unexpected(r.Value)
	}
	switch {
	case err == nil:
		i.refused = false
		i.due = time.Now().Add(refreshIdentity - lookForWaits/2) // at the fourth look
		return lookForWaits
	case r.Outcome == lock.Shut, r.Outcome == lock.Unsent:
		return refreshIdentity
	case r.Outcome == lock.Answered, r.Outcome == lock.Barred, r.Outcome.Final():
		if !i.refused {
			i.engine.Journal.Say(slog.LevelWarn, "holdfast: identity not written", "error", err)
		}
		i.refused = true
		return refreshIdentity // rights can change
	}
	return retryIdentity
}

// ask sends a request, and waits for its end.
func (i *identity) ask(args ...any) command.Reply {
	q := &question{engine: i.engine, repeat: true, done: make(chan command.Reply, 1)}
	if !i.engine.Executor.Submit(time.Now(), &command.Call{
		Script:   protocol.Introduce,
		Args:     protocol.Introduce.Args(1, args...),
		Handler:  q,
		Patience: i.engine.askPatience(),
		Lapses:   true, // the next look sends another
	}) {
		return stoppedReply
	}
	return <-q.done
}

// close has the key removed.
func (i *identity) close() {
	if i != nil {
		i.begun.Do(func() { close(i.gone) })
		close(i.closing)
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

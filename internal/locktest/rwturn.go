package locktest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// rwTurnScenarios are about the turn of Redisson's plain waiters: among grants to Holdfast's waiters a release looks
// now and then whether a client listens to Redisson's channel, and leaves the lock to them.
var rwTurnScenarios = map[string]func(*Env){
	"TurnComesDespiteDowngrades": func(e *Env) {
		e.turnsOfRedisson(func(writer *holdfast.Lease, l *holdfast.RWMutex) (leaveLast *holdfast.Lease) {
			reader := Got(e, l.RLock, writer.Context(bg))
			return reader
		}, nil)
	},

	"TurnComesDespiteReadersThatJoin": func(e *Env) {
		m := e.Manager()
		e.turnsOfRedisson(nil, func() (leaveLast *holdfast.Lease) { return e.MustRLock(e.RW(m)) })
	},
}

// leftOpen is what a monitor shows when a release leaves the lock open for Redisson. With a number more, the message tells a
// waiter of another end of the lock.
var leftOpen = regexp.MustCompile(`"publish" "holdfast_inbox:[^"]*" "o \d+"\s*$`)

// turnsOfRedisson passes a lock from writers to readers and back between processes, while a client listens to
// Redisson's channel, until that has been left the lock. Before each writer's Unlock it calls during, and when
// the reader behind is inside after; what they return leaves last, and one of them is nil.
func (e *Env) turnsOfRedisson(during func(writer *holdfast.Lease, l *holdfast.RWMutex) *holdfast.Lease, after func() *holdfast.Lease) {
	e.Helper()
	writers := []*holdfast.RWMutex{e.RW(e.Manager()), e.RW(e.Manager())}
	readers := e.RW(e.Manager()).RLocker()
	listener := e.Server().Admin().Subscribe(bg, e.Channel(e.Key))
	defer listener.Close()
	e.hears(1)
	mon := e.srv.Monitor(e)

	writer := e.MustLock(writers[0])
	const most = 400 // it is one grant of 16, and where a reader has joined on average
	cycles, turn := 0, false
	for ; cycles < most && !turn; cycles++ {
		var last *holdfast.Lease
		if during != nil {
			last = during(writer, writers[cycles%2])
		}
		waiting := e.InQueue(1, readers)
		e.MustUnlock(writer)
		reader := e.Soon("the reader", waiting)
		if after != nil {
			last = after()
		}
		next := e.InQueue(1, writers[(cycles+1)%2])
		e.MustUnlock(reader, last)
		writer = e.Soon("the writer", next)
		e.caughtUp(mon)
		turn = slices.ContainsFunc(mon.Lines(), leftOpen.MatchString)
	}
	e.MustUnlock(writer)
	if !turn {
		e.Fatalf("no turn in %d cycles", cycles)
	}
	e.Logf("a turn after %d cycles", cycles)
	// All who are parked are told, and not one of each process, though it was a reader that left.
	lines := mon.Lines()
	lines = lines[slices.IndexFunc(lines, leftOpen.MatchString):]
	told := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"publish" "`+e.Channel(e.Key)+`"`) })
	if told < 0 || !strings.HasSuffix(strings.TrimSpace(lines[told]), `"1"`) {
		e.Errorf("told to Redisson's: %q", lines)
	}
}

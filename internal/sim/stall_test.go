package sim

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-go/holdfast/internal/planted"
)

// edit replaces one text by another.
func edit(file, old, new string) planted.Edit { return planted.Edit{File: file, Old: old, New: new} }

// behindTimers are the places behind the library's timers: there a goroutine waits while its process stands still, before it reads the clock.
var behindTimers = []planted.Edit{
	edit("internal/engine/timer.go", "func() { e.do(e.lock.WakeUp) }", "func() { PlantedStand(e.engine); e.do(e.lock.WakeUp) }"),
	edit("internal/engine/timer.go", "func() { e.do(func(m *lock.Moment) { e.lock.ReachLimit(m, l) }) }", "func() { PlantedStand(e.engine); e.do(func(m *lock.Moment) { e.lock.ReachLimit(m, l) }) }"),
	edit("internal/engine/timer.go", "func() { e.do(func(m *lock.Moment) { e.lock.Resume(m, r) }) }", "func() { PlantedStand(e.engine); e.do(func(m *lock.Moment) { e.lock.Resume(m, r) }) }"),
	edit("internal/pubsub/session.go", "\t\tcancel(errQuiet) // frees", "\t\tPlantedStand(h.s)\n\t\tcancel(errQuiet) // frees"),
	edit("internal/pubsub/session.go", "\t\tcase <-pings.C:\n", "\t\tcase <-pings.C:\n\t\t\tPlantedStand(h.s)\n"),
	edit("internal/pubsub/session.go", "\t\tcase <-tidy.C:\n", "\t\tcase <-tidy.C:\n\t\t\tPlantedStand(h.s)\n"),
	edit("internal/pubsub/homes.go", "\t\ttimer.Reset(s.settle())", "\t\tPlantedStand(s)\n\t\ttimer.Reset(s.settle())"),
	edit("internal/command/command.go", "func (x *Executor) inspect() {\n", "func (x *Executor) inspect() {\n\tPlantedStand(x)\n"),
	edit("internal/renewal/schedule.go", "\t\trenew, expired, wait := s.due(time.Now())", "\t\tPlantedStand(s)\n\t\trenew, expired, wait := s.due(time.Now())"),
}

// stand has the library's timers wait while their process stands still.
func stand(o *planted.Overlay) {
	for _, e := range behindTimers {
		path := filepath.Join(root, e.File)
		o.Replace(path, e.Old, e.New)
		o.Files[filepath.Join(filepath.Dir(path), "planted_stand.go")] = fmt.Sprintf("%s\n\n// PlantedStand is called behind a timer.\nvar PlantedStand = func(part any) {}\n", planted.PackageOf(o.T, path))
	}
	o.Files[filepath.Join(root, "internal/engine/planted_parts.go")] = `package engine

// PlantedParts are those that call PlantedStand.
func PlantedParts(eng *Engine) []any { return []any{eng, eng.Subscriber, eng.Executor, eng.scheduler} }
`
	o.Files[filepath.Join(root, "planted_parts.go")] = `package holdfast

import "github.com/holdfast-go/holdfast/internal/engine"

// PlantedParts are those of the manager.
func PlantedParts(m *Manager) []any { return engine.PlantedParts(m.engine) }
`
	o.Files["planted_stand.go"] = `package sim

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

func init() {
	partsOf = holdfast.PlantedParts
	stand := func(part any) {
		if p, ok := parts.Load(part); ok && p.(*process).awake() {
			time.Sleep(time.Duration(mix(uint64(time.Now().UnixNano())) % uint64(lag))) // the others may be faster
		}
	}
	engine.PlantedStand, command.PlantedStand, pubsub.PlantedStand, renewal.PlantedStand = stand, stand, stand, stand
}
`
}

// Worlds in which the library's timers stand still with their process as well.
func TestWorlds_WithLateTimers(t *testing.T) {
	notShort(t)
	binary := plantedBinary(t)
	seeds := *seedsFlag
	if seeds == 0 {
		seeds = 24
	}
	out, err := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.v", "-test.timeout", "10h", "-seed", fmt.Sprint(max(*seedFlag, 1)), "-seeds", fmt.Sprint(seeds),
		"-more", "stalls", "-shape", *shapeFlag, "-rules", *rulesFlag, "-trace", traceFlag.String()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", tallyLine.Find(out))
}

var tallyLine = regexp.MustCompile(`\d+ worlds, .*`)

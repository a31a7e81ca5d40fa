package telemetry

import (
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// Several managers of a program report to one provider, as those of a Redlock do, and of a gauge the last value counts. So
// each reports the largest of all of them.

// peers are the managers that report.
var peers struct {
	sync.Mutex // guards the following; no other lock is taken with it held
	all        []*Telemetry
}

// meet adds t to those that report to p.
func (t *Telemetry) meet(p metric.MeterProvider) {
	if !reflect.TypeOf(p).Comparable() {
		return // then it is alone
	}
	t.provider = p
	peers.Lock()
	defer peers.Unlock()
	peers.all = append(peers.all, t)
}

// part takes t out.
func (t *Telemetry) part() {
	peers.Lock()
	defer peers.Unlock()
	peers.all = slices.DeleteFunc(peers.all, func(other *Telemetry) bool { return other == t })
}

// others returns the other managers that report where t does.
func (t *Telemetry) others() []*Telemetry {
	peers.Lock()
	defer peers.Unlock()
	return slices.DeleteFunc(slices.Clone(peers.all), func(other *Telemetry) bool { return other == t || other.provider != t.provider })
}

// Oldest is how long something has lasted, in seconds, by class.
type Oldest map[string]float64

// Saw notes an age.
func (o Oldest) Saw(class string, seconds float64) { o[class] = max(o[class], seconds) }

func (o Oldest) merge(other Oldest) {
	for class, seconds := range other {
		o.Saw(class, seconds)
	}
}

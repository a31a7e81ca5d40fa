package telemetry

import (
	"reflect"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// Several managers of a program report to one provider, as those of a Redlock do, and of a gauge the last value counts. So
// each reports the largest of all of them.

// peers are the managers that report to one provider.
var peers struct {
	sync.Mutex // guards the following; no other lock is taken with it held
	of         map[metric.MeterProvider][]*Telemetry
}

// meet adds t to those that report to p.
func (t *Telemetry) meet(p metric.MeterProvider) {
	if !reflect.TypeOf(p).Comparable() {
		return // then it is alone
	}
	peers.Lock()
	defer peers.Unlock()
	if peers.of == nil {
		peers.of = make(map[metric.MeterProvider][]*Telemetry)
	}
	t.provider = p
	peers.of[p] = append(peers.of[p], t)
}

// part takes t out.
func (t *Telemetry) part() {
	if t.provider == nil {
		return
	}
	peers.Lock()
	defer peers.Unlock()
	var rest []*Telemetry
	for _, other := range peers.of[t.provider] {
		if other != t {
			rest = append(rest, other)
		}
	}
	if peers.of[t.provider] = rest; rest == nil {
		delete(peers.of, t.provider)
	}
}

// others returns the other managers that report where t does.
func (t *Telemetry) others() (all []*Telemetry) {
	if t.provider == nil {
		return nil
	}
	peers.Lock()
	defer peers.Unlock()
	for _, other := range peers.of[t.provider] {
		if other != t {
			all = append(all, other)
		}
	}
	return all
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

package several

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var fleets = flag.String("fleets", "", "all: BenchmarkRedlock_Processes with each size")

// BenchmarkRedlock_Processes shows what a minority that goes away costs callers in several processes: how many
// grants a second they get while all members are well, how many with some down, after the two seconds that
// they have to find out, and how many of those the caller with the fewest gets. Use it with -benchtime 1x. It takes a minute;
// with -args -fleets all eight, for more sizes and for members that are down in the beginning.
func BenchmarkRedlock_Processes(b *testing.B) {
	for _, size := range []struct {
		members int
		dead    []int
		of      fleetOf
	}{
		{3, []int{0}, fleetOf{4, 1}},
		{3, []int{2}, fleetOf{2, 5}},
		{3, []int{1}, fleetOf{2, 10}},
		{5, []int{0, 2}, fleetOf{3, 2}},
		{5, []int{1, 4}, fleetOf{2, 5}},
	} {
		for name := range processOutages {
			for _, from := range []string{"beginning", "middle"} {
				if *fleets != "all" && (len(size.dead) != 1 || size.of.each != 5 || from == "beginning") {
					continue
				}
				b.Run(fmt.Sprintf("%s/members=%d/dead=%v/processes=%d/each=%d/from=%s", name, size.members, size.dead, size.of.processes, size.of.each, from), func(b *testing.B) {
					measureFleet(b, newWard(b, size.members), size.of, size.dead, name, from == "beginning")
				})
			}
		}
	}
}

// measureFleet measures with the minority dead, in the beginning or afterwards, and with all members.
func measureFleet(b *testing.B, w ward, of fleetOf, dead []int, outage string, first bool) {
	o := processOutages[outage]
	var f *fleet
	var healthy, faulty, least float64
	well := func() {
		f.rate(500*time.Millisecond, nil) // connections are made
		healthy, _ = f.rate(1500*time.Millisecond, nil)
	}
	ill := func() {
		again := func() {}
		if outage == "restarting" {
			again = func() { w.each(dead, o.down) }
		}
		f.rate(2*time.Second, again)
		faulty, least = f.rate(2*time.Second, again)
		w.each(dead, o.up)
	}
	for b.Loop() {
		if first {
			w.each(dead, o.down)
			f = of.launch(b, 5*time.Millisecond, w.addrs)
			ill()
			f.rate(2*time.Second, nil)
			well()
		} else {
			f = of.launch(b, 5*time.Millisecond, w.addrs)
			well()
			w.each(dead, o.down)
			ill()
		}
		f.end()
	}
	b.ReportMetric(healthy, "healthy-grants/s")
	b.ReportMetric(faulty, "faulty-grants/s")
	b.ReportMetric(faulty/healthy, "faulty/healthy")
	b.ReportMetric(least, "least-grants/s")
}

// rate returns how many grants a second all callers get for a while, and the caller with the fewest. It calls
// meanwhile every half a second.
func (f *fleet) rate(d time.Duration, meanwhile func()) (all, least float64) {
	f.tb.Helper()
	d = brief(d)
	before, begun := f.grants(), time.Now()
	for left := d; left > 0; left = d - time.Since(begun) {
		time.Sleep(min(left, time.Second/2))
		if meanwhile != nil {
			meanwhile()
		}
	}
	after, took := f.grants(), time.Since(begun).Seconds()
	least = float64(0)
	if len(after) == f.callers {
		least = -1
	}
	for caller := range after {
		n := float64(after[caller]-before[caller]) / took
		if all += n; least < 0 || n < least {
			least = n
		}
	}
	return all, least
}

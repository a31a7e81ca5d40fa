package explore

import (
	"fmt"
	"slices"
	"strings"
)

var faultNames = map[Fault]string{
	Leaves: "leaves", Fails: "loses its connection", Loses: "does not arrive", Strands: "is on a dead connection",
	Mute: "loses a message", Cut: "loses its inbox", Uncounted: "hears its inbox at a replica", Stops: "stops", Dies: "dies",
	Deletes: "is deleted", Unreplicated: "is not acknowledged",
}

// tell says what a step is.
func (w *World) tell(s step) string {
	proc := func() string { return fmt.Sprintf("process %d", s.n) }
	request := func() string { return w.flights[s.n].String() }
	call := func() string {
		c := w.callers[s.n]
		if c.Java {
			return fmt.Sprintf("caller %d of Redisson's", s.n)
		}
		return fmt.Sprintf("caller %d of process %d", s.n, c.Process)
	}
	switch s.what {
	case fires:
		return proc() + ": what is due"
	case answers:
		return request() + " is answered"
	case runs:
		return request() + " runs"
	case hears:
		return fmt.Sprintf("%s hears %q", proc(), w.procs[s.n].mail[0].payload)
	case subscribes:
		return proc() + " hears its inbox"
	case listens:
		return fmt.Sprintf("process %d hears the channel of lock %d", s.n/len(w.plan.Locks), s.n%len(w.plan.Locks))
	case comes:
		return call() + " comes"
	case hasHeard:
		return call() + " asks again"
	case does:
		return call() + " " + [...]string{Extends: "extends", Reenters: "re-enters", ReentersToRead: "re-enters to read"}[w.callers[s.n].Then[w.callers[s.n].then]]
	case unlocks:
		return call() + " unlocks"
	case sets:
		return fmt.Sprintf("there are to be %d permits", w.plan.Sets[w.sets])
	case closes:
		return proc() + " closes"
	case recovers:
		return proc() + " is well again"
	case passes:
		at, _ := w.next()
		return fmt.Sprintf("%v pass", at.Sub(w.now))
	}
	who := proc
	switch s.fault {
	case Leaves:
		who = call
	case Fails, Loses, Strands, Unreplicated:
		who = request
	case Deletes:
		who = func() string { return fmt.Sprintf("lock %d", s.n) }
	}
	return "FAULT: " + who() + " " + faultNames[s.fault]
}

func (f *flight) String() string {
	s := fmt.Sprintf("process %d's %s", f.p.id, f.script.Name())
	if i := slices.IndexFunc(f.args, func(a any) bool { return a == any(f.p.says.Owners) }); i >= 0 {
		for _, a := range f.args[i+1:] {
			s += " " + argument(a)
		}
	} else if i := slices.IndexFunc(f.args, func(a any) bool { t, ok := a.(string); return ok && strings.HasPrefix(t, f.p.says.Owners) }); i >= 0 {
		s += " " + strings.TrimPrefix(f.args[i].(string), f.p.says.Owners)
	}
	if f.ghost {
		s += " (a late copy)"
	}
	return s
}

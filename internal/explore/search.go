package explore

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Result is what an exploration has found.
type Result struct {
	States, Steps int
	Broken        string // the promise; "": all were kept
	Path          []int  // which of the possible steps was taken, each time
	Seed          uint64 // of a walk
}

// longest is how many steps lead from a state to rest, if all goes well. It takes some twenty for each caller.
const longest = 600

// search visits all states of a world.
type search struct {
	plan   *Plan
	redis  *redis
	states map[fingerprint]bool // true: it is known that the world comes to rest from there
	path   []int
	limit  int // of states; 0: none
	result Result
}

// Explore visits every state of a world. From each it has happened what happens if all goes well from then on, until the
// world was at rest.
func Explore(plan *Plan) Result { return explore(plan, 0) }

func explore(plan *Plan, limit int) Result {
	s := &search{plan: plan.complete(), limit: limit, redis: newRedis(), states: map[fingerprint]bool{}}
	s.visit(newWorld(s.plan, s.redis))
	s.result.States = len(s.states)
	return s.result
}

// red keeps the first promise that was broken, and the way there.
func (s *search) red(w *World) bool {
	if s.result.Broken == "" && w.judge.broken() != "" {
		s.result.Broken, s.result.Path = w.judge.broken(), append([]int(nil), s.path...)
	}
	return s.result.Broken != ""
}

// visit goes on from a world, which it changes.
func (s *search) visit(w *World) {
	at := w.fingerprint()
	settled, known := s.states[at]
	if known {
		if !settled { // nothing has gone wrong since it was there before
			w.judge.fails("runs away", "it never comes to rest")
			s.red(w)
		}
		return
	}
	s.states[at] = false
	steps := w.steps()
	from := 0
	if len(steps) == 0 || steps[0].option {
		w.judge.atRest()
		if s.red(w) {
			return
		}
		s.states[at] = true
	} else {
		s.path = append(s.path, 0)
		s.take(w, steps[0])
		if !s.red(w) {
			s.visit(w)
		}
		s.path = s.path[:len(s.path)-1]
		s.states[at] = true
		from, w = 1, nil
	}
	for i := from; i < len(steps) && s.result.Broken == "" && (s.limit == 0 || len(s.states) < s.limit); i++ {
		next := s.again()
		s.path = append(s.path, i)
		s.take(next, steps[i])
		if !s.red(next) {
			s.visit(next)
		}
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *search) take(w *World, x step) {
	s.result.Steps++
	w.take(x)
}

// again returns the world at the end of the path.
func (s *search) again() *World {
	w := newWorld(s.plan, s.redis)
	for _, i := range s.path {
		w.take(w.steps()[i])
	}
	return w
}

// Retrace says what happens on a path.
func Retrace(plan *Plan, path []int) string {
	var b strings.Builder
	w := newWorld(plan.complete(), newRedis())
	w.log = func(format string, args ...any) {
		fmt.Fprintf(&b, "%8v  %s\n", w.now.Sub(epoch), fmt.Sprintf(format, args...))
	}
	for _, i := range path {
		w.take(w.steps()[i])
	}
	return b.String()
}

// Walk goes through a world by chance. One in four steps is not what happens if all goes well; when the path is half of it, all
// goes well until the world is at rest. log gets each step.
func Walk(plan *Plan, seed uint64, steps int, log func(format string, args ...any)) (r Result) {
	r.Seed = seed
	w := newWorld(plan.complete(), newRedis())
	w.random, w.log = rand.New(rand.NewPCG(seed, 0)), log
	chance := rand.New(rand.NewPCG(seed, 1))
	for ; r.Steps < steps+longest; r.Steps++ {
		all := w.steps()
		if len(all) == 0 || r.Steps >= steps && all[0].option {
			w.judge.atRest()
			break
		}
		i := 0
		if r.Steps < steps && (all[0].option || chance.IntN(3) == 0) {
			i = pick(all, chance)
		}
		r.Path = append(r.Path, i)
		w.take(all[i])
		if w.judge.broken() != "" {
			break
		}
	}
	if r.Steps == steps+longest {
		w.judge.fails("runs away", "it never comes to rest")
	}
	r.Broken = w.judge.broken()
	return r
}

// pick draws a step. Faults, of which there are many, are as likely as all else together.
func pick(all []step, chance *rand.Rand) int {
	struck := 0
	for _, s := range all {
		if s.what == strikes {
			struck++
		}
	}
	if fine := len(all) - struck; struck > 0 && (fine == 0 || chance.IntN(4) == 0) {
		return fine + chance.IntN(struck)
	} else {
		return chance.IntN(fine)
	}
}

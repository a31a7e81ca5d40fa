package sim

import (
	"encoding/json"
	"slices"
)

// Shrink takes parts of a plan away for as long as red says that what is left is red still. Since a plan does not always run in the
// same way, red should try more than once.
func Shrink(plan *Plan, red func(*Plan) bool) *Plan {
	p := plan.clone()
	for size := -1; size != p.size(); {
		size = p.size()
		shrinkList(&p, red, func(p *Plan) *[]Fault { return &p.Faults })
		for i := range p.Processes {
			shrinkList(&p, red, func(p *Plan) *[]Worker { return &p.Processes[i].Workers })
		}
		for i := range p.Processes {
			for k := range p.Processes[i].Workers {
				shrinkList(&p, red, func(p *Plan) *[]Step { return &p.Processes[i].Workers[k].Steps })
			}
		}
	}
	return p
}

// shrinkList takes parts of a list away: halves of it, then smaller parts, then single elements.
func shrinkList[T any](p **Plan, red func(*Plan) bool, list func(*Plan) *[]T) {
	for part := len(*list(*p)); part > 0; part /= 2 {
		for from := 0; from < len(*list(*p)); {
			without := (*p).clone()
			all := list(without)
			*all = slices.Delete(*all, from, min(from+part, len(*all)))
			if red(without) {
				*p = without
			} else {
				from += part
			}
		}
	}
}

// size is how many parts a plan has.
func (p *Plan) size() int {
	n := len(p.Faults)
	for _, q := range p.Processes {
		for _, w := range q.Workers {
			n += 1 + len(w.Steps)
		}
	}
	return n
}

func (p *Plan) clone() *Plan {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: a plan is plain
	}
	to := new(Plan)
	if err := json.Unmarshal(text, to); err != nil {
		panic(err)
	}
	return to
}

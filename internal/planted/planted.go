// Package planted has bugs, for the tests that have to find them. An Overlay is the library with them, each asleep until the
// environment's variable Var names it. So one binary serves all.
package planted

// Bug is a bug that tests plant in the library.
type Bug struct {
	Name  string
	Edits []Edit

	// How the simulation finds it, see mutant.
	Shape                     Shape
	Stall, Linger, Leave, Not bool
	Quick                     bool
	By                        string
}

// Edit replaces a text of a file, which must occur exactly once. In Go, BUG stands in the new text for whether the bug is planted;
// a file of Lua is replaced only if it is.
type Edit struct{ File, Old, New string }

// Shape is that of the simulation's worlds.
type Shape string

const (
	OneServer    Shape = "one server"
	Majority     Shape = "majority"
	WithReplicas Shape = "replicas"
	FailOver     Shape = "fail-over"
	BesideJava   Shape = "beside Redisson"
	Crowd        Shape = "crowd"
)

// Bugs are those that must be found.
var Bugs = all()

func all() []Bug {
	bugs := make([]Bug, len(mutants))
	for i, m := range mutants {
		bugs[i] = Bug{Name: m.name, Shape: m.shape, Stall: m.stall, Linger: m.linger, Leave: m.leave, Not: m.not, Quick: m.quick, By: m.by}
		for _, e := range m.edits {
			bugs[i].Edits = append(bugs[i].Edits, Edit{e.file, e.old, e.new})
		}
	}
	return bugs
}

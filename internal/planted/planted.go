// Package planted has bugs, for the tests that have to find them. An Overlay is the library with them, each asleep until the
// environment's variable Var names it. So one binary serves all.
package planted

// Bug is a bug that tests plant in the library.
type Bug struct {
	Name  string
	Edits []Edit

	// Where the simulation looks for it. More than one of Stall, Linger, Leave and Extra may be needed at once.
	Shape  Shape  // of the worlds in which it can show; "": all
	Stall  bool   // it shows where processes stand still
	Linger bool   // it shows where processes keep locks after Unlock
	Leave  bool   // it shows where callers leave as they are granted a lock
	Extra  bool   // it shows where there are tickets, values, and holders that step aside
	Quick  bool   // it is looked for on every run
	By     string // the judges that must find it, of which one is enough: what their names match; "": any
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
	Crowd        Shape = "crowd"
	Elections    Shape = "elections"
	Semaphores   Shape = "semaphores"
	NoWorld      Shape = "none" // only the exploration shows the bug
)

// Package planted has bugs, for the tests that have to find them. An Overlay is the library with them, each asleep until the
// environment names it, see Wake. So one binary serves all.
package planted

// Bug is a bug that tests plant in the library.
type Bug struct {
	Name  string
	Edits []Edit

	In    string // flags of the simulation's worlds in which it can show; "": all worlds
	Quick bool   // the simulation looks for it on every run
	By    string // the judges that must find it there, of which one is enough: what their names match; "": any
}

// NoWorld is for bugs that only the exploration shows.
const NoWorld = "none"

// Edit replaces a text of a file, which must occur exactly once. In Go, BUG stands in the new text for whether the bug is planted;
// a file of Lua is replaced only if it is.
type Edit struct{ File, Old, New string }

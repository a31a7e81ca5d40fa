package vredis_test

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// ends are lines that close something. They have instructions, but not of their own.
var ends = regexp.MustCompile(`^(?:end[),]?|else|until false)$`)

// Each line of code in scripts/ is executed by a row of branches, which says what it does.
func TestScripts_LinesHaveRows(t *testing.T) {
	scripts := libraryScripts(t)
	source := map[string][]protocol.Line{}
	executed := map[protocol.Line]bool{} // false: by none
	// of returns the line of a file that a line of a script as Redis gets it was made of.
	of := func(script string, number int) (l protocol.Line, code bool) {
		if i := number - 2; i >= 0 && i < len(source[script]) { // else it was made of none
			l = source[script][i]
		}
		return l, l.Number > 0 && !ends.MatchString(strings.TrimSpace(l.Text))
	}
	for name, text := range scripts {
		source[name] = protocol.Lines(name)
		numbers, err := vredis.LinesOf(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range numbers {
			if l, code := of(name, number); code {
				executed[l] = false
			}
		}
	}
	for _, b := range branches {
		name, _, _ := strings.Cut(b.script, " ")
		b.run(t, scripts, func(number int) {
			if l, code := of(name, number); code {
				executed[l] = true
			}
		})
	}
	for _, l := range slices.SortedFunc(maps.Keys(executed), func(a, b protocol.Line) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Number-b.Number)
	}) {
		if !executed[l] {
			t.Errorf("no row executes scripts/%s:%d: %s", l.File, l.Number, strings.TrimSpace(l.Text))
		}
	}
}

// libraryScripts are all scripts of the library as Redis gets them, by name.
func libraryScripts(tb testing.TB) map[string]string {
	files, err := filepath.Glob("../../scripts/*.lua")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no scripts: %v", err)
	}
	all := map[string]string{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".lua")
		all[name] = protocol.Text(name)
	}
	return all
}

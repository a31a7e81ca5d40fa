package vredis_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// line is one of a file of the scripts.
type line struct {
	file   string // below scripts
	number int
	text   string
}

// sourceOf returns the lines of a file, those of the preludes that it names in their places.
func sourceOf(tb testing.TB, file string) (all []line) {
	text, err := os.ReadFile("../../scripts/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	number := 0
	for text := range strings.Lines(string(text)) {
		number++
		text = strings.TrimSpace(text)
		if preludes, ok := strings.CutPrefix(text, "-- prelude: "); ok {
			for _, p := range strings.Fields(preludes) {
				all = append(all, sourceOf(tb, "prelude/"+p+".lua")...)
			}
			continue
		}
		all = append(all, line{file, number, text})
	}
	return all
}

var (
	constant = regexp.MustCompile(`@[A-Z_]+@`)
	locals   = regexp.MustCompile(`^local [\w, ]+ = (?:(?:KEYS|ARGV)\[[^\]]+\](?:, |$))+$`)
)

// aligned returns, for the lines of a script as Redis gets it, the lines of files that they were made of. The first one has
// been made of none, nor have those that name parameters.
func aligned(tb testing.TB, name, text string) map[int]line {
	all, source := map[int]line{}, sourceOf(tb, name+".lua")
	composed := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 1; i < len(composed); i++ {
		have := strings.TrimSpace(composed[i])
		switch {
		case len(source) > 0 && same(source[0].text, have):
			all[i+1] = source[0]
			source = source[1:]
		case len(source) > 0 && strings.HasPrefix(source[0].text, "-- names: ") && locals.MatchString(have):
			source = source[1:]
		case have != "" && !locals.MatchString(have):
			tb.Fatalf("%s: line %d, %q, is of no file", name, i+1, have)
		}
	}
	if len(source) > 0 {
		tb.Fatalf("%s: lacks %v", name, source)
	}
	return all
}

// same reports whether a line with constants filled in may be of that text.
func same(text, have string) bool {
	if !constant.MatchString(text) {
		return text == have
	}
	parts := constant.Split(text, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, `(?:-?[\d.]+|'[^']+')`) + "$").MatchString(have)
}

// ends are lines that close something. They have instructions, but not of their own.
var ends = regexp.MustCompile(`^(?:end\)?|else|until false)$`)

// Each line of code in scripts/ is executed by a row of branches, which says what it does.
func TestScripts_LinesHaveRows(t *testing.T) {
	scripts := libraryScripts(t)
	source := map[string]map[int]line{}
	executed := map[line]bool{} // false: by none
	for name, text := range scripts {
		source[name] = aligned(t, name, text)
		numbers, err := vredis.LinesOf(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range numbers {
			if l, ok := source[name][number]; ok && !ends.MatchString(l.text) {
				executed[l] = false
			}
		}
	}
	for _, b := range branches {
		name, _, _ := strings.Cut(b.script, " ")
		b.run(t, scripts, func(number int) {
			if l, ok := source[name][number]; ok && !ends.MatchString(l.text) {
				executed[l] = true
			}
		})
	}
	for _, l := range slices.SortedFunc(maps.Keys(executed), func(a, b line) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.number-b.number)
	}) {
		if !executed[l] {
			t.Errorf("no row executes scripts/%s:%d: %s", l.file, l.number, l.text)
		}
	}
}

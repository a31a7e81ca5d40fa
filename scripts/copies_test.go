package scripts_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// handCopy is a part of a file that repeats a function, where a call would take too long:
//
//	-- copy of NAME (prelude/FILE.lua)    all of the function
//	-- copy from NAME (prelude/FILE.lua)  a part of it
//	-- copy from NAME (NAME.lua)          a part of a script
//	-- end
type handCopy struct {
	file, name, from string
	whole            bool
	lines            []string
}

var (
	copyBegins = regexp.MustCompile(`^ *-- copy (of|from) (\w+) \(((?:prelude/)?\w+\.lua)\)$`)
	copyEnds   = regexp.MustCompile(`^ *-- end$`)
	comment    = regexp.MustCompile(` *--.*$`)
	assigned   = regexp.MustCompile(`^(?:local )?\w+(?:, \w+)* = `)
)

// code returns the lines of a text without comments and indentation.
func code(lines []string) (all []string) {
	for _, line := range lines {
		if line = strings.TrimSpace(comment.ReplaceAllString(line, "")); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// copies finds those of a file.
func copies(t *testing.T, file string) (all []handCopy) {
	t.Helper()
	var open *handCopy
	for _, line := range strings.Split(read(t, file), "\n") {
		begins, ends := copyBegins.FindStringSubmatch(line), copyEnds.MatchString(line)
		switch {
		case begins != nil && open == nil:
			open = &handCopy{file: file, name: begins[2], from: begins[3], whole: begins[1] == "of"}
		case ends && open != nil:
			open.lines = code(open.lines)
			all = append(all, *open)
			open = nil
		case begins != nil || ends || strings.Contains(line, "-- copy "):
			t.Errorf("%s: cannot read %q here", file, line)
		case open != nil:
			open.lines = append(open.lines, line)
		}
	}
	if open != nil {
		t.Errorf("%s: the copy of %s has no end", file, open.name)
	}
	return all
}

// function returns what stands in a function of a prelude, or in a script.
func function(t *testing.T, file, name string) []string {
	t.Helper()
	if file == name+".lua" {
		return code(strings.Split(read(t, file), "\n"))
	}
	text := regexp.MustCompile(`(?ms)^local function ` + name + `\([^\n]*\)\n(.*?)^end$`).FindStringSubmatch(read(t, file))
	if text == nil {
		t.Fatalf("%s has no function %s", file, name)
	}
	return code(strings.Split(text[1], "\n"))
}

// differs says in what way a copy is none of the function; "": it is one. A copy does not return: where the function
// returns a local, the copy leaves it, and where the function returns another expression, a local of the copy gets it.
func (c *handCopy) differs(function []string) string {
	if !c.whole {
		for i := range function {
			if len(c.lines) > 0 && len(function)-i >= len(c.lines) && slices.Equal(function[i:i+len(c.lines)], c.lines) {
				return ""
			}
		}
		return "it stands nowhere in\n" + strings.Join(function, "\n")
	}
	want, have := slices.Clone(function), slices.Clone(c.lines)
	if returns, ok := strings.CutPrefix(want[len(want)-1], "return "); ok && regexp.MustCompile(`^\w+$`).MatchString(returns) {
		want = want[:len(want)-1]
	} else if ok && len(have) > 0 {
		have[len(have)-1] = assigned.ReplaceAllString(have[len(have)-1], "return ")
	}
	if slices.Equal(want, have) {
		return ""
	}
	return "it is to be\n" + strings.Join(want, "\n")
}

// What was copied by hand is what it was copied from.
func TestScripts_CopiesAreEqual(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*.lua", "prelude/*.lua"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			for _, c := range copies(t, file) {
				found++
				if d := c.differs(function(t, c.from, c.name)); d != "" {
					t.Errorf("%s: the copy of %s is\n%s\n%s", file, c.name, strings.Join(c.lines, "\n"), d)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d copies: prelude/lock.lua has more", found)
	}
}

// A copy that has lost or changed something is found.
func TestScripts_CopiesThatDifferAreFound(t *testing.T) {
	step := []string{"if more then", "a()", "else", "b()", "end"}
	count := []string{"local n = 0", "n = n + 1", "return n"}
	sum := []string{"return a + b"}
	for _, tc := range []struct {
		whole           bool
		lines, function []string
		equal           bool
	}{
		{true, step, step, true},
		{true, step[:4], step, false},
		{true, append(slices.Clone(step), "c()"), step, false},
		{true, nil, step, false},
		{false, step[1:3], step, true},
		{false, step, step, true},
		{false, []string{"a()", "b()"}, step, false},
		{false, nil, step, false},
		{true, count[:2], count, true},
		{true, count[:1], count, false},
		{true, []string{"local c = a + b"}, sum, true},
		{true, []string{"c = a + b"}, sum, true},
		{true, []string{"local c, d = a + b"}, sum, true},
		{true, []string{"local c = a - b"}, sum, false},
		{true, nil, sum, false},
	} {
		c := handCopy{whole: tc.whole, lines: tc.lines}
		if d := c.differs(tc.function); (d == "") != tc.equal {
			t.Errorf("%q, whole %v, of %q: %q", tc.lines, tc.whole, tc.function, d)
		}
	}
}

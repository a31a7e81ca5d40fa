package protocol

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/scripts"
)

// Text returns the script of that name as Redis gets it: a line by which SLOWLOG and MONITOR tell what an EVAL runs, and
// its file, with the functions of libraries that it calls, names for its parameters, and the constants.
func Text(name string) string {
	return "-- holdfast " + name + "\n" + text(Lines(name))
}

// Many returns the form of a script that runs it for many calls: scripts/form/many.lua around its text.
func Many(name, text string) string {
	form := strings.ReplaceAll(mustRead("form/many.lua"), "@NAME@", name)
	return "-- holdfast " + name + ", many\n" + strings.Replace(form, "-- script\n", text, 1)
}

// Function returns a function of a library, with those that it calls.
func Function(library, name string) string {
	c := composer{functions: functionsOf(library)}
	c.define(name)
	return text(c.lines)
}

// Line is one of a script as Redis gets it, behind the first, and the one below scripts/ that it was made of.
type Line struct {
	File   string
	Number int // 0: it gives parameters their names
	Text   string
}

func text(lines []Line) string {
	var all strings.Builder
	for _, l := range lines {
		all.WriteString(l.Text)
		all.WriteByte('\n')
	}
	return all.String()
}

// Lines returns those of a script. A function takes 55 ns to define, at each call, and a local 10 ns. So a function of a library, and
// a parameter, is defined where the script first needs it: before the first of its outermost statements that uses it.
func Lines(name string) []Line {
	file := read(name + ".lua")
	fixed, computed := map[string]string{}, map[string]string{} // parameters: what is in their place
	for _, m := range paramLine.FindAllStringSubmatch(text(file.header), -1) {
		array, index, name := m[1], m[2], m[3]
		value := array + "[" + spaced.ReplaceAllString(times.ReplaceAllString(index, "$1 * i"), " $1 ") + "]"
		if strings.Contains(index, "i") {
			computed[name] = value
		} else {
			fixed[name] = value
		}
	}
	c := composer{functions: functionsOf(file.includes...), lines: file.header}
	for _, statement := range statements(named(file.body, computed)) {
		used := names(statement)
		c.define(used...)
		if statement[0].Text == "" {
			c.lines, statement = append(c.lines, statement[0]), statement[1:]
		}
		c.lines = append(append(c.lines, locals("", fixed, used)...), statement...)
		for _, name := range used {
			delete(fixed, name)
		}
	}
	return c.lines
}

// composer puts a script together.
type composer struct {
	functions map[string][]Line // those that are not defined yet
	lines     []Line
}

// define adds functions of these names, behind those that they call.
func (c *composer) define(used ...string) {
	for _, name := range used {
		if function, ok := c.functions[name]; ok {
			delete(c.functions, name)
			c.define(names(function)...)
			c.lines = append(c.lines, function...)
		}
	}
}

// functionsOf returns the functions of libraries, and of those that they include.
func functionsOf(libraries ...string) map[string][]Line {
	all := map[string][]Line{}
	for _, library := range libraries {
		file := read("lib/" + library + ".lua")
		maps.Copy(all, functionsOf(file.includes...))
		for _, statement := range statements(file.body) {
			if m := functionLine.FindStringSubmatch(text(statement)); m != nil {
				all[m[1]] = statement
			}
		}
	}
	return all
}

// named gives the parameters whose position is computed from i their names, in each loop over i.
func named(body []Line, computed map[string]string) (all []Line) {
	for at, l := range body {
		all = append(all, l)
		if m := loopLine.FindStringSubmatch(l.Text); m != nil {
			end := slices.IndexFunc(body[at:], func(l Line) bool { return l.Text == m[1]+"end" })
			all = append(all, locals(m[1]+"  ", computed, names(body[at:at+end]))...)
		}
	}
	return all
}

// locals defines those of the parameters that are used.
func locals(indent string, parameters map[string]string, used []string) []Line {
	var left, right []string
	for _, name := range used {
		if value, ok := parameters[name]; ok {
			left, right = append(left, name), append(right, value)
		}
	}
	if left == nil {
		return nil
	}
	return []Line{{Text: indent + "local " + strings.Join(left, ", ") + " = " + strings.Join(right, ", ")}}
}

// source is a file: the comment that it begins with, the libraries that it includes, and the rest.
type source struct {
	header, body []Line
	includes     []string
}

func read(name string) (f source) {
	for i, line := range strings.Split(strings.TrimSuffix(mustRead(name), "\n"), "\n") {
		l := Line{name, i + 1, fill(line)}
		if includes, ok := strings.CutPrefix(line, "-- include: "); ok {
			f.includes = strings.Fields(includes)
		} else if f.body == nil && strings.HasPrefix(line, "--") {
			f.header = append(f.header, l)
		} else if line != "" || f.body == nil || f.body[len(f.body)-1].Text != "" {
			f.body = append(f.body, l)
		}
	}
	return f
}

// statements divides a text into those that are in no other, each with the comment before it.
func statements(body []Line) (all [][]Line) {
	var comment []Line
	for _, l := range body {
		switch {
		case l.Text == "" || strings.HasPrefix(l.Text, "--"):
			comment = append(comment, l)
		case len(all) > 0 && goesOn.MatchString(l.Text):
			last := len(all) - 1
			all[last] = append(append(all[last], comment...), l)
			comment = nil
		default:
			all = append(all, append(comment, l))
			comment = nil
		}
	}
	return all
}

// names returns the names in a text, in their order, but for fields of tables.
func names(lines []Line) (all []string) {
	for _, l := range lines {
		for _, name := range word.FindAllString(comment.ReplaceAllString(quoted.ReplaceAllString(l.Text, ""), ""), -1) {
			if !strings.Contains(name, ".") && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// fill puts the constants into a line. A name that is none stays, and the script has an error of syntax.
func fill(line string) string {
	return constantName.ReplaceAllStringFunc(line, func(name string) string {
		return cmp.Or(constants[strings.Trim(name, "@")], name)
	})
}

var (
	paramLine    = regexp.MustCompile(`(?m)^-- (KEYS|ARGV)\[([\di+-]+)\] +(\w+): `)
	times        = regexp.MustCompile(`(\d)i`) // 4i-3 becomes 4 * i - 3
	spaced       = regexp.MustCompile(`([+-])`)
	functionLine = regexp.MustCompile(`(?m)^local function (\w+)`)
	loopLine     = regexp.MustCompile(`^( *)for i = `)
	goesOn       = regexp.MustCompile(`^(?: |end|else|until)`)
	word         = regexp.MustCompile(`[.\w]+`)
	quoted       = regexp.MustCompile(`'[^']*'`)
	comment      = regexp.MustCompile(`--.*`)
	constantName = regexp.MustCompile(`@[A-Z_]+@`)
)

func mustRead(file string) string {
	text, err := scripts.Files.ReadFile(file)
	if err != nil {
		panic(err) // cannot happen: it is embedded
	}
	return string(text)
}

// Package protocol knows what the scripts are and what they answer: each script as Redis gets it, the codes of its
// replies, and which values are none of its replies.
package protocol

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/scripts"
)

// Text returns the script of that name as Redis gets it: a line by which SLOWLOG and MONITOR tell what an EVAL runs, and
// its file, with names for its parameters, each prelude in the place that names it, and the constants.
func Text(name string) string {
	return "-- holdfast " + name + "\n" + fill(include(named(mustRead(name+".lua"))))
}

// Many returns the form of a script that runs it for many calls: scripts/form/many.lua around its text.
func Many(name, text string) string {
	form := strings.ReplaceAll(mustRead("form/many.lua"), "@NAME@", name)
	return "-- holdfast " + name + ", many\n" + strings.Replace(form, "-- script\n", text, 1)
}

// Prelude returns a prelude, with those that it names.
func Prelude(name string) string { return fill(include(mustRead("prelude/" + name + ".lua"))) }

// include puts the preludes into the places that name them. A function takes 55 ns to define,
// at each call: what a script does often, it does before that line, and what it does
// rarely, it defines only there.
func include(text string) string {
	return preludeLine.ReplaceAllStringFunc(text, func(line string) string {
		var preludes strings.Builder
		for _, p := range strings.Fields(line)[2:] {
			preludes.WriteString(include(mustRead("prelude/" + p + ".lua")))
		}
		return preludes.String()
	})
}

// named gives the parameters of a script the names that its header has for them, as locals. A line "-- names: lock owner"
// becomes those of these parameters. In a loop over i it may name those whose position is computed from i. A script that names
// none of the others gets them all before its first line of code. A local takes 10 ns: so what runs often names what it uses.
func named(text string) string {
	params := map[string]string{}
	var fixed []string
	header := headerLines.FindString(text)
	for _, m := range paramLine.FindAllStringSubmatch(header, -1) {
		array, index, name := m[1], m[2], m[3]
		if !strings.Contains(index, "i") {
			fixed = append(fixed, name)
		}
		params[name] = array + "[" + spaced.ReplaceAllString(times.ReplaceAllString(index, "$1 * i"), " $1 ") + "]"
	}
	names := strings.Fields(strings.Join(namesLine.FindAllString(text, -1), " "))
	if len(fixed) > 0 && !slices.ContainsFunc(fixed, func(name string) bool { return slices.Contains(names, name) }) {
		text = header + "\n-- names: " + strings.Join(fixed, " ") + "\n" + text[len(header):]
	}
	return namesLine.ReplaceAllStringFunc(text, func(line string) string {
		names := strings.Fields(line)[2:]
		values := make([]string, len(names))
		for i, name := range names {
			values[i] = params[name]
		}
		indent := line[:strings.Index(line, "--")]
		return indent + "local " + strings.Join(names, ", ") + " = " + strings.Join(values, ", ") + "\n"
	})
}

// fill puts the constants into a text. A name that is none stays, and the script has an error of syntax.
func fill(text string) string {
	return constantName.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := constants[strings.Trim(name, "@")]; ok {
			return value
		}
		return name
	})
}

var (
	headerLines  = regexp.MustCompile(`\A(?:--.*\n)*`)
	paramLine    = regexp.MustCompile(`(?m)^-- (KEYS|ARGV)\[([\di+-]+)\] +(\w+): `)
	times        = regexp.MustCompile(`(\d)i`) // 4i-3 becomes 4 * i - 3
	spaced       = regexp.MustCompile(`([+-])`)
	namesLine    = regexp.MustCompile(`(?m)^ *-- names:(?: \w+)+\n`)
	preludeLine  = regexp.MustCompile(`(?m)^ *-- prelude:(?: \w+)+\n`)
	constantName = regexp.MustCompile(`@[A-Z_]+@`)
)

func mustRead(file string) string {
	text, err := scripts.Files.ReadFile(file)
	if err != nil {
		panic(err) // cannot happen: it is embedded
	}
	return string(text)
}

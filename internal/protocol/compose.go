// Package protocol knows what the scripts are and what they answer: each script as Redis gets it, the codes of its
// replies, and which values are none of its replies.
package protocol

import (
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/scripts"
)

// Text returns the script of that name as Redis gets it: a line by which SLOWLOG and MONITOR tell what an EVAL runs, and
// its file, with each prelude in the place that names it.
func Text(name string) string { return "-- holdfast " + name + "\n" + compose(name+".lua") }

// Prelude returns a prelude, with those that it names.
func Prelude(name string) string { return compose("prelude/" + name + ".lua") }

func compose(file string) string {
	return preludeLine.ReplaceAllStringFunc(mustRead(file), func(line string) string {
		var preludes []string
		for _, p := range strings.Fields(line)[2:] {
			preludes = append(preludes, Prelude(p))
		}
		return strings.Join(preludes, "")
	})
}

// preludeLine names the preludes that stand in its place. A function takes 55 ns to define,
// at each call: what a script does often, it does before that line, and what it does
// rarely, it defines only there.
var preludeLine = regexp.MustCompile(`(?m)^ *-- prelude:( \w+)+\n`)

func mustRead(file string) string {
	text, err := scripts.Files.ReadFile(file)
	if err != nil {
		panic(err) // cannot happen: it is embedded
	}
	return string(text)
}

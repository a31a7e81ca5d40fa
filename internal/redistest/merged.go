package redistest

import (
	"slices"
	"strconv"
	"strings"
)

// callsOf returns the calls of a script that a command makes, each as the command that would make it alone. It is several for
// the form of a script for many calls (scripts/form/many.lua), and none for what calls no script.
func callsOf(cmd []string) (calls [][]string) {
	keys, argv, ok := ScriptCall(cmd)
	if !ok {
		return nil
	}
	one := [][]string{cmd}
	if len(argv) < 2 || strings.Trim(argv[1], "=-") != "" {
		return one
	}
	width, err := strconv.Atoi(argv[0])
	if err != nil || width <= 0 || len(keys)%width != 0 {
		return one
	}
	shape, args := argv[1], argv[2:]
	shared, own := strings.Count(shape, "="), strings.Count(shape, "-")
	if len(args) != shared+own*len(keys)/width {
		return one
	}
	shares, owns := args[:shared], args[shared:]
	for mine := range slices.Chunk(keys, width) {
		call := append([]string{cmd[0], cmd[1], argv[0]}, mine...)
		left := shares
		for _, sign := range shape {
			if sign == '=' {
				call, left = append(call, left[0]), left[1:]
			} else {
				call, owns = append(call, owns[0]), owns[1:]
			}
		}
		calls = append(calls, call)
	}
	return calls
}

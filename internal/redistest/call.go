package redistest

import (
	"crypto/sha1" // what EVALSHA is defined with
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ScriptCall splits a call of a script into its keys and its other arguments. It reports false for other commands.
func ScriptCall(cmd []string) (keys, argv []string, ok bool) {
	if !Command("evalsha")(cmd) && !Command("eval")(cmd) || len(cmd) < 3 {
		return nil, nil, false
	}
	n, err := strconv.Atoi(cmd[2])
	if err != nil || n < 0 || n > len(cmd)-3 {
		return nil, nil, false
	}
	return cmd[3 : 3+n], cmd[3+n:], true
}

// Calls returns the calls of a script that a command makes, each as the command that would make it alone. It is several for
// the form of a script for many calls (scripts/form/many.lua), and none for what calls no script.
func Calls(cmd []string) (calls [][]string) {
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

// names are those of the library's scripts by their digests, of each whose text has been seen. Content decides, so all tests of a process
// share them.
var names sync.Map

// titleLine is how a script begins, and its form for many calls.
var titleLine = regexp.MustCompile(`^-- holdfast (\w+)`)

// ScriptName returns the name of the library's script that a command calls; "": it calls none, or one whose text has not been seen.
func ScriptName(cmd []string) string {
	if _, _, ok := ScriptCall(cmd); !ok {
		return ""
	}
	digest := cmd[1]
	if title := titleLine.FindStringSubmatch(cmd[1]); title != nil {
		sum := sha1.Sum([]byte(cmd[1]))
		digest = hex.EncodeToString(sum[:])
		names.Store(digest, title[1])
	}
	name, _ := names.Load(digest)
	text, _ := name.(string)
	return text
}

package state

import (
	"crypto/sha1" // what EVALSHA is defined with
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// monitored is one call of a script of the library.
type monitored struct {
	name       string
	keys, argv []string
}

// othersRight reports whether key is the right of a reader whose id the caller of the script does not know.
func (c *monitored) othersRight(key string) bool {
	at := regexp.MustCompile(`^.*\}:(.+):rwlock_timeout:\d+$`).FindStringSubmatch(key)
	if at == nil {
		return false
	}
	switch c.name {
	case "inspect":
		return true // its caller knows no reader
	case "rw_acquire", "rw_release", "rw_downgrade":
		return at[1] != strings.TrimSuffix(c.argv[0], ":write")
	case "renew_read":
		return !slices.ContainsFunc(c.argv[2:], func(tail string) bool { return at[1] == c.argv[1]+tail })
	}
	return false
}

// scriptNames returns the names of the library's scripts by their digests.
func scriptNames(t *testing.T) map[string]string {
	names := map[string]string{}
	files, err := fs.Glob(scripts.Files, "*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".lua")
		names[fmt.Sprintf("%x", sha1.Sum([]byte(protocol.Text(name))))] = name
	}
	return names
}

// libraryCall returns the call of a script of the library; false for another command.
func libraryCall(names map[string]string, cmd []string) (*monitored, bool) {
	keys, argv, ok := redistest.ScriptCall(cmd)
	if !ok {
		return nil, false
	}
	digest := cmd[1]
	if strings.EqualFold(cmd[0], "eval") {
		digest = fmt.Sprintf("%x", sha1.Sum([]byte(cmd[1])))
	}
	name, ok := names[digest]
	return &monitored{name, keys, argv}, ok
}

// monitorLine returns who sent a command that MONITOR tells of, "lua" for a script, and the command.
func monitorLine(t *testing.T, line string) (from string, cmd []string) {
	head := regexp.MustCompile(`^\d+\.\d+ \[\d+ ([^\]]+)\]`).FindStringSubmatch(line)
	if head == nil {
		return "", nil
	}
	for rest := line[len(head[0]):]; rest != ""; {
		quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, " "))
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		arg, _ := strconv.Unquote(quoted)
		cmd, rest = append(cmd, arg), strings.TrimPrefix(rest, " ")[len(quoted):]
	}
	return head[1], cmd
}

// touched returns the keys of a command, as the server sees them.
func touched(t *testing.T, srv *redistest.Server, cmd []string) []string {
	switch strings.ToLower(cmd[0]) {
	case "time", "publish", "pubsub", "cluster":
		return nil
	}
	args := []any{"command", "getkeys"}
	for _, a := range cmd {
		args = append(args, a)
	}
	keys, err := srv.Admin().Do(t.Context(), args...).StringSlice()
	if err != nil {
		t.Fatalf("%q: %v", cmd, err)
	}
	return keys
}

package protocol_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/scripts"
)

// texts are all scripts as Redis gets them, by name.
func texts(t *testing.T) map[string]string {
	t.Helper()
	files, err := fs.Glob(scripts.Files, "*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	all := map[string]string{}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".lua")
		all[name] = protocol.Text(name)
	}
	return all
}

// The first line says which script it is, and nothing for the composer is left.
func TestText(t *testing.T) {
	for name, text := range texts(t) {
		if !strings.HasPrefix(text, "-- holdfast "+name+"\n") {
			t.Errorf("%s begins with %.40q", name, text)
		}
		if left := regexp.MustCompile(`-- include:|@\w+@`).FindString(text); left != "" {
			t.Errorf("%s has %q, which is for the composer", name, left)
		}
	}
}

// Each name that a script uses is a local by then, or one of Lua's and Redis's: what Redis does not tell before the line
// runs, which may be for a rare case.
func TestText_KnowsItsNames(t *testing.T) {
	for name, text := range texts(t) {
		chunk, err := parse.Parse(strings.NewReader(text), name)
		if err != nil {
			t.Error(err)
			continue
		}
		proto, err := lua.Compile(chunk, name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, global := range globals(proto) {
			switch global {
			case "KEYS", "ARGV", "redis", "string", "math", "table", "type", "tonumber", "tostring", "ipairs", "unpack":
			default:
				t.Errorf("%s uses %s, which is defined nowhere before", name, global)
			}
		}
	}
}

// globals returns the names of the global variables that a function uses, and those inside it.
func globals(f *lua.FunctionProto) (all []string) {
	for _, instruction := range f.Code {
		if op := int(instruction >> 26); op == lua.OP_GETGLOBAL || op == lua.OP_SETGLOBAL {
			all = append(all, f.Constants[instruction&0x3ffff].String())
		}
	}
	for _, inside := range f.FunctionPrototypes {
		all = append(all, globals(inside)...)
	}
	return all
}

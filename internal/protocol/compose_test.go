package protocol_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/vredis"
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

// servers are a real one and one inside the process.
func servers(t *testing.T, f func(t *testing.T, rdb *redis.Client)) {
	t.Run("real", func(t *testing.T) { f(t, redistest.Start(t).Admin()) })
	t.Run("virtual", func(t *testing.T) {
		s := vredis.New(vredis.Options{})
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: s.Dial})
		defer rdb.Close()
		f(t, rdb)
	})
}

// Each call has its own keys and arguments, and its own reply, whatever the others end with.
func TestMany_RunsEachCallByItself(t *testing.T) {
	form := protocol.Many("probe", `-- holdfast probe
local what = ARGV[2]
local seen = #KEYS .. ' ' .. KEYS[1] .. ' ' .. KEYS[2] .. ' ' .. #ARGV .. ' ' .. ARGV[1] .. ' ' .. ARGV[3]
if what == 'fine' then
  return seen
elseif what == 'list' then
  return {seen, {1, 2}, false, 'behind'}
elseif what == 'nothing' then
  return
elseif what == 'false' then
  return false
elseif what == 'number' then
  return redis.call('incr', KEYS[1])
elseif what == 'returned' then
  return redis.pcall('hget', 'text', 'x')
elseif what == 'own' then
  return redis.error_reply('HOLDFAST of its own')
elseif what == 'replica' then
  return redis.error_reply('READONLY of its own')
elseif what == 'raised' then
  redis.call('incr', KEYS[1])
  redis.call('hget', 'text', 'x')
elseif what == 'lua' then
  return what.x.y
elseif what == 'unknown' then
  redis.call('nosuchcommand')
end
return global
`)
	servers(t, func(t *testing.T, rdb *redis.Client) {
		rdb.Set(t.Context(), "text", "x", 0)
		cases := []struct{ what, want string }{
			{"fine", "2 a0 b0 3 first 0"},
			{"list", "[2 a1 b1 3 first 1 [1 2] <nil> behind]"},
			{"nothing", "<nil>"},
			{"raised", "WRONGTYPE Operation against a key holding the wrong kind of value (in user_script: probe)"},
			{"false", "<nil>"},
			{"returned", "WRONGTYPE Operation against a key holding the wrong kind of value"},
			{"number", "1"},
			{"own", "HOLDFAST of its own"},
			{"replica", "READONLY of its own"},
			{"lua", "ERR user_script:…"},
			{"unknown", "ERR Unknown…"},
			{"global", "ERR user_script:…"},
			{"fine", "2 a12 b12 3 first 12"},
		}
		args := []any{"eval", form, 2 * len(cases)}
		for i := range cases {
			args = append(args, fmt.Sprint("a", i), fmt.Sprint("b", i))
		}
		args = append(args, 2, "=--", "first")
		for i, c := range cases {
			args = append(args, c.what, i)
		}
		replies, err := rdb.Do(t.Context(), args...).Slice()
		if err != nil || len(replies) != len(cases)+1 {
			t.Fatalf("%d replies, %v", len(replies), err)
		}
		for i, c := range cases {
			if err, failed := replies[i].(error); failed {
				t.Errorf("%s: an error between replies: %v", c.what, err)
			}
		}
		for failures := replies[len(cases)].([]any); len(failures) > 0; failures = failures[2:] {
			i := failures[0].(int64) - 1
			if replies[i] != nil {
				t.Errorf("%s: failed, and the reply is %v", cases[i].what, replies[i])
			}
			replies[i] = failures[1]
		}
		for i, c := range cases {
			if got := fmt.Sprint(replies[i]); got != c.want && (!strings.HasSuffix(c.want, "…") || !strings.HasPrefix(got, strings.TrimSuffix(c.want, "…"))) {
				t.Errorf("%s: %q, want %q", c.what, got, c.want)
			}
		}
		redistest.Want(t, rdb.Get(t.Context(), "a3").Val(), "1", "what was written before an error is %q")
	})
}

// Calls can have no argument of their own, or none that they share.
func TestMany_Shapes(t *testing.T) {
	form := protocol.Many("probe", "-- holdfast probe\nreturn KEYS[1] .. ' ' .. table.concat(ARGV, ' ')\n")
	servers(t, func(t *testing.T, rdb *redis.Client) {
		for shape, tc := range map[string]struct {
			args []any
			want string
		}{
			"":   {nil, "[x  y  []]"},
			"=":  {[]any{"1"}, "[x 1 y 1 []]"},
			"-":  {[]any{"1", "2"}, "[x 1 y 2 []]"},
			"=-": {[]any{"1", "2", "3"}, "[x 1 2 y 1 3 []]"},
			"--": {[]any{"1", "2", "3", "4"}, "[x 1 2 y 3 4 []]"},
		} {
			got, err := rdb.Do(t.Context(), append([]any{"eval", form, 2, "x", "y", 1, shape}, tc.args...)...).Result()
			if fmt.Sprint(got) != tc.want || err != nil {
				t.Errorf("%q: %v, %v, want %s", shape, got, err, tc.want)
			}
		}
	})
}

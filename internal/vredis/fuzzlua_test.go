package vredis_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// expression is a random call of a function of Lua's own that the library's scripts use.
type expression struct{ *rand.Rand }

func (g expression) of(all ...string) string { return all[g.IntN(len(all))] }

func (g expression) text() string {
	return g.of(`""`, `"a"`, `"abc"`, `"a,b,,c"`, `"12"`, `" 12 "`, `"-3.5"`, `"0x1f"`, `"1e3"`, `"a.b"`, `"x:1:write"`, `"{a}"`, `"%d"`, `"\0b"`, `"é"`, `"nan"`)
}

func (g expression) number() string {
	return g.of("0", "1", "2", "3", "-1", "-2", "7", "2.5", "-0.5", "1e15", "2^53", "100000000000000", "1/3")
}

func (g expression) pattern() string {
	return g.of(`"."`, `"a"`, `"^a"`, `"c$"`, `"%d+"`, `"^%d+"`, `"(%d+)"`, `"([^:]+):(%d+)"`, `"()b"`, `"%a*"`, `"(a)(b)"`, `"[a-c]-"`, `"%s"`, `"^[^,]*"`,
		`","`, `"x?:"`, `"^(.-):(%d*)"`)
}

func (g expression) value() string {
	switch g.IntN(8) {
	case 0:
		return g.of("nil", "true", "false")
	case 1, 2, 3:
		return g.number()
	}
	return g.text()
}

func (g expression) list() string {
	n, all := g.IntN(5), []string(nil)
	for range n {
		all = append(all, g.of("1", "2", "3", "10", "2.5"))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (g expression) call() string {
	switch g.IntN(17) {
	case 0, 1:
		return fmt.Sprintf("string.match(%s, %s)", g.text(), g.pattern())
	case 2, 3:
		return fmt.Sprintf("string.find(%s, %s%s)", g.text(), g.pattern(), g.of("", ", 1, true", ", 1", ", 2"))
	case 4, 5:
		return fmt.Sprintf("string.sub(%s, %s%s)", g.text(), g.of("1", "2", "3", "-1", "-2", "7"), g.of("", ", 1", ", 3", ", -1"))
	case 6, 7:
		return fmt.Sprintf("tonumber(%s)", g.value())
	case 8:
		return fmt.Sprintf("tostring(%s)", g.value())
	case 9:
		return fmt.Sprintf("with(%s, function(t) return table.sort(t%s) end)", g.list(), g.of("", ", function(a, b) return a > b end"))
	case 10:
		return fmt.Sprintf("unpack(%s%s)", g.list(), g.of("", ", 2", ", 1, 3", ", 3, 1"))
	case 11:
		return fmt.Sprintf("select(%s, %s, %s, %s)", g.of("1", "2", "3", "-1", "-3", "'#'"), g.value(), g.value(), g.value())
	case 12:
		return fmt.Sprintf("(function(a, b, c) a, b, c = %s return a, b, c end)(1, 2, 3)", g.of("nil, a, b", "b, a", "c, a, b", "a and b, a", "(function() return b, a end)()", "1, 2, 3, 4"))
	case 13:
		return fmt.Sprintf("math.floor(%s)", g.number())
	case 14:
		return fmt.Sprintf("math.%s(%s, %s)", g.of("max", "min"), g.number(), g.number())
	}
	// Not ^: the sign of what is no number depends on the processor.
	return fmt.Sprintf("%s %s %s", g.value(), g.of("+", "-", "*", "/", "%", "..", "==", "~=", "<", "<=", "and", "or"), g.value())
}

// script returns a script that answers with what call returns: how many values, their types and texts.
func (g expression) script(call string) string {
	return `
local function packed(...)
  local all = {tostring(select('#', ...))}
  for i = 1, select('#', ...) do
    local v = select(i, ...)
    all[#all + 1] = type(v) .. ' ' .. (type(v) == 'table' and 'table' or tostring(v))
  end
  return all
end
local function with(t, f)
  return packed(f(t))[1], #t, tostring(t[1])
end
local all = packed(pcall(function() return ` + call + ` end))
if all[2] == 'boolean false' then
  return 'error'
end
return all`
}

// Lua's own functions return as many values here as they do there, of the same types.
func TestDifference_Lua(t *testing.T) {
	t.Parallel()
	p := newPair(t, 2, nil)
	g := expression{rand.New(rand.NewPCG(*seed, 3))}
	found := map[string]bool{}
	for range *lists {
		call := g.call()
		none := func(int64) [][]string { return nil }
		script := func(int64) [][]string { return [][]string{{"eval", g.script(call), "0"}} }
		if difference := p.compare(none, script, nil); difference != "" {
			if kind, _, _ := strings.Cut(call, "("); !found[kind] {
				found[kind] = true
				t.Errorf("%s: %s", call, difference)
			}
		}
	}
}

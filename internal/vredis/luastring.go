package vredis

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringLibrary are the functions of the table string, as Lua 5.1 has them: gopher-lua's return another number of values
// at times, and write numbers in another way. string.format is in luatext.go.
var stringLibrary = map[string]lua.LGFunction{
	"byte":    luaByte,
	"char":    luaChar,
	"find":    func(L *lua.LState) int { return findOrMatch(L, true) },
	"format":  luaFormat,
	"gmatch":  luaGmatch,
	"gsub":    luaGsub,
	"len":     func(L *lua.LState) int { L.Push(lua.LNumber(len(checkText(L, 1)))); return 1 },
	"lower":   mapped(func(c byte) byte { return c + 'a' - 'A' }, 'A', 'Z'),
	"match":   func(L *lua.LState) int { return findOrMatch(L, false) },
	"rep":     luaRep,
	"reverse": luaReverse,
	"sub":     luaSub,
	"upper":   mapped(func(c byte) byte { return c - 'a' + 'A' }, 'a', 'z'),
}

// checkText is the argument as a text; a number is one.
func checkText(L *lua.LState, n int) string {
	if v, ok := L.Get(n).(lua.LNumber); ok {
		return textOf(v)
	}
	return L.CheckString(n)
}

// checkInt is the argument as a whole number; a text may be one.
func checkInt(L *lua.LState, n int) int {
	if text, ok := L.Get(n).(lua.LString); ok {
		if f, ok := toNumber(string(text)); ok {
			return int(truncate(f))
		}
	}
	return int(truncate(float64(L.CheckNumber(n))))
}

func optInt(L *lua.LState, n, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return checkInt(L, n)
}

// fromStart makes of a place that may count from the end one that counts from the beginning, where 1 is the first.
func fromStart(at, length int) int {
	if at < 0 {
		at += length + 1
	}
	return max(at, 0)
}

func mapped(change func(byte) byte, from, to byte) lua.LGFunction {
	return func(L *lua.LState) int {
		b := []byte(checkText(L, 1))
		for i, c := range b {
			if from <= c && c <= to {
				b[i] = change(c)
			}
		}
		L.Push(lua.LString(b))
		return 1
	}
}

func luaReverse(L *lua.LState) int {
	b := []byte(checkText(L, 1))
	slices.Reverse(b)
	L.Push(lua.LString(b))
	return 1
}

func luaRep(L *lua.LState) int {
	L.Push(lua.LString(strings.Repeat(checkText(L, 1), max(checkInt(L, 2), 0))))
	return 1
}

func luaSub(L *lua.LState) int {
	s := checkText(L, 1)
	from, to := max(fromStart(checkInt(L, 2), len(s)), 1), min(fromStart(optInt(L, 3, -1), len(s)), len(s))
	if from > to {
		L.Push(lua.LString(""))
	} else {
		L.Push(lua.LString(s[from-1 : to]))
	}
	return 1
}

func luaByte(L *lua.LState) int {
	s := checkText(L, 1)
	from := fromStart(optInt(L, 2, 1), len(s))
	to := min(fromStart(optInt(L, 3, from), len(s)), len(s))
	from = max(from, 1)
	for i := from; i <= to; i++ {
		L.Push(lua.LNumber(s[i-1]))
	}
	return max(to-from+1, 0)
}

func luaChar(L *lua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		c := checkInt(L, i+1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	L.Push(lua.LString(b))
	return 1
}

// newMatcher is for the text and the pattern that are the first two arguments.
func newMatcher(L *lua.LState) *matcher {
	m := &matcher{state: L, text: checkText(L, 1), pattern: checkText(L, 2)}
	if strings.Contains(m.pattern, "\x00") {
		L.RaiseError("vredis does not do patterns with a zero byte")
	}
	return m
}

// findOrMatch is string.find, which returns the place of a match before its captures, and string.match.
func findOrMatch(L *lua.LState, find bool) int {
	m := newMatcher(L)
	at := min(max(fromStart(optInt(L, 3, 1), len(m.text))-1, 0), len(m.text))
	if find && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(m.pattern, "^$*+?.([%-")) {
		i := strings.Index(m.text[at:], m.pattern)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(at + i + 1))
		L.Push(lua.LNumber(at + i + len(m.pattern)))
		return 2
	}
	var anchored bool
	m.pattern, anchored = strings.CutPrefix(m.pattern, "^")
	from, end := m.search(at, anchored)
	switch {
	case from < 0:
		L.Push(lua.LNil)
		return 1
	case !find:
		return m.push(from, end)
	}
	L.Push(lua.LNumber(from + 1))
	L.Push(lua.LNumber(end))
	if len(m.captures) == 0 {
		return 2
	}
	return 2 + m.push(from, end)
}

func luaGmatch(L *lua.LState) int {
	m := newMatcher(L)
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m.state = L
		from, end := m.search(at, false)
		if from < 0 {
			at = len(m.text) + 1
			return 0
		}
		at = end
		if end == from {
			at++
		}
		return m.push(from, end)
	}))
	return 1
}

func luaGsub(L *lua.LState) int {
	m := newMatcher(L)
	var anchored bool
	m.pattern, anchored = strings.CutPrefix(m.pattern, "^")
	most := optInt(L, 4, len(m.text)+1)
	switch L.Get(3).(type) {
	case lua.LString, lua.LNumber, *lua.LTable, *lua.LFunction:
	default:
		L.ArgError(3, "string/function/table expected")
	}
	var b strings.Builder
	n, s := 0, 0
	for n < most {
		m.captures = m.captures[:0]
		e := m.match(s, 0)
		if e >= 0 {
			n++
			b.WriteString(m.replacement(L.Get(3), s, e))
		}
		if e > s {
			s = e
		} else if s < len(m.text) {
			b.WriteByte(m.text[s])
			s++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	b.WriteString(m.text[min(s, len(m.text)):])
	L.Push(lua.LString(b.String()))
	L.Push(lua.LNumber(n))
	return 2
}

// replacement is what a match from s to e is replaced by.
func (m *matcher) replacement(with lua.LValue, s, e int) string {
	L := m.state
	var v lua.LValue
	switch with := with.(type) {
	case *lua.LTable:
		v = L.GetTable(with, m.value(0, s, e))
	case *lua.LFunction:
		L.Push(with)
		L.Call(m.push(s, e), 1)
		v = L.Get(-1)
		L.Pop(1)
	default:
		return m.filled(textOf(with), s, e)
	}
	switch v := v.(type) {
	case lua.LString, lua.LNumber:
		return textOf(v)
	default:
		if lua.LVAsBool(v) {
			L.RaiseError("invalid replacement value (a %s)", v.Type())
		}
		return m.text[s:e]
	}
}

// filled is a replacement in which %0 to %9 stand for the match and its captures.
func (m *matcher) filled(with string, s, e int) string {
	var b strings.Builder
	for i := 0; i < len(with); i++ {
		if with[i] != '%' {
			b.WriteByte(with[i])
			continue
		}
		if i++; i == len(with) {
			m.state.RaiseError("vredis does not do a replacement that ends with '%%'")
		}
		switch c := with[i]; {
		case c == '0':
			b.WriteString(m.text[s:e])
		case isDigit(c):
			b.WriteString(textOf(m.value(int(c-'1'), s, e)))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

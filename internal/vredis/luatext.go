package vredis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// What gopher-lua does differently from Lua 5.1: numbers and texts.

func textOf(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return formatG(float64(n), 14)
	}
	return v.String()
}

func luaToString(L *lua.LState) int {
	v := L.CheckAny(1)
	switch v.(type) {
	case lua.LNumber, lua.LString, lua.LBool, *lua.LNilType:
		L.Push(lua.LString(textOf(v)))
	default:
		L.Push(L.ToStringMeta(v))
	}
	return 1
}

// luaError is error: gopher-lua's passes over functions of Go to find a line.
func luaError(L *lua.LState) int {
	v, level := L.Get(1), L.OptInt(2, 1)
	if text, ok := v.(lua.LString); ok && level > 0 {
		if frame, ok := L.GetStack(level); ok {
			if _, err := L.GetInfo("Sl", frame, lua.LNil); err == nil && frame.CurrentLine > 0 {
				v = lua.LString(fmt.Sprintf("%s:%d: %s", "user_script", frame.CurrentLine, string(text)))
			}
		}
	}
	L.Error(v, 0)
	return 0
}

// luaPcall is pcall as Redis has it: of an error that a command has raised it returns the text.
func luaPcall(L *lua.LState) int {
	L.CheckAny(1)
	if err := L.PCall(L.GetTop()-1, lua.MultRet, nil); err != nil {
		var v lua.LValue = lua.LString(err.Error())
		if e, ok := err.(*lua.ApiError); ok {
			v = e.Object
			if t, ok := v.(*lua.LTable); ok {
				if text, ok := t.RawGetString("err").(lua.LString); ok {
					v = text
				}
			}
		}
		L.SetTop(0)
		L.Push(lua.LFalse)
		L.Push(v)
		return 2
	}
	L.Insert(lua.LTrue, 1)
	return L.GetTop()
}

// luaAsText is what asText calls.
func luaAsText(L *lua.LState) int {
	if n, ok := L.Get(1).(lua.LNumber); ok {
		L.Push(lua.LString(formatG(float64(n), 14)))
	} else {
		L.SetTop(1)
	}
	return 1
}

// luaRest is a % b.
func luaRest(L *lua.LState) int {
	n := [2]float64{}
	for i := range n {
		switch v := L.Get(i + 1).(type) {
		case lua.LNumber:
			n[i] = float64(v)
			continue
		case lua.LString:
			if f, ok := toNumber(string(v)); ok {
				n[i] = f
				continue
			}
		}
		L.RaiseError("attempt to perform arithmetic on a %s value", L.Get(i+1).Type())
	}
	a, b := n[0], n[1]
	floor := math.Floor(a / b) // a product of its own, rounded: never fused with the difference
	L.Push(lua.LNumber(a - float64(floor*b)))
	return 1
}

const space = " \t\n\v\f\r"

// toNumber reads a number as Lua does: by strtod, with spaces around.
func toNumber(text string) (float64, bool) {
	text = strings.Trim(text, space)
	if text == "" {
		return 0, false
	}
	return strtod(text)
}

func luaToNumber(L *lua.LState) int {
	v, base := L.CheckAny(1), optInt(L, 2, 10)
	if base != 10 {
		if base < 2 || base > 36 {
			L.ArgError(2, "base out of range")
		}
		if n, ok := wholeNumber(strings.Trim(checkText(L, 1), space), base); ok {
			L.Push(lua.LNumber(n))
		} else {
			L.Push(lua.LNil)
		}
		return 1
	}
	switch v := v.(type) {
	case lua.LNumber:
		L.Push(v)
		return 1
	case lua.LString:
		if f, ok := toNumber(string(v)); ok {
			L.Push(lua.LNumber(f))
			return 1
		}
	}
	L.Push(lua.LNil)
	return 1
}

// wholeNumber reads one to a base as C does, where a negative one is taken from 2^64.
func wholeNumber(text string, base int) (uint64, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	digits = strings.ToLower(digits)
	if base == 16 {
		digits = strings.TrimPrefix(digits, "0x")
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}

// luaFormat is string.format.
func luaFormat(L *lua.LState) int {
	format := L.CheckString(1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		from := i
		for i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
			i++
		}
		if i == len(format) {
			L.RaiseError("invalid option '%%' to 'format'")
		}
		arg++
		b.WriteString(formatOne(L, format[from:i], format[i], arg))
	}
	L.Push(lua.LString(b.String()))
	return 1
}

func formatOne(L *lua.LState, flags string, verb byte, arg int) string {
	number := func() float64 {
		if text, ok := L.Get(arg).(lua.LString); ok {
			if f, ok := toNumber(string(text)); ok {
				return f
			}
		}
		return float64(L.CheckNumber(arg))
	}
	switch verb {
	case 'd', 'i':
		return fmt.Sprintf("%"+flags+"d", truncate(number()))
	case 'u', 'x', 'X', 'o':
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+flags+string(verb), uint64(truncate(number())))
	case 'c':
		return fmt.Sprintf("%"+flags+"s", string([]byte{byte(truncate(number()))}))
	case 'f', 'e', 'E':
		if f := number(); !math.IsInf(f, 0) && !math.IsNaN(f) {
			return fmt.Sprintf("%"+flags+string(verb), f)
		}
		width, _, _ := strings.Cut(flags, ".")
		return fmt.Sprintf("%"+strings.ReplaceAll(width, "0", "")+"s", formatG(number(), 6))
	case 'g', 'G':
		width, precision, given := strings.Cut(flags, ".")
		if strings.ContainsAny(width, "+ #0") {
			L.RaiseError("vredis does not do string.format('%%%s%c')", flags, verb)
		}
		p := 6
		if given {
			p, _ = strconv.Atoi(precision)
		}
		text := formatG(number(), max(p, 1))
		if verb == 'G' {
			text = strings.ToUpper(text)
		}
		return fmt.Sprintf("%"+width+"s", text)
	case 's':
		switch v := L.Get(arg).(type) {
		case lua.LString, lua.LNumber:
			text := textOf(v)
			if strings.Contains(text, "\x00") {
				L.RaiseError("vredis does not do string.format('%%s') of a zero byte")
			}
			return fmt.Sprintf("%"+flags+"s", text)
		default:
			if arg > L.GetTop() {
				L.ArgError(arg, "string expected, got no value")
			}
			L.ArgError(arg, "string expected, got "+v.Type().String())
		}
	}
	L.RaiseError("vredis does not do string.format('%%%c')", verb)
	return ""
}

package vredis

import (
	"crypto/sha1" // what redis.sha1hex computes
	"encoding/hex"
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

// orNil is for a function that returns nothing where Lua's returns nil.
func orNil(f lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		if n := f(L); n > 0 {
			return n
		}
		L.Push(lua.LNil)
		return 1
	}
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
	v := L.CheckAny(1)
	if base := L.OptInt(2, 10); base != 10 {
		if n, err := strconv.ParseInt(strings.Trim(L.CheckString(1), space), base, 64); err == nil {
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

func stringTable(L *lua.LState, all []string) *lua.LTable {
	t := L.CreateTable(len(all), 0)
	for _, x := range all {
		t.Append(lua.LString(x))
	}
	return t
}

func oneField(L *lua.LState, name, value string) *lua.LTable {
	t := L.NewTable()
	t.RawSetString(name, lua.LString(value))
	return t
}

// toLua makes what a script gets of a reply, in RESP2's form.
func toLua(L *lua.LState, v any) lua.LValue {
	list := func(all []any) lua.LValue {
		t := L.CreateTable(len(all), 0)
		for _, x := range all {
			t.Append(toLua(L, x))
		}
		return t
	}
	switch v := v.(type) {
	case nil, nullArray:
		return lua.LFalse
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case double:
		return lua.LString(formatDouble(float64(v)))
	case status:
		return oneField(L, "ok", string(v))
	case replyError:
		return oneField(L, "err", string(v))
	case []any:
		return list(v)
	case mapReply:
		return list(v)
	case setReply:
		return list(v)
	}
	panic(fmt.Sprintf("vredis: no Lua value of %T", v))
}

func errorText(t *lua.LTable) string {
	text, ok := t.RawGetString("err").(lua.LString)
	if !ok {
		return "ERR unknown error"
	}
	return string(text)
}

// fromLua makes the reply of what a script returns.
func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		return truncate(float64(v))
	case lua.LString:
		return string(v)
	case lua.LBool:
		if v {
			return int64(1)
		}
		return nil
	case *lua.LTable:
		if _, ok := v.RawGetString("err").(lua.LString); ok {
			return replyError(errorText(v))
		}
		if s, ok := v.RawGetString("ok").(lua.LString); ok {
			return status(s)
		}
		for _, kind := range []string{"double", "map", "set", "big_number", "verbatim_string"} {
			if v.RawGetString(kind) != lua.LNil {
				return notDone("replies of RESP3 by scripts")
			}
		}
		all := []any{}
		for i := 1; ; i++ {
			x := v.RawGetInt(i)
			if x == lua.LNil {
				return all
			}
			all = append(all, fromLua(x))
		}
	}
	return nil
}

// truncate is C's (long long), as x86 does it.
func truncate(f float64) int64 {
	if math.IsNaN(f) || f >= 1<<63 || f < -1<<63 {
		return math.MinInt64
	}
	return int64(f)
}

func luaErrorReply(L *lua.LState) int {
	text, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		L.Push(oneField(L, "err", "ERR wrong number or type of arguments"))
		return 1
	}
	code, message, found := strings.Cut(strings.TrimPrefix(string(text), "-"), " ")
	if !found {
		code, message = "ERR", code
	}
	L.Push(oneField(L, "err", code+" "+strings.Trim(message, "\r\n")))
	return 1
}

func luaStatusReply(L *lua.LState) int {
	text, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		L.Push(oneField(L, "err", "ERR wrong number or type of arguments"))
		return 1
	}
	L.Push(oneField(L, "ok", string(text)))
	return 1
}

func luaSHA1(L *lua.LState) int {
	if L.GetTop() != 1 {
		L.Error(oneField(L, "err", "ERR wrong number of arguments"), 0)
	}
	sum := sha1.Sum([]byte(textOf(L.Get(1))))
	L.Push(lua.LString(hex.EncodeToString(sum[:])))
	return 1
}

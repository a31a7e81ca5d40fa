package vredis

import (
	"crypto/sha1" // what redis.sha1hex computes
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

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

package vredis

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Functions of the table named table that gopher-lua has in another way.

// luaConcat is table.concat.
func luaConcat(L *lua.LState) int {
	t, between := L.CheckTable(1), ""
	if L.Get(2) != lua.LNil {
		between = checkText(L, 2)
	}
	var b strings.Builder
	from, to := optInt(L, 3, 1), optInt(L, 4, t.Len())
	for i := from; i <= to; i++ {
		switch v := t.RawGetInt(i).(type) {
		case lua.LString, lua.LNumber:
			b.WriteString(textOf(v))
		default:
			L.ArgError(1, "table contains non-strings")
		}
		if i < to {
			b.WriteString(between)
		}
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// luaRemove is table.remove: where there is nothing to remove it returns nothing.
func luaRemove(L *lua.LState) int {
	t := L.CheckTable(1)
	last := t.Len()
	at := optInt(L, 2, last)
	if at < 1 || at > last {
		return 0
	}
	L.Push(t.Remove(at))
	return 1
}

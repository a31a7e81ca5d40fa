package vredis

import (
	"crypto/sha1" // what EVALSHA is defined with; not used for secrecy
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// machine runs scripts, one at a time; guarded by Server.mu.
type machine struct {
	srv     *Server
	state   *lua.LState
	globals *lua.LTable
	guarded *lua.LTable // the environment of scripts that write a global variable, which is an error
	handler *lua.LFunction
}

// missing are names that a real server's scripts know.
var missing = map[string]bool{
	"cjson": true, "cmsgpack": true, "struct": true, "bit": true, "coroutine": true, "load": true, "loadstring": true, "setfenv": true, "getfenv": true,
	"collectgarbage": true, "gcinfo": true, "newproxy": true, "server": true, "os": true,
}

func newMachine(s *Server) *machine {
	L := lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 1024 * 4, RegistryMaxSize: 1024 * 256, CallStackSize: 200})
	for _, lib := range []struct {
		name string
		open lua.LGFunction
	}{{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath}} {
		L.Push(L.NewFunction(lib.open))
		L.Push(lua.LString(lib.name))
		L.Call(1, 0)
	}
	m := &machine{srv: s, state: L, globals: L.G.Global}
	for _, name := range []string{"dofile", "loadfile", "print", "require", "module", "_printregs", "_GOPHER_LUA_VERSION", "collectgarbage", "load", "loadstring", "getfenv", "setfenv", "newproxy"} {
		m.globals.RawSetString(name, lua.LNil)
	}
	m.globals.RawSetString("tostring", L.NewFunction(luaToString))
	m.globals.RawSetString("tonumber", L.NewFunction(luaToNumber))
	m.globals.RawSetString(textFunction, L.NewFunction(luaAsText))
	m.globals.RawSetString(restFunction, L.NewFunction(luaRest))
	m.globals.RawSetString("error", L.NewFunction(luaError))
	m.globals.RawSetString("pcall", L.NewFunction(luaPcall))
	str := m.globals.RawGetString("string").(*lua.LTable)
	str.RawSetString("match", L.NewFunction(orNil(str.RawGetString("match").(*lua.LFunction).GFunction)))
	refuse := func(what string) *lua.LFunction {
		return L.NewFunction(func(L *lua.LState) int { L.RaiseError("vredis does not do %s", what); return 0 })
	}
	math := m.globals.RawGetString("math").(*lua.LTable)
	math.RawSetString("random", refuse("math.random"))
	math.RawSetString("randomseed", refuse("math.randomseed"))
	str.RawSetString("dump", refuse("string.dump"))
	m.globals.RawSetString("redis", m.library(refuse))

	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		name := L.Get(2).String()
		if missing[name] {
			L.RaiseError("vredis does not do %s", name)
		}
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", name)
		return 0
	}))
	meta.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Attempt to modify a readonly table")
		return 0
	}))
	m.globals.Metatable = meta
	guard := L.NewTable()
	guard.RawSetString("__index", m.globals)
	guard.RawSetString("__newindex", meta.RawGetString("__newindex"))
	m.guarded = L.NewTable()
	m.guarded.Metatable = guard
	m.handler = L.NewFunction(handleError)
	return m
}

// library is the table redis.
func (m *machine) library(refuse func(string) *lua.LFunction) *lua.LTable {
	L := m.state
	t := L.NewTable()
	for name, f := range map[string]lua.LGFunction{
		"call":         func(L *lua.LState) int { return m.call(L, true) },
		"pcall":        func(L *lua.LState) int { return m.call(L, false) },
		"error_reply":  luaErrorReply,
		"status_reply": luaStatusReply,
		"sha1hex":      luaSHA1,
		"log":          func(*lua.LState) int { return 0 },
	} {
		t.RawSetString(name, L.NewFunction(f))
	}
	for _, name := range []string{"setresp", "set_repl", "acl_check_cmd", "breakpoint", "debug", "register_function", "replicate_commands"} {
		t.RawSetString(name, refuse("redis."+name))
	}
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(i))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
	return t
}

// handleError makes of whatever a script fails with a table with its text and the line.
func handleError(L *lua.LState) int {
	e, ok := L.Get(1).(*lua.LTable)
	if !ok {
		e = L.NewTable()
		e.RawSetString("err", lua.LString("ERR "+textOf(L.Get(1))))
	}
	for level := 1; level < 4; level++ {
		frame, ok := L.GetStack(level)
		if !ok {
			break
		}
		if _, err := L.GetInfo("Sl", frame, lua.LNil); err == nil && frame.CurrentLine > 0 {
			e.RawSetString("source", lua.LString("@user_script"))
			e.RawSetString("line", lua.LNumber(frame.CurrentLine))
			break
		}
	}
	L.Push(e)
	return 1
}

// run runs a script and returns its reply.
func (m *machine) run(sc *script, keys, argv []string) any {
	L := m.state
	L.SetTop(0)
	m.globals.RawSetString("KEYS", stringTable(L, keys))
	m.globals.RawSetString("ARGV", stringTable(L, argv))
	f := L.NewFunctionFromProto(sc.proto)
	if writesGlobals(sc.proto) {
		f.Env = m.guarded
	}
	L.Push(f)
	err := L.PCall(0, 1, m.handler)
	if err == nil {
		result := L.Get(-1)
		L.SetTop(0)
		return fromLua(result)
	}
	failure, ok := err.(*lua.ApiError)
	if !ok {
		return errorf("ERR Error running script %s, execution failure", sc.sha)
	}
	t, ok := failure.Object.(*lua.LTable)
	if !ok {
		return errorf("ERR %v script: %s", err, sc.sha)
	}
	text := errorText(t)
	source, line := t.RawGetString("source"), t.RawGetString("line")
	if source != lua.LNil && line != lua.LNil {
		text += fmt.Sprintf(" script: %s, on %s:%s.", sc.sha, textOf(source), textOf(line))
	}
	return replyError(text)
}

// call is redis.call and redis.pcall.
func (m *machine) call(L *lua.LState, raise bool) int {
	reply := m.perform(L)
	v := toLua(L, reply)
	if _, failed := reply.(replyError); failed && raise {
		L.Error(v, 0)
	}
	L.Push(v)
	return 1
}

func (m *machine) perform(L *lua.LState) any {
	n := L.GetTop()
	if n == 0 {
		return replyError("ERR Please specify at least one argument for this redis lib call")
	}
	args := make([]string, n)
	for i := range args {
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = formatG(float64(v), 17)
		default:
			return replyError("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	return m.srv.callFromScript(args)
}

// script is one that the server has been given.
type script struct {
	sha   string
	proto *lua.FunctionProto
}

// invocation is a script that runs.
type invocation struct {
	caller *conn
	now    time.Time // stands still
	wrote  bool      // it has called a command that writes
}

const noScript = replyError("NOSCRIPT No matching script. Please use EVAL.")

// load compiles a script and keeps it.
func (s *Server) load(text string) (*script, any) {
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	if known := s.scripts[sha]; known != nil {
		return known, nil
	}
	if strings.HasPrefix(text, "#!") {
		return nil, notDone("scripts with a shebang")
	}
	proto, err := compile(sha, text)
	if err != nil {
		return nil, errorf("ERR Error compiling script (new function): %s", err)
	}
	s.scripts[sha] = &script{sha, proto}
	return s.scripts[sha], nil
}

func (s *Server) eval(c *conn, a []string, find func(string) (*script, any)) any {
	if strings.HasPrefix(strings.ToLower(a[0]), "evalsha") && len(a[1]) != 40 {
		return noScript
	}
	n, ok := parseInt(a[2])
	switch {
	case !ok:
		return notInt
	case n > int64(len(a)-3):
		return replyError("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return replyError("ERR Number of keys can't be negative")
	}
	sc, wrong := find(a[1])
	if wrong != nil {
		return wrong
	}
	s.call = &invocation{caller: c, now: s.now()}
	defer func() { s.call = nil }()
	return s.lua.run(sc, a[3:3+n], a[3+n:])
}

func (s *Server) loaded(sha string) (*script, any) {
	if sc := s.scripts[strings.ToLower(sha)]; sc != nil {
		return sc, nil
	}
	return nil, noScript
}

func cmdEval(s *Server, c *conn, a []string) any { return s.eval(c, a, s.load) }

func cmdEvalsha(s *Server, c *conn, a []string) any { return s.eval(c, a, s.loaded) }

func cmdScriptLoad(s *Server, _ *conn, a []string) any {
	sc, wrong := s.load(a[2])
	if wrong != nil {
		return wrong
	}
	return sc.sha
}

func cmdScriptExists(s *Server, _ *conn, a []string) any {
	all := []any{}
	for _, sha := range a[2:] {
		all = append(all, boolean(s.scripts[strings.ToLower(sha)] != nil))
	}
	return all
}

func cmdScriptFlush(s *Server, _ *conn, a []string) any {
	if len(a) > 3 || len(a) == 3 && !strings.EqualFold(a[2], "sync") && !strings.EqualFold(a[2], "async") {
		return replyError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	clear(s.scripts)
	return statusOK
}

// callFromScript executes a command that a script calls.
func (s *Server) callFromScript(args []string) any {
	d, wrong := lookup(args)
	if wrong != nil {
		if strings.Contains(string(wrong.(replyError)), "wrong number") {
			return replyError("ERR Wrong number of args calling Redis command from script")
		}
		return replyError("ERR Unknown Redis command called from script")
	}
	c := s.call.caller
	switch {
	case d.has("noscript"):
		wrong = replyError("ERR This Redis command is not allowed from script")
	default:
		if wrong = c.user.refusesInScript(d, args); wrong == nil {
			wrong = s.refusesInScript(d)
		}
	}
	if wrong != nil {
		s.executed(c, args, wrong)
		return wrong
	}
	return s.run(c, d, args)
}

package vredis

import (
	"crypto/sha1" // what EVALSHA is defined with; not used for secrecy
	"encoding/hex"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

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

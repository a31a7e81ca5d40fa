package vredis

import (
	"math"
	"strconv"
	"strings"
)

func (s *Server) text(key string) (string, bool, any) {
	e, wrong := s.db.typed(key, "string")
	if e == nil {
		return "", false, wrong
	}
	return e.str, true, nil
}

func cmdGet(s *Server, _ *conn, a []string) any {
	text, ok, wrong := s.text(a[1])
	switch {
	case wrong != nil:
		return wrong
	case !ok:
		return nil
	}
	return text
}

func cmdSet(s *Server, _ *conn, a []string) any {
	var nx, xx, get, keep bool
	var at int64
	for i := 3; i < len(a); i++ {
		o := strings.ToLower(a[i])
		switch o {
		case "nx":
			if xx {
				return syntaxErr
			}
			nx = true
		case "xx":
			if nx {
				return syntaxErr
			}
			xx = true
		case "get":
			get = true
		case "keepttl":
			if at != 0 {
				return syntaxErr
			}
			keep = true
		case "ex", "px", "exat", "pxat":
			if at != 0 || keep || i+1 == len(a) {
				return syntaxErr
			}
			i++
			at = int64(i)
		default:
			return syntaxErr
		}
	}
	if at != 0 {
		var wrong any
		if at, wrong = s.setTime(a[at], strings.ToLower(a[at-1]), "set"); wrong != nil {
			return wrong
		}
	}
	old := s.db.get(a[1])
	var reply any = statusOK
	if get {
		if old != nil && old.kind != "string" {
			return wrongType
		}
		if reply = nil; old != nil {
			reply = old.str
		}
	}
	if nx && old != nil || xx && old == nil {
		if get {
			return reply
		}
		return nil
	}
	if keep && old != nil {
		at = old.expires
	}
	s.store(a[1], a[2], at)
	return reply
}

// setTime is expireTime for the commands that write a value: the time must be above 0.
func (s *Server) setTime(text, unit, name string) (int64, any) {
	n, ok := parseInt(text)
	if ok && n <= 0 {
		return 0, errorf("ERR invalid expire time in '%s' command", name)
	}
	factor := int64(1)
	if strings.HasPrefix(unit, "ex") {
		factor = 1000
	}
	return s.expireTime(text, name, factor, strings.HasSuffix(unit, "at"))
}

func (s *Server) store(key, text string, at int64) {
	if at != 0 && at <= s.db.millis {
		s.db.del(key)
		return
	}
	s.db.set(key, &entry{kind: "string", str: text, expires: at})
}

func cmdSetnx(s *Server, _ *conn, a []string) any {
	if s.db.get(a[1]) != nil {
		return int64(0)
	}
	s.store(a[1], a[2], 0)
	return int64(1)
}

func cmdSetex(s *Server, _ *conn, a []string) any {
	at, wrong := s.setTime(a[2], "ex", "setex")
	if wrong != nil {
		return wrong
	}
	s.store(a[1], a[3], at)
	return statusOK
}

func (s *Server) add(key string, by int64) any {
	text, ok, wrong := s.text(key)
	if wrong != nil {
		return wrong
	}
	n := int64(0)
	if ok {
		if n, ok = parseInt(text); !ok {
			return notInt
		}
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		return replyError("ERR increment or decrement would overflow")
	}
	e, _ := s.db.made(key, "string")
	e.str = strconv.FormatInt(n+by, 10)
	return n + by
}

func cmdIncr(s *Server, _ *conn, a []string) any { return s.add(a[1], 1) }
func cmdDecr(s *Server, _ *conn, a []string) any { return s.add(a[1], -1) }

func cmdIncrby(s *Server, _ *conn, a []string) any {
	n, ok := parseInt(a[2])
	if !ok {
		return notInt
	}
	return s.add(a[1], n)
}

func cmdDecrby(s *Server, _ *conn, a []string) any {
	n, ok := parseInt(a[2])
	switch {
	case !ok:
		return notInt
	case n == math.MinInt64:
		return replyError("ERR decrement would overflow")
	}
	return s.add(a[1], -n)
}

func cmdMget(s *Server, _ *conn, a []string) any {
	all := []any{}
	for _, key := range a[1:] {
		if e := s.db.get(key); e != nil && e.kind == "string" {
			all = append(all, e.str)
		} else {
			all = append(all, nil)
		}
	}
	return all
}

func cmdMset(s *Server, _ *conn, a []string) any {
	if len(a)%2 == 0 {
		return errorf("ERR wrong number of arguments for '%s' command", strings.ToLower(a[0]))
	}
	for i := 1; i < len(a); i += 2 {
		s.store(a[i], a[i+1], 0)
	}
	return statusOK
}

func cmdGetdel(s *Server, c *conn, a []string) any {
	reply := cmdGet(s, c, a)
	if _, ok := reply.(string); ok {
		s.db.del(a[1])
	}
	return reply
}

func cmdGetset(s *Server, c *conn, a []string) any {
	reply := cmdGet(s, c, a)
	if _, wrong := reply.(replyError); !wrong {
		s.store(a[1], a[2], 0)
	}
	return reply
}

func cmdStrlen(s *Server, _ *conn, a []string) any {
	text, _, wrong := s.text(a[1])
	if wrong != nil {
		return wrong
	}
	return integer(len(text))
}

func cmdAppend(s *Server, _ *conn, a []string) any {
	e, wrong := s.db.made(a[1], "string")
	if wrong != nil {
		return wrong
	}
	e.str += a[2]
	return integer(len(e.str))
}

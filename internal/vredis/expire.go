package vredis

import (
	"math"
	"strings"
)

// expireTime reads a time and makes server milliseconds of it: of seconds if unit is 1000, from now on
// unless absolute.
func (s *Server) expireTime(text, name string, unit int64, absolute bool) (at int64, wrong any) {
	n, ok := parseInt(text)
	if !ok {
		return 0, notInt
	}
	invalid := errorf("ERR invalid expire time in '%s' command", name)
	if unit == 1000 {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, invalid
		}
		n *= 1000
	}
	if !absolute {
		if n > math.MaxInt64-s.db.millis {
			return 0, invalid
		}
		n += s.db.millis
	}
	return n, nil
}

func (s *Server) expire(a []string, unit int64, absolute bool) any {
	name := strings.ToLower(a[0])
	var nx, xx, gt, lt bool
	for _, o := range a[3:] {
		switch strings.ToLower(o) {
		case "nx":
			nx = true
		case "xx":
			xx = true
		case "gt":
			gt = true
		case "lt":
			lt = true
		default:
			return errorf("ERR Unsupported option %s", o)
		}
	}
	if nx && (xx || gt || lt) {
		return replyError("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if gt && lt {
		return replyError("ERR GT and LT options at the same time are not compatible")
	}
	at, wrong := s.expireTime(a[2], name, unit, absolute)
	if wrong != nil {
		return wrong
	}
	e := s.db.get(a[1])
	if e == nil {
		return int64(0)
	}
	switch old := e.expires; {
	case nx && old != 0, xx && old == 0,
		gt && (old == 0 || at <= old), lt && old != 0 && at >= old:
		return int64(0)
	}
	if at <= s.db.millis {
		s.db.del(a[1])
	} else {
		s.db.expireAt(a[1], e, at)
	}
	return int64(1)
}

func cmdExpire(s *Server, _ *conn, a []string) any    { return s.expire(a, 1000, false) }
func cmdPexpire(s *Server, _ *conn, a []string) any   { return s.expire(a, 1, false) }
func cmdExpireat(s *Server, _ *conn, a []string) any  { return s.expire(a, 1000, true) }
func cmdPexpireat(s *Server, _ *conn, a []string) any { return s.expire(a, 1, true) }

// ttl is what is left of a key's time, or when it ends; -1: it has none; -2: there is no key.
func (s *Server) ttl(key string, absolute bool) int64 {
	e := s.db.get(key)
	switch {
	case e == nil:
		return -2
	case e.expires == 0:
		return -1
	case absolute:
		return e.expires
	}
	return e.expires - s.db.millis
}

func inSeconds(millis int64) int64 {
	if millis < 0 {
		return millis
	}
	return (millis + 500) / 1000
}

func cmdTtl(s *Server, _ *conn, a []string) any         { return inSeconds(s.ttl(a[1], false)) }
func cmdPttl(s *Server, _ *conn, a []string) any        { return s.ttl(a[1], false) }
func cmdPexpiretime(s *Server, _ *conn, a []string) any { return s.ttl(a[1], true) }

func cmdPersist(s *Server, _ *conn, a []string) any {
	e := s.db.get(a[1])
	if e == nil || e.expires == 0 {
		return int64(0)
	}
	e.expires = 0
	return int64(1)
}

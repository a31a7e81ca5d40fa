package vredis

import (
	"math"
	"strconv"
	"strings"
)

func cmdHset(s *Server, _ *conn, a []string) any {
	if len(a)%2 != 0 {
		return errorf("ERR wrong number of arguments for '%s' command", strings.ToLower(a[0]))
	}
	e, wrong := s.db.made(a[1], "hash")
	if wrong != nil {
		return wrong
	}
	n := 0
	for i := 2; i < len(a); i += 2 {
		if e.hash.set(a[i], a[i+1]) {
			n++
		}
	}
	return integer(n)
}

// fieldsOf returns the fields of a hash, or the members of a set; of no key none.
func (s *Server) fieldsOf(key, kind string) (*fields, any) {
	e, wrong := s.db.typed(key, kind)
	if e == nil {
		return newFields(), wrong
	}
	return e.hash, nil
}

// read answers a question about a hash or a set.
func (s *Server) read(key, kind string, f func(*fields) any) any {
	all, wrong := s.fieldsOf(key, kind)
	if wrong != nil {
		return wrong
	}
	return f(all)
}

func (f *fields) value(name string) any {
	if v, ok := f.get(name); ok {
		return v
	}
	return nil
}

func cmdHget(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any { return f.value(a[2]) })
}

func cmdHmget(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any {
		all := []any{}
		for _, name := range a[2:] {
			all = append(all, f.value(name))
		}
		return all
	})
}

func cmdHexists(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any { _, has := f.get(a[2]); return boolean(has) })
}

func cmdHlen(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any { return integer(f.len()) })
}

func (f *fields) list(names, values bool) []any {
	all := []any{}
	for name, value := range f.all {
		if names {
			all = append(all, name)
		}
		if values {
			all = append(all, value)
		}
	}
	return all
}

func cmdHgetall(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any { return mapReply(f.list(true, true)) })
}

func cmdHkeys(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any { return f.list(true, false) })
}

// cmdHscan gives all fields at once, as Redis does for a small hash, which it keeps as a listpack.
func cmdHscan(s *Server, _ *conn, a []string) any {
	if _, ok := strtoul(a[2]); !ok {
		return replyError("ERR invalid cursor")
	}
	if e := s.db.get(a[1]); e == nil {
		return []any{"0", []any{}}
	} else if e.kind != "hash" {
		return wrongType
	}
	o, wrong := scanOptions(a[2], a[3:], false)
	if wrong != nil {
		return wrong
	}
	return s.read(a[1], "hash", func(f *fields) any {
		all := []any{}
		for name, value := range f.all {
			if !o.filtered || match(o.pattern, name) {
				all = append(all, name, value)
			}
		}
		return []any{"0", all}
	})
}

// dropEmpty deletes a key whose last element has gone.
func (s *Server) dropEmpty(key string, n int) {
	if n == 0 {
		s.db.del(key)
	}
}

func (s *Server) remove(a []string, kind string) any {
	f, wrong := s.fieldsOf(a[1], kind)
	if wrong != nil {
		return wrong
	}
	n := 0
	for _, name := range a[2:] {
		if f.del(name) {
			n++
		}
	}
	s.dropEmpty(a[1], f.len())
	return integer(n)
}

func cmdHdel(s *Server, _ *conn, a []string) any { return s.remove(a, "hash") }

func cmdHincrby(s *Server, _ *conn, a []string) any {
	by, ok := parseInt(a[3])
	if !ok {
		return notInt
	}
	f, wrong := s.fieldsOf(a[1], "hash")
	if wrong != nil {
		return wrong
	}
	n := int64(0)
	if text, has := f.get(a[2]); has {
		if n, ok = parseInt(text); !ok {
			return replyError("ERR hash value is not an integer")
		}
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		return replyError("ERR increment or decrement would overflow")
	}
	e, _ := s.db.made(a[1], "hash")
	e.hash.set(a[2], strconv.FormatInt(n+by, 10))
	return n + by
}

func cmdSadd(s *Server, _ *conn, a []string) any {
	e, wrong := s.db.made(a[1], "set")
	if wrong != nil {
		return wrong
	}
	n := 0
	for _, m := range a[2:] {
		if e.hash.set(m, "") {
			n++
		}
	}
	return integer(n)
}

func cmdSrem(s *Server, _ *conn, a []string) any { return s.remove(a, "set") }

func cmdSmembers(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "set", func(f *fields) any { return setReply(f.list(true, false)) })
}

func cmdSismember(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "set", func(f *fields) any { _, has := f.get(a[2]); return boolean(has) })
}

func cmdScard(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "set", func(f *fields) any { return integer(f.len()) })
}

func cmdHsetnx(s *Server, _ *conn, a []string) any {
	e, wrong := s.db.made(a[1], "hash")
	if wrong != nil {
		return wrong
	}
	if _, has := e.hash.get(a[2]); has {
		return int64(0)
	}
	e.hash.set(a[2], a[3])
	return int64(1)
}

func cmdHvals(s *Server, _ *conn, a []string) any {
	return s.read(a[1], "hash", func(f *fields) any { return f.list(false, true) })
}

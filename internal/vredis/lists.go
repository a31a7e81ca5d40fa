package vredis

import (
	"slices"
	"strings"
)

func (s *Server) push(a []string, front bool) any {
	e, wrong := s.db.made(a[1], "list")
	if wrong != nil {
		return wrong
	}
	if front {
		added := slices.Clone(a[2:])
		slices.Reverse(added)
		e.list = append(added, e.list...)
	} else {
		e.list = append(e.list, a[2:]...)
	}
	return integer(len(e.list))
}

func cmdLpush(s *Server, _ *conn, a []string) any { return s.push(a, true) }
func cmdRpush(s *Server, _ *conn, a []string) any { return s.push(a, false) }

func (s *Server) pop(a []string, front bool) any {
	n := int64(1)
	if len(a) > 3 {
		return errorf("ERR wrong number of arguments for '%s' command", strings.ToLower(a[0]))
	}
	if len(a) == 3 {
		var ok bool
		if n, ok = parseInt(a[2]); !ok || n < 0 {
			return replyError("ERR value is out of range, must be positive")
		}
	}
	e, wrong := s.db.typed(a[1], "list")
	switch {
	case wrong != nil:
		return wrong
	case e == nil && len(a) == 3:
		return nullArray{}
	case e == nil:
		return nil
	}
	all := []any{}
	for ; n > 0 && len(e.list) > 0; n-- {
		at := 0
		if !front {
			at = len(e.list) - 1
		}
		all = append(all, e.list[at])
		if front {
			e.list = e.list[1:]
		} else {
			e.list = e.list[:at]
		}
	}
	s.dropEmpty(a[1], len(e.list))
	if len(a) == 3 {
		return all
	}
	return all[0]
}

func cmdLpop(s *Server, _ *conn, a []string) any { return s.pop(a, true) }
func cmdRpop(s *Server, _ *conn, a []string) any { return s.pop(a, false) }

// ofList answers about a list; missing is the answer if there is none.
func (s *Server) ofList(key string, missing any, f func(e *entry) any) any {
	e, wrong := s.db.typed(key, "list")
	switch {
	case wrong != nil:
		return wrong
	case e == nil:
		return missing
	}
	defer func() { s.dropEmpty(key, len(e.list)) }()
	return f(e)
}

// span is what of n elements lies between two indexes, either of which may count from the end.
func span(from, to int64, n int) (int, int) {
	size := int64(n)
	if from < 0 {
		from = max(0, from+size)
	}
	if to < 0 {
		to += size
	}
	to = min(to, size-1)
	if from > to || from >= size {
		return 0, 0
	}
	return int(from), int(to) + 1
}

func indexes(a, b string) (from, to int64, ok bool) {
	from, ok1 := parseInt(a)
	to, ok2 := parseInt(b)
	return from, to, ok1 && ok2
}

func texts(all []string) []any {
	out := make([]any, len(all))
	for i, x := range all {
		out[i] = x
	}
	return out
}

func cmdLrange(s *Server, _ *conn, a []string) any {
	from, to, ok := indexes(a[2], a[3])
	if !ok {
		return notInt
	}
	return s.ofList(a[1], []any{}, func(e *entry) any {
		i, j := span(from, to, len(e.list))
		return texts(e.list[i:j])
	})
}

// place finds an index of a list; ok is false if there is none.
func place(text string, n int) (at int, ok bool, wrong any) {
	i, number := parseInt(text)
	if !number {
		return 0, false, notInt
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n), nil
}

func cmdLindex(s *Server, _ *conn, a []string) any {
	return s.ofList(a[1], nil, func(e *entry) any {
		at, ok, wrong := place(a[2], len(e.list))
		if !ok {
			return wrong
		}
		return e.list[at]
	})
}

func cmdLset(s *Server, _ *conn, a []string) any {
	return s.ofList(a[1], noSuchKey, func(e *entry) any {
		at, ok, wrong := place(a[2], len(e.list))
		switch {
		case wrong != nil:
			return wrong
		case !ok:
			return replyError("ERR index out of range")
		}
		e.list[at] = a[3]
		return statusOK
	})
}

func cmdLrem(s *Server, _ *conn, a []string) any {
	count, ok := parseInt(a[2])
	if !ok {
		return notInt
	}
	return s.ofList(a[1], int64(0), func(e *entry) any {
		removed := int64(0)
		backwards := count < 0
		if backwards {
			count = -count
			slices.Reverse(e.list)
		}
		e.list = slices.DeleteFunc(e.list, func(x string) bool {
			if x != a[3] || count != 0 && removed == count {
				return false
			}
			removed++
			return true
		})
		if backwards {
			slices.Reverse(e.list)
		}
		return removed
	})
}

func cmdLlen(s *Server, _ *conn, a []string) any {
	return s.ofList(a[1], int64(0), func(e *entry) any { return integer(len(e.list)) })
}

func cmdLtrim(s *Server, _ *conn, a []string) any {
	from, to, ok := indexes(a[2], a[3])
	if !ok {
		return notInt
	}
	return s.ofList(a[1], statusOK, func(e *entry) any {
		i, j := span(from, to, len(e.list))
		e.list = slices.Clone(e.list[i:j])
		return statusOK
	})
}

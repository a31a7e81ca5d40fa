package vredis

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

func cmdDel(s *Server, _ *conn, a []string) any {
	n := 0
	for _, key := range a[1:] {
		if s.db.del(key) {
			n++
		}
	}
	return integer(n)
}

func cmdUnlink(s *Server, c *conn, a []string) any { return cmdDel(s, c, a) }

func cmdExists(s *Server, _ *conn, a []string) any {
	n := 0
	for _, key := range a[1:] {
		if s.db.get(key) != nil {
			n++
		}
	}
	return integer(n)
}

func cmdType(s *Server, _ *conn, a []string) any {
	if e := s.db.get(a[1]); e != nil {
		return status(e.kind)
	}
	return status("none")
}

// cmdDump's bytes are its own: they differ if two values do.
func cmdDump(s *Server, _ *conn, a []string) any {
	e := s.db.get(a[1])
	if e == nil {
		return nil
	}
	dump := fmt.Sprintf("%s %q %q", e.kind, e.str, e.list)
	if e.hash != nil {
		dump += fmt.Sprintf(" %q", slices.Collect(func(yield func(string) bool) {
			e.hash.all(func(name, value string) bool { return yield(name + "=" + value) })
		}))
	}
	if e.zset != nil {
		dump += fmt.Sprint(e.zset.order)
	}
	return dump
}

func cmdKeys(s *Server, _ *conn, a []string) any {
	all := []any{}
	for _, k := range s.db.inOrder() {
		if match(a[1], k.key) {
			all = append(all, k.key)
		}
	}
	return all
}

func cmdDbsize(s *Server, _ *conn, _ []string) any { return integer(len(s.db.keys)) }

func cmdFlushall(s *Server, _ *conn, a []string) any {
	if len(a) > 2 || len(a) == 2 && !strings.EqualFold(a[1], "async") && !strings.EqualFold(a[1], "sync") {
		return syntaxErr
	}
	s.db.keys, s.db.due = map[string]*entry{}, nil
	return statusOK
}

func cmdFlushdb(s *Server, c *conn, a []string) any { return cmdFlushall(s, c, a) }

// placed is a key and its place in SCAN's order, which does not change while other keys come and go.
type placed struct {
	at  uint64
	key string
}

func (k *keyspace) inOrder() []placed {
	all := make([]placed, 0, len(k.keys))
	for key := range k.keys {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key))
		all = append(all, placed{h.Sum64()>>1 | 1, key}) // never 0, which is the beginning
	}
	sort.Slice(all, func(i, j int) bool { return all[i].at < all[j].at || all[i].at == all[j].at && all[i].key < all[j].key })
	return all
}

// scanning is the options of a SCAN.
type scanning struct {
	cursor   uint64
	filtered bool // by pattern
	pattern  string
	kind     string
	count    int
}

func scanOptions(cursor string, a []string, typed bool) (o scanning, wrong any) {
	o.count = 10
	var ok bool
	if o.cursor, ok = strtoul(cursor); !ok {
		return o, replyError("ERR invalid cursor")
	}
	for len(a) > 0 {
		if len(a) < 2 {
			return o, syntaxErr
		}
		switch strings.ToLower(a[0]) {
		case "match":
			o.filtered, o.pattern = true, a[1]
		case "count":
			n, ok := parseInt(a[1])
			if !ok {
				return o, notInt
			}
			if n < 1 {
				return o, syntaxErr
			}
			o.count = int(min(n, math.MaxInt32))
		case "type":
			if !typed {
				return o, syntaxErr
			}
			o.kind = strings.ToLower(a[1])
		default:
			return o, syntaxErr
		}
		a = a[2:]
	}
	return o, nil
}

func cmdScan(s *Server, _ *conn, a []string) any {
	o, wrong := scanOptions(a[1], a[2:], true)
	if wrong != nil {
		return wrong
	}
	keys, seen, next := []any{}, 0, uint64(0)
	var last uint64
	for _, k := range s.db.inOrder() {
		if k.at < o.cursor {
			continue
		}
		if seen >= o.count && k.at != last { // those of one place come together
			next = k.at
			break
		}
		seen, last = seen+1, k.at
		if (!o.filtered || match(o.pattern, k.key)) && (o.kind == "" || o.kind == s.db.keys[k.key].kind) {
			keys = append(keys, k.key)
		}
	}
	return []any{strconv.FormatUint(next, 10), keys}
}

// match reports whether s matches a pattern of Redis: *, ?, [a-z], [^a] and \.
func match(pattern, s string) bool {
	for len(pattern) > 0 {
		switch pattern[0] {
		case '*':
			for len(pattern) > 1 && pattern[1] == '*' {
				pattern = pattern[1:]
			}
			if len(pattern) == 1 {
				return true
			}
			for i := 0; i <= len(s); i++ {
				if match(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
		case '[':
			if s == "" {
				return false
			}
			i := 1
			not := i < len(pattern) && pattern[i] == '^'
			if not {
				i++
			}
			found := false
			for ; i < len(pattern) && pattern[i] != ']'; i++ {
				switch {
				case pattern[i] == '\\' && i+1 < len(pattern):
					i++
					found = found || pattern[i] == s[0]
				case i+2 < len(pattern) && pattern[i+1] == '-':
					low, high := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
					found = found || low <= s[0] && s[0] <= high
					i += 2
				default:
					found = found || pattern[i] == s[0]
				}
			}
			if found == not {
				return false
			}
			pattern, s = pattern[min(i+1, len(pattern)):], s[1:]
			continue
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if s == "" || pattern[0] != s[0] {
				return false
			}
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

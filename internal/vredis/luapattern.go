package vredis

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The patterns of Lua 5.1, as lstrlib.c matches them: gopher-lua's differ in what they return.

const (
	maxCaptures = 32
	unfinished  = -1 // a capture whose end has not come
	position    = -2 // a capture of a position: ()
)

type capture struct{ from, length int }

// matcher matches one pattern at one text. A position is -1 where nothing matches.
type matcher struct {
	state    *lua.LState // for errors
	text     string
	pattern  string
	captures []capture
}

// match matches the pattern from p on at s and returns where the match ends.
func (m *matcher) match(s, p int) int {
	for p < len(m.pattern) {
		switch c := m.pattern[p]; {
		case c == '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.open(s, p+2, position)
			}
			return m.open(s, p+1, unfinished)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s != len(m.text) {
				return -1
			}
			return s
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'b':
			if s = m.balance(s, p+2); s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.pattern) && (m.pattern[p+1] == 'f' || isDigit(m.pattern[p+1])):
			m.state.RaiseError("vredis does not do the pattern %%%c", m.pattern[p+1])
		}
		end := m.classEnd(p)
		repeat := byte(0)
		if end < len(m.pattern) {
			repeat = m.pattern[end]
		}
		switch repeat {
		case '?':
			if m.single(s, p, end) {
				if e := m.match(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return m.longest(s, p, end, 0)
		case '+':
			return m.longest(s, p, end, 1)
		case '-':
			for {
				if e := m.match(s, end+1); e >= 0 || !m.single(s, p, end) {
					return e
				}
				s++
			}
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
	return s
}

// longest matches as many as it can of what stands from p to end, and at least as many as least.
func (m *matcher) longest(s, p, end, least int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
	}
	for ; n >= least; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *matcher) open(s, p, what int) int {
	if len(m.captures) == maxCaptures {
		m.state.RaiseError("too many captures")
	}
	m.captures = append(m.captures, capture{s, what})
	level := len(m.captures) - 1
	e := m.match(s, p)
	if e < 0 {
		m.captures = m.captures[:level]
	}
	return e
}

func (m *matcher) close(s, p int) int {
	for i := len(m.captures) - 1; i >= 0; i-- {
		if m.captures[i].length == unfinished {
			m.captures[i].length = s - m.captures[i].from
			e := m.match(s, p)
			if e < 0 {
				m.captures[i].length = unfinished
			}
			return e
		}
	}
	m.state.RaiseError("invalid pattern capture")
	return -1
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.state.RaiseError("unbalanced pattern")
	}
	if s >= len(m.text) || m.text[s] != m.pattern[p] {
		return -1
	}
	opened := 1
	for i := s + 1; i < len(m.text); i++ {
		switch m.text[i] {
		case m.pattern[p+1]:
			if opened--; opened == 0 {
				return i + 1
			}
		case m.pattern[p]:
			opened++
		}
	}
	return -1
}

// classEnd returns where the class that begins at p ends.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p == len(m.pattern) {
			m.state.RaiseError("malformed pattern (ends with '%%')")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p < len(m.pattern) && m.pattern[p] != ']'; first = false {
			if p < len(m.pattern) && m.pattern[p] == '%' {
				p++
			}
			p++
		}
		if p >= len(m.pattern) {
			m.state.RaiseError("malformed pattern (missing ']')")
		}
		return p + 1
	}
	return p
}

// single reports whether the byte at s is of the class from p to end.
func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.text) {
		return false
	}
	c := m.text[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return inSet(c, m.pattern[p+1:end-1])
	}
	return m.pattern[p] == c
}

// inSet reports whether c is in a set without its brackets.
func inSet(c byte, set string) bool {
	set, not := strings.CutPrefix(set, "^")
	for i := 0; i < len(set); i++ {
		switch {
		case set[i] == '%' && i+1 < len(set):
			i++
			if inClass(c, set[i]) {
				return !not
			}
		case i+2 < len(set) && set[i+1] == '-':
			if set[i] <= c && c <= set[i+2] {
				return !not
			}
			i += 2
		case set[i] == c:
			return !not
		}
	}
	return not
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// inClass reports whether c is of the class that is named by a letter, in the C locale; other bytes stand for themselves.
func inClass(c, class byte) bool {
	lower, upper := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
	graphic := ' ' < c && c < 0x7f
	var is bool
	switch class | 0x20 {
	case 'a':
		is = lower || upper
	case 'c':
		is = c < ' ' || c == 0x7f
	case 'd':
		is = isDigit(c)
	case 'l':
		is = lower
	case 'p':
		is = graphic && !lower && !upper && !isDigit(c)
	case 's':
		is = strings.IndexByte(space, c) >= 0
	case 'u':
		is = upper
	case 'w':
		is = lower || upper || isDigit(c)
	case 'x':
		is = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		is = c == 0
	default:
		return class == c
	}
	if 'A' <= class && class <= 'Z' {
		return !is
	}
	return is
}

// value returns capture i of a match from s to e; without captures the whole match is the first.
func (m *matcher) value(i, s, e int) lua.LValue {
	if i == 0 && len(m.captures) == 0 {
		return lua.LString(m.text[s:e])
	}
	if i >= len(m.captures) {
		m.state.RaiseError("invalid capture index")
	}
	switch c := m.captures[i]; c.length {
	case position:
		return lua.LNumber(c.from + 1)
	case unfinished:
		m.state.RaiseError("unfinished capture")
		return nil
	default:
		return lua.LString(m.text[c.from : c.from+c.length])
	}
}

// push pushes the captures of a match, or all of it where there are none, and returns how many.
func (m *matcher) push(s, e int) int {
	n := max(len(m.captures), 1)
	for i := range n {
		m.state.Push(m.value(i, s, e))
	}
	return n
}

// search returns the first match at s or behind it; an anchored one is at s only.
func (m *matcher) search(s int, anchored bool) (from, end int) {
	for ; s <= len(m.text); s++ {
		m.captures = m.captures[:0]
		if e := m.match(s, 0); e >= 0 {
			return s, e
		}
		if anchored {
			break
		}
	}
	return -1, -1
}

package vredis

import (
	"math"
	"slices"
	"strings"
)

// ranking is the contents of a zset.
type ranking struct {
	order  []ranked // by score, then by member
	scores map[string]float64
}

type ranked struct {
	score  float64
	member string
}

func compareRanked(a, b ranked) int {
	switch {
	case a.score < b.score:
		return -1
	case a.score > b.score:
		return 1
	}
	return strings.Compare(a.member, b.member)
}

func (z *ranking) at(member string) (int, bool) {
	score, has := z.scores[member]
	if !has {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(z.order, ranked{score, member}, compareRanked)
	return i, true
}

func (z *ranking) del(member string) bool {
	i, has := z.at(member)
	if has {
		z.order = slices.Delete(z.order, i, i+1)
		delete(z.scores, member)
	}
	return has
}

func (z *ranking) set(member string, score float64) {
	z.del(member)
	score += 0 // -0 is 0, as in the listpack that Redis keeps a small zset in
	i, _ := slices.BinarySearchFunc(z.order, ranked{score, member}, compareRanked)
	z.order = slices.Insert(z.order, i, ranked{score, member})
	z.scores[member] = score
}

// rankingOf returns a zset; of no key an empty one.
func (s *Server) rankingOf(key string) (*ranking, any) {
	e, wrong := s.db.typed(key, "zset")
	if e == nil {
		return &ranking{}, wrong
	}
	return e.zset, nil
}

// ofRanking answers about a zset; of no key about an empty one.
func (s *Server) ofRanking(key string, f func(z *ranking) any) any {
	z, wrong := s.rankingOf(key)
	if wrong != nil {
		return wrong
	}
	return f(z)
}

func cmdZadd(s *Server, _ *conn, a []string) any {
	var nx, xx, gt, lt, ch, incr bool
	i := 2
options:
	for ; i < len(a); i++ {
		switch strings.ToLower(a[i]) {
		case "nx":
			nx = true
		case "xx":
			xx = true
		case "gt":
			gt = true
		case "lt":
			lt = true
		case "ch":
			ch = true
		case "incr":
			incr = true
		default:
			break options
		}
	}
	pairs := a[i:]
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		return syntaxErr
	case nx && xx:
		return replyError("ERR XX and NX options at the same time are not compatible")
	case gt && nx || lt && nx || gt && lt:
		return replyError("ERR GT, LT, and/or NX options at the same time are not compatible")
	case incr && len(pairs) > 2:
		return replyError("ERR INCR option supports a single increment-element pair")
	}
	scores := make([]float64, 0, len(pairs)/2)
	for j := 0; j < len(pairs); j += 2 {
		score, ok := parseFloat(pairs[j])
		if !ok || math.IsNaN(score) {
			return notFloat
		}
		scores = append(scores, score)
	}
	e, wrong := s.db.typed(a[1], "zset")
	if wrong != nil {
		return wrong
	}
	if e == nil {
		if xx {
			if incr {
				return nil
			}
			return int64(0)
		}
		e, _ = s.db.made(a[1], "zset")
	}
	defer func() { s.dropEmpty(a[1], len(e.zset.order)) }()
	added, changed := int64(0), int64(0)
	var last any
	for j, score := range scores {
		member := pairs[2*j+1]
		old, has := e.zset.scores[member]
		if has && nx || !has && xx {
			continue
		}
		if incr && has {
			if score += old; math.IsNaN(score) {
				return replyError("ERR resulting score is not a number (NaN)")
			}
		}
		if has && (gt && score <= old || lt && score >= old) {
			continue
		}
		last = double(score)
		if !has {
			added++
			e.zset.set(member, score)
		} else if score != old {
			changed++
			e.zset.set(member, score)
		}
	}
	switch {
	case incr:
		return last
	case ch:
		return added + changed
	}
	return added
}

func cmdZincrby(s *Server, c *conn, a []string) any {
	return cmdZadd(s, c, []string{"zadd", a[1], "incr", a[2], a[3]})
}

func (z *ranking) scoreOf(member string) any {
	if score, has := z.scores[member]; has {
		return double(score)
	}
	return nil
}

func cmdZscore(s *Server, _ *conn, a []string) any {
	return s.ofRanking(a[1], func(z *ranking) any { return z.scoreOf(a[2]) })
}

func cmdZrem(s *Server, _ *conn, a []string) any {
	z, wrong := s.rankingOf(a[1])
	if wrong != nil {
		return wrong
	}
	n := 0
	for _, m := range a[2:] {
		if z.del(m) {
			n++
		}
	}
	s.dropEmpty(a[1], len(z.order))
	return integer(n)
}

func cmdZcard(s *Server, _ *conn, a []string) any {
	return s.ofRanking(a[1], func(z *ranking) any { return integer(len(z.order)) })
}

func cmdZrank(s *Server, _ *conn, a []string) any {
	return s.ofRanking(a[1], func(z *ranking) any {
		if i, has := z.at(a[2]); has {
			return integer(i)
		}
		return nil
	})
}

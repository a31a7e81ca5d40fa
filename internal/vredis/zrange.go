package vredis

import (
	"math"
	"slices"
	"strings"
)

// bound is one end of a range of scores.
type bound struct {
	score   float64
	without bool // the score itself is not in it
}

func parseBound(text string) (b bound, ok bool) {
	rest, without := strings.CutPrefix(text, "(")
	b.without = without
	b.score, ok = strtod(strings.TrimLeft(rest, " \t\n\v\f\r"))
	if rest == "" {
		return b, true // strtod takes it for 0
	}
	return b, ok && !math.IsNaN(b.score) && !strings.ContainsRune(rest, 0)
}

func (z *ranking) between(low, high bound) (i, j int) {
	i, _ = slices.BinarySearchFunc(z.order, low, func(r ranked, b bound) int {
		if r.score < b.score || b.without && r.score == b.score {
			return -1
		}
		return 1
	})
	j, _ = slices.BinarySearchFunc(z.order, high, func(r ranked, b bound) int {
		if r.score < b.score || !b.without && r.score == b.score {
			return -1
		}
		return 1
	})
	return i, max(i, j)
}

var notMinMax = replyError("ERR min or max is not a float")

// ranging is what a ZRANGE and its kin ask for.
type ranging struct {
	byScore, reverse, scores bool
	limited                  bool
	offset, count            int64
}

// zrange answers the commands that read a range; with plain only those options that these commands had of old.
func (s *Server) zrange(c *conn, a []string, o ranging, plain bool) any {
	o.count = -1
	turned := false
	for rest := a[4:]; len(rest) > 0; {
		switch opt := strings.ToLower(rest[0]); {
		case opt == "withscores":
			o.scores, rest = true, rest[1:]
		case opt == "limit" && len(rest) > 2:
			var ok1, ok2 bool
			o.offset, ok1 = parseInt(rest[1])
			o.count, ok2 = parseInt(rest[2])
			if !ok1 || !ok2 {
				return notInt
			}
			o.limited, rest = true, rest[3:]
		case opt == "rev" && !plain && !turned:
			turned, o.reverse, rest = true, true, rest[1:]
		case opt == "byscore" && !plain && !o.byScore:
			o.byScore, rest = true, rest[1:]
		case opt == "bylex" && !plain:
			return notDone("ZRANGE BYLEX")
		default:
			return syntaxErr
		}
	}
	if o.limited && o.count != -1 && !o.byScore {
		return replyError("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	}
	low, high := a[2], a[3]
	if o.byScore && o.reverse {
		low, high = high, low
	}
	var from, to int64
	var min, max bound
	ok, ok2 := true, true
	if o.byScore {
		min, ok = parseBound(low)
		max, ok2 = parseBound(high)
		if !ok || !ok2 {
			return notMinMax
		}
	} else if from, to, ok = indexes(low, high); !ok {
		return notInt
	}
	z, wrong := s.rankingOf(a[1])
	if wrong != nil {
		return wrong
	}
	var found []ranked
	switch {
	case o.byScore:
		i, j := z.between(min, max)
		found = slices.Clone(z.order[i:j])
		if o.reverse {
			slices.Reverse(found)
		}
		if o.limited {
			if o.offset < 0 || o.offset >= int64(len(found)) {
				found = nil
			} else if found = found[o.offset:]; o.count >= 0 && o.count < int64(len(found)) {
				found = found[:o.count]
			}
		}
	default:
		found = slices.Clone(z.order)
		if o.reverse {
			slices.Reverse(found)
		}
		i, j := span(from, to, len(found))
		found = found[i:j]
	}
	all := []any{}
	for _, r := range found {
		switch {
		case !o.scores:
			all = append(all, r.member)
		case c.proto == 3 && s.call == nil:
			all = append(all, []any{r.member, double(r.score)})
		default:
			all = append(all, r.member, double(r.score))
		}
	}
	return all
}

func cmdZrange(s *Server, c *conn, a []string) any { return s.zrange(c, a, ranging{}, false) }

func cmdZrangebyscore(s *Server, c *conn, a []string) any {
	return s.zrange(c, a, ranging{byScore: true}, true)
}

// within finds the scores from a[2] to a[3].
func (s *Server) within(a []string) (z *ranking, i, j int, wrong any) {
	low, ok1 := parseBound(a[2])
	high, ok2 := parseBound(a[3])
	if !ok1 || !ok2 {
		return nil, 0, 0, notMinMax
	}
	if z, wrong = s.rankingOf(a[1]); wrong != nil {
		return nil, 0, 0, wrong
	}
	i, j = z.between(low, high)
	return z, i, j, nil
}

func cmdZcount(s *Server, _ *conn, a []string) any {
	_, i, j, wrong := s.within(a)
	if wrong != nil {
		return wrong
	}
	return integer(j - i)
}

func (s *Server) cut(key string, z *ranking, i, j int) any {
	for _, r := range z.order[i:j] {
		delete(z.scores, r.member)
	}
	z.order = slices.Delete(z.order, i, j)
	s.dropEmpty(key, len(z.order))
	return integer(j - i)
}

func cmdZremrangebyscore(s *Server, _ *conn, a []string) any {
	z, i, j, wrong := s.within(a)
	if wrong != nil {
		return wrong
	}
	return s.cut(a[1], z, i, j)
}

func cmdZrevrange(s *Server, c *conn, a []string) any {
	return s.zrange(c, a, ranging{reverse: true}, true)
}

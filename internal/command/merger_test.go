package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What is merged, and what is not.
func TestMerger_Divide(t *testing.T) {
	a, b, single := manyScript(nil), manyScript(nil), NewScript("single", "single", "", nil)
	call := func(s *Script, keys int, key string, args ...any) *Call {
		list := []any{key}
		for i := range keys - 1 {
			list = append(list, fmt.Sprint(key, i))
		}
		return &Call{Script: s, Args: s.Args(keys, append(list, args...)...)}
	}
	many := func(n int, make func(i int) *Call) (all []*Call) {
		for i := range n {
			all = append(all, make(i))
		}
		return all
	}
	name := func(i int) string { return fmt.Sprint("k", i) }
	for what, tc := range map[string]struct {
		calls   []*Call
		cluster bool
		want    []int
	}{
		"alone":              {many(1, func(i int) *Call { return call(a, 1, name(i)) }), false, []int{1}},
		"too few":            {many(3, func(i int) *Call { return call(a, 1, name(i)) }), false, []int{1, 1, 1}},
		"just enough":        {many(4, func(i int) *Call { return call(a, 1, name(i)) }), false, []int{4}},
		"more than go":       {many(31, func(i int) *Call { return call(a, 1, name(i)) }), false, []int{10, 10, 11}},
		"of no form":         {many(9, func(i int) *Call { return call(single, 1, name(i)) }), false, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"two scripts":        {many(16, func(i int) *Call { return call([]*Script{a, b}[i%2], 1, name(i)) }), false, []int{8, 8}},
		"two widths":         {many(16, func(i int) *Call { return call(a, 1+i%2, name(i)) }), false, []int{8, 8}},
		"two lengths":        {many(16, func(i int) *Call { return call(a, 2-i%2, name(i), []any{"x", "y"}[:1+i%2]...) }), false, []int{8, 8}},
		"some of no form":    {many(6, func(i int) *Call { return call([]*Script{a, single, a}[i%3], 1, name(i)) }), false, []int{1, 1, 4}},
		"without keys":       {many(4, func(i int) *Call { c := call(a, 1, name(i)); c.Args[argNumKeys] = 0; return c }), false, []int{1, 1, 1, 1}},
		"long":               {many(4, func(i int) *Call { return call(a, mergeWords+1, name(i)) }), false, []int{1, 1, 1, 1}},
		"of long names":      {many(32, func(i int) *Call { return call(a, 1, strings.Repeat("n", 3*mergeName)+name(i)) }), false, []int{4, 4, 4, 4, 4, 4, 4, 4}},
		"as long as may be":  {many(4, func(i int) *Call { return call(a, mergeWords, name(i)) }), false, []int{4}},
		"cluster":            {many(9, func(i int) *Call { return call(a, 1, name(i)) }), true, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"cluster, tags":      {many(12, func(i int) *Call { return call(a, 1, fmt.Sprintf("k%d:{t%d}", i, i%2)) }), true, []int{6, 6}},
		"cluster, few a tag": {many(12, func(i int) *Call { return call(a, 1, fmt.Sprintf("k%d:{t%d}", i, i%4)) }), true, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"cluster, no tags":   {many(4, func(i int) *Call { return call(a, 1, []string{"a{}b", "}a{b", "a{b", "{}{x}"}[i]) }), true, []int{1, 1, 1, 1}},
	} {
		var m merger
		for turn := range 2 { // the memory is used again
			var got []int
			left := slices.Clone(tc.calls)
			for _, b := range m.divide(tc.calls, tc.cluster) {
				got = append(got, len(b.calls))
				for _, c := range b.calls {
					i := slices.Index(left, c)
					if i < 0 {
						t.Fatalf("%s: a call twice", what)
					}
					left = slices.Delete(left, i, i+1)
					if want := c.Script.many; b.merged() && b.script != want || !b.merged() && b.script != c.Script {
						t.Errorf("%s: the script of another call", what)
					}
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) || len(left) > 0 {
				t.Errorf("%s, turn %d: bundles %v, want %v; %d calls are missing", what, turn, got, tc.want, len(left))
			}
		}
	}
}

// How many go together depends on how long the replies before say that they take.
func TestMerger_Learn(t *testing.T) {
	s := manyScript(nil)
	calls := make([]*Call, 200)
	for i := range calls {
		calls[i] = &Call{Script: s, Args: s.Args(1, fmt.Sprint(i))}
	}
	var m merger
	most := func() (n int) {
		for _, b := range m.divide(calls, false) {
			n = max(n, len(b.calls))
		}
		return n
	}
	b := &bundle{s.many, calls[:4]}
	redistest.WantMost(t, most(), 15, "%d calls, of which nothing is known")
	m.learn(b, []any{int64(0), int64(0), int64(1), int64(-1)})
	if n := most(); n < 32 || n > mergeMost {
		t.Errorf("%d calls that are short", n)
	}
	m.learn(b, []any{int64(0), []any{}, "g", errors.New("x")})
	redistest.WantMost(t, most(), 20, "%d calls that are long")
	m.learn(b, []any{int64(0), int64(0), int64(0), []any{}})
	if n := most(); n <= 20 || n >= 50 {
		t.Errorf("%d calls, some of which are long", n)
	}
}

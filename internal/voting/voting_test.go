package voting

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestCount(t *testing.T) {
	open := func(lag time.Duration) Member { return Member{Lag: lag} }
	answered := func(a Answer) Member { return Member{Answer: a, Lag: ms} }
	g, r, f := answered(Granted), answered(Refused), answered(Failed)
	vain := func(m Member) Member { m.Vain = true; return m }
	for name, tc := range map[string]struct {
		all   []Member
		state State
		at    int
	}{
		"nothing yet":                     {[]Member{open(ms), open(ms), open(ms)}, Pending, -1},
		"a majority":                      {[]Member{open(time.Hour), g, g}, Won, -1},
		"a majority of five":              {[]Member{open(time.Hour), g, r, g, g}, Won, -1},
		"split, with one silent":          {[]Member{open(time.Second), g, r}, Lost, 2},
		"refused, with one silent":        {[]Member{open(time.Second), r, g}, Lost, 1},
		"split, with one as quick":        {[]Member{open(2 * ms), g, r}, Pending, -1},
		"two refuse":                      {[]Member{g, r, r}, Lost, 1},
		"two refuse, the first to come":   {[]Member{open(ms), r, r}, Pending, -1},
		"two refuse, the last to come":    {[]Member{r, r, open(ms)}, Lost, 0},
		"all are slow":                    {[]Member{open(time.Hour), {Granted, time.Hour, false}, {Refused, time.Hour, false}}, Pending, -1},
		"one failed, one is slow":         {[]Member{open(time.Second), g, f}, Pending, -1},
		"two failed":                      {[]Member{f, open(ms), f}, Lost, -1},
		"one failed, one refused":         {[]Member{f, g, r}, Lost, 2},
		"two of five silent, split":       {[]Member{open(time.Second), g, open(time.Second), g, r}, Lost, 4},
		"two of five silent, one to come": {[]Member{open(time.Second), g, open(time.Second), g, open(ms)}, Pending, -1},
		"the first refused in vain":       {[]Member{vain(r), r, g}, Lost, 1},
		"the only one refused in vain":    {[]Member{vain(r), f, g}, Lost, 0},
		"behind one in vain, to come":     {[]Member{vain(r), open(ms), r}, Pending, -1},
	} {
		if state, at := Count(tc.all); state != tc.state || at != tc.at {
			t.Errorf("%s: %v at %d, want %v at %d", name, state, at, tc.state, tc.at)
		}
	}
}

// Never are so many absent that the others are no majority.
func TestLimit_LeavesAMajority(t *testing.T) {
	for n := 3; n <= 9; n += 2 {
		all := make([]Member, n)
		for late := range n + 1 {
			for i := range all {
				all[i].Lag = time.Duration(i) * time.Microsecond
				if i >= n-late {
					all[i].Lag = time.Duration(i) * time.Hour
				}
			}
			within := 0
			for _, m := range all {
				if m.Lag <= Limit(all) {
					within++
				}
			}
			if within < Quorum(n) || late <= n-Quorum(n) && within != n-late {
				t.Errorf("%d of %d late: %d are within the limit", late, n, within)
			}
		}
	}
}

func TestKeeps(t *testing.T) {
	all := []Member{{}, {}, {Vain: true}, {}}
	for _, tc := range []struct {
		vote, at int
		want     bool
	}{{0, 1, true}, {1, 0, false}, {1, 1, false}, {2, 3, false}, {3, 2, true}, {0, -1, false}} {
		if got := Keeps(all, tc.vote, tc.at); got != tc.want {
			t.Errorf("the vote of %d while it waits at %d: %v", tc.vote, tc.at, got)
		}
	}
}

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

// Whatever two candidates think of the members, none keeps the vote that the other one waits for while that
// one keeps what the first waits for. One member is away, so that the others can split.
func TestKeeps_NoCircle(t *testing.T) {
	const members = 5
	has := func(set, i int) bool { return set>>i&1 == 1 }
	waits := func(vain, votes, away int) int { // where a candidate waits that has the votes
		all := make([]Member, members)
		for i := range all {
			all[i] = Member{Answer: Refused, Lag: ms, Vain: has(vain, i)}
			if has(votes, i) {
				all[i].Answer = Granted
			}
		}
		all[away].Answer = Failed
		_, at := Count(all)
		return at
	}
	for away := range members {
		for sets := range 1 << (3 * members) {
			one, two, votes := sets&31, sets>>5&31, sets>>10
			a, b := waits(one, votes, away), waits(two, 31&^votes, away)
			if a >= 0 && b >= 0 && Keeps(b, a) && Keeps(a, b) {
				t.Fatalf("without %d, with %05b and %05b in vain and the votes %05b: they wait at %d and %d, for each other", away, one, two, votes, a, b)
			}
		}
	}
}

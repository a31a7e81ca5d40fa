package supervisor

import (
	"errors"
	"testing"
	"time"
)

// What a plan asks for, at each time since the beginning, for a lease that ends at 30 s and a grace time of 5 s.
func TestPlan(t *testing.T) {
	t.Parallel()
	const s = time.Second
	lost := errors.New("lost")
	type look struct {
		at       time.Duration
		deadline time.Duration // 0: 30 s
		err      error
		want     action
	}
	for _, tt := range []struct {
		name  string
		grace time.Duration
		loss  Loss
		looks []look
	}{
		{"renewed", 5 * s, LossTerm, []look{{at: 10 * s}, {at: 26 * s, deadline: 50 * s}, {at: 44 * s, deadline: 50 * s}}},
		{"not renewed", 5 * s, LossTerm, []look{{at: 25 * s}, {at: 25*s + 1, want: term}, {at: 29 * s}, {at: 30 * s, want: kill}, {at: 31 * s}}},
		{"renewed after TERM", 5 * s, LossTerm, []look{{at: 26 * s, want: term}, {at: 29 * s, deadline: 60 * s}, {at: 30 * s, deadline: 60 * s, want: kill}}},
		{"stopped beyond the deadline", 5 * s, LossTerm, []look{{at: 10 * s}, {at: 31 * s, want: kill}}},
		{"stopped beyond the deadline, and told", 5 * s, LossTerm, []look{{at: 31 * s, err: lost, want: kill}}},
		{"taken away", 5 * s, LossTerm, []look{{at: 10 * s, err: lost, want: term}, {at: 14 * s, err: lost}, {at: 15 * s, err: lost, want: kill}}},
		{"no grace", 0, LossTerm, []look{{at: 30*s - 1}, {at: 30 * s, want: kill}}},
		{"no grace, taken away", 0, LossTerm, []look{{at: 10 * s, err: lost, want: kill}}},
		{"kill", 5 * s, LossKill, []look{{at: 29 * s}, {at: 30 * s, want: kill}}},
		{"kill, taken away", 5 * s, LossKill, []look{{at: 10 * s, err: lost, want: kill}}},
		{"warn", 5 * s, LossWarn, []look{{at: 29 * s}, {at: 30 * s, want: warn}, {at: 40 * s}}},
		{"warn, taken away", 5 * s, LossWarn, []look{{at: 10 * s, err: lost, want: warn}, {at: 40 * s}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			p := plan{grace: tt.grace, loss: tt.loss}
			for _, l := range tt.looks {
				if l.deadline == 0 {
					l.deadline = 30 * s
				}
				now, deadline := begin.Add(l.at), begin.Add(l.deadline)
				if got := p.step(now, deadline, l.err); got != l.want {
					t.Errorf("at %v: %d, want %d", l.at, got, l.want)
				}
				if next := p.next(now, deadline); next <= 0 && !p.told && until(now, deadline) > tt.grace {
					t.Errorf("at %v: the next look is due in %v", l.at, next)
				}
			}
			if told := p.why != ""; told != p.told {
				t.Errorf("the reason is %q", p.why)
			}
		})
	}
}

package main

import (
	"strings"
	"testing"
	"time"
)

func TestDemo_SellsTheStock(t *testing.T) {
	t.Parallel()
	for args, phones := range map[string]int{
		"--buyers=1 --stock=1 --processes=1": 1, "--buyers=7 --stock=3 --processes=3 --hold=0s": 3, "--buyers=9 --stock=20 --processes=2": 9, "--stock=0 --buyers=10": 0,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := invoke(t, append([]string{"demo"}, strings.Fields(args)...)...)
			if status != 0 || stderr != "" || (phones == 0) != strings.Contains(stdout, "No sales.") {
				t.Errorf("exit status %d, stderr %q", status, stderr)
			}
			wantSale(t, stdout, phones)
		})
	}
}

// What no run of the demo shows: sales that are wrong in a way of their own.
func TestDemo_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := &sale{Buyers: 3, Stock: 2}
	all := []served{{Waits: make([]time.Duration, 3)}}
	first, second := receipt{Phone: 1, Buyer: 3, Left: 1}, receipt{Phone: 2, Buyer: 1}
	for _, tt := range []struct {
		sold   []receipt
		left   int
		buyers []served
		want   string
	}{
		{[]receipt{first, second}, 0, all, ""},
		{[]receipt{first, second}, -1, all, "2 sold and -1 left do not add up to the 2 phones of the beginning"},
		{[]receipt{first, first}, 0, all, "1 of 2 sales were of a phone that was sold already"},
		{[]receipt{second, first}, 0, all, "sale 1 is out of order: phone 2, 0 left"},
		{[]receipt{first, second}, 0, nil, "0 of 3 buyers came back"},
		{[]receipt{first}, 1, all, "buyers were turned away with 1 left"},
	} {
		if got := strings.Join(s.wrong(tt.sold, tt.left, tt.buyers), "; "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestDemo_RefusesBadFlagsBeforeItStarts(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"demo --buyers=0", "demo --stock=-1", "demo --processes=0", "demo --buyers=3 --processes=4", "demo --hold=-1ms",
		"demo --hold=2", "demo --colour", "demo 100", "demo --redis=localhost", "demo --redis=http://u:secret@h", "sale", "--colour", "demo-buyers",
	} {
		status, stdout, stderr := said(strings.Fields(args)...)
		if status != exitUsage || stdout != "" {
			t.Errorf("%s: exit status %d, want 2; stdout %q", args, status, stdout)
		}
		if lines := strings.Count(stderr, "\n"); lines != 1 || !strings.Contains(stderr, "--help") || strings.Contains(stderr, "secret") {
			t.Errorf("%s: stderr %q, want one line that names --help", args, stderr)
		}
	}
}

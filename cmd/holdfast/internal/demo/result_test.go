package demo

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// goodResult is of a sale of 2 phones to 3 buyers.
func goodResult() *Result {
	return &Result{
		Config: Config{Buyers: 3, Stock: 2, Processes: 1},
		Receipts: []Receipt{
			{Phone: 1, Buyer: 3, Process: 1, Left: 1},
			{Phone: 2, Buyer: 1, Process: 1, Left: 0},
		},
		Outcomes: []Outcome{
			{Buyer: 1, Phone: 2, Waited: 2 * time.Millisecond},
			{Buyer: 2, Waited: 3 * time.Millisecond},
			{Buyer: 3, Phone: 1, Waited: time.Millisecond},
		},
		Figures: Figures{Commands: 6, HandedOff: 1},
		Took:    4 * time.Millisecond,
	}
}

func TestResult_Disagreements(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Result)
		want  []string
	}{
		{"none", func(*Result) {}, nil},
		{"phone vanished", func(r *Result) { r.Left = -1 },
			[]string{"2 sold and -1 left do not add up to the 2 phones", "the stock fell to -1"}},
		{"stock was negative", func(r *Result) { r.Receipts[1].Left = -1 },
			[]string{"the stock fell to -1", "sale 2 is out of order: phone 2, -1 left"}},
		{"phone sold twice", func(r *Result) {
			r.Receipts[1].Phone, r.Receipts[1].Left, r.Outcomes[0].Phone, r.Left = 1, 1, 1, 1
		}, []string{"2 sold and 1 left do not add up", "1 of 2 sales were of a phone that was sold already"}},
		{"out of order", func(r *Result) { slices.Reverse(r.Receipts) },
			[]string{"sale 1 is out of order: phone 2, 0 left"}},
		{"buyer is missing", func(r *Result) { r.Outcomes = r.Outcomes[1:] },
			[]string{"2 of 3 buyers came back", "1 buyers and receipts do not match"}},
		{"buyer says otherwise", func(r *Result) { r.Outcomes[0].Phone = 0 },
			[]string{"1 buyers and receipts do not match"}},
		{"no receipt", func(r *Result) { r.Outcomes[1].Phone = 2 },
			[]string{"1 buyers and receipts do not match"}},
		{"turned away", func(r *Result) { r.Receipts, r.Left, r.Outcomes[0].Phone = r.Receipts[:1], 1, 0 },
			[]string{"buyers were turned away with 1 phone left"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := goodResult()
			tt.spoil(r)
			got := r.Disagreements()
			if !slices.EqualFunc(got, tt.want, strings.Contains) {
				t.Errorf("Disagreements() = %q, want %q", got, tt.want)
			}
		})
	}
}

const goodPrint = `
  sale  phone  buyer  process  waited  left
     1      1      3        1     1ms     1
     2      2      1        1     2ms     0

buyers                          3, served in 4ms
sold                            2
sold out                        1 buyer went home without
stock left                      0, and it never fell below zero
stock and sales                 2 sold + 0 left, 2 at the beginning: they agree
waits for the lock              p50 2ms, p99 3ms, max 3ms
handed over                     1 time to the next buyer of the same process, without Redis
Redis commands per acquisition  2.00: 6 script calls by the lock in all processes / 3 acquisitions; subscriptions not counted
`

const badPrint = `
  sale  phone  buyer  process  waited  left
     1      1      3        1       -     1
     2      1      1        1       -     1  sold already!

buyers           3, served in 4ms
sold             2
oversold         1 of these are of a phone that was sold already
sold out         1 buyer went home without
stock left       1, and it never fell below zero
stock and sales  2 sold + 1 left, 2 at the beginning: THEY DISAGREE
`

func TestResult_Print(t *testing.T) {
	good, bad, none := goodResult(), goodResult(), goodResult()
	bad.Unsafe, bad.Left = true, 1
	bad.Receipts[1].Phone, bad.Receipts[1].Left = 1, 1
	none.Receipts = nil
	for _, tt := range []struct {
		name string
		r    *Result
		want string
	}{{"good", good, goodPrint}, {"bad", bad, badPrint}, {"none", none, "\nNo sales.\n"}} {
		var b strings.Builder
		if err := tt.r.Print(&b); err != nil {
			t.Errorf("%s: Print() = %v", tt.name, err)
		}
		got := b.String()
		if tt.name == "none" {
			got = got[:min(len(tt.want), len(got))]
		}
		if got != tt.want {
			t.Errorf("%s: Print() writes\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

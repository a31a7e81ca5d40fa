package demo

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Result is what a sale came to, as Redis and the buyers tell it.
type Result struct {
	Config
	Receipts []Receipt // from Redis, in the order of the sales
	Left     int       // in stock, from Redis
	Outcomes []Outcome // from the buyers, in the order of their numbers
	Figures  Figures
	Took     time.Duration // from the start until the last buyer was served
}

// phones returns how often each phone was sold.
func (r *Result) phones() map[int]int {
	sold := make(map[int]int)
	for _, x := range r.Receipts {
		sold[x.Phone]++
	}
	return sold
}

// Oversold is how many buyers paid for a phone that another buyer has bought as well.
func (r *Result) Oversold() int { return len(r.Receipts) - len(r.phones()) }

// lowest is the least stock there ever was.
func (r *Result) lowest() int {
	low := r.Left
	for _, x := range r.Receipts {
		low = min(low, x.Left)
	}
	return low
}

// Disagreements says in what stock, sales and buyers contradict each other; nothing
// if the sale was a correct one.
func (r *Result) Disagreements() []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	sold := len(r.Receipts)
	if sold+r.Left != r.Stock {
		add("%d sold and %d left do not add up to the %d phones of the beginning", sold, r.Left, r.Stock)
	}
	if low := r.lowest(); low < 0 {
		add("the stock fell to %d", low)
	}
	if n := r.Oversold(); n > 0 {
		add("%d of %d sales were of a phone that was sold already", n, sold)
	} else if i := r.outOfOrder(); i >= 0 {
		add("sale %d is out of order: phone %d, %d left", i+1, r.Receipts[i].Phone, r.Receipts[i].Left)
	}
	if n := len(r.Outcomes); n != r.Buyers {
		add("%d of %d buyers came back", n, r.Buyers)
	}
	if n := r.unmatched(); n > 0 {
		add("%d buyers and receipts do not match", n)
	}
	if r.Left > 0 && sold < r.Buyers && sold < r.Stock {
		add("buyers were turned away with %s left", count(r.Left, "phone"))
	}
	return found
}

// outOfOrder returns the index of the first sale that was not the one due, or -1: the
// phones go in the order of their numbers, and the stock goes down by one each time.
func (r *Result) outOfOrder() int {
	for i, x := range r.Receipts {
		if x.Phone != i+1 || x.Left != r.Stock-x.Phone {
			return i
		}
	}
	return -1
}

// unmatched counts the receipts whose buyer does not say the same, and the buyers who
// say that they bought and have no receipt.
func (r *Result) unmatched() int {
	bought := make(map[int]int) // buyer -> phone
	for _, o := range r.Outcomes {
		if o.Phone != 0 {
			bought[o.Buyer] = o.Phone
		}
	}
	n := 0
	for _, x := range r.Receipts {
		if phone, ok := bought[x.Buyer]; !ok || phone != x.Phone {
			n++
		}
		delete(bought, x.Buyer)
	}
	return n + len(bought)
}

// waits returns how long each buyer waited, the shortest first.
func (r *Result) waits() []time.Duration {
	all := make([]time.Duration, len(r.Outcomes))
	for i, o := range r.Outcomes {
		all[i] = o.Waited
	}
	slices.Sort(all)
	return all
}

// percentile returns the smallest of the sorted values that p percent of them do not
// exceed (nearest rank); 0 if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

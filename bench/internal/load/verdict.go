package load

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Verdict is what all members of a fleet found together.
type Verdict struct {
	Elapsed time.Duration
	Callers int64
	Pairs   int64 // in all phases
	Writes  int64 // passes through the section in which it was counted, in all phases
	Waits   Histogram
	Reads   Histogram // the waits of those who read
	// Handovers are from Unlock in one process to the return of Lock in another.
	Handovers  Histogram
	Unfinished time.Duration // the longest wait that the end cut off
	Grants     []int64       // of each caller
	Each       []int64       // of each process
	CPU        time.Duration // of the clients
	Taken      Sample
	Conns      int64
	Sent       Tally // in the measurement
	During     int64 // pairs in the measurement

	counted  int64 // of Writes, by the section
	overlaps int64 // writers that a reader saw
	faults   []string
}

func (v *Verdict) add(o *outcome) {
	sum := int64(0)
	for _, n := range o.Grants {
		sum += n
	}
	v.Grants, v.Each = append(v.Grants, o.Grants...), append(v.Each, sum)
	v.Waits.add(o.Waits)
	v.Reads.add(o.Reads)
	v.Handovers.add(o.Handovers)
	v.Writes += o.Writes
	v.overlaps += o.Overlaps
	v.Unfinished = max(v.Unfinished, o.Unfinished)
	v.CPU += o.CPU
	if o.Error != "" {
		v.faults = append(v.faults, o.Error)
	}
}

// Violation is an error of the worst kind: the lock does not exclude, or there were more permits than Permits.
type Violation struct{ n int64 }

func (v Violation) Error() string {
	return "two held the lock, or too many held permits, at the same time: violations " + strconv.FormatInt(v.n, 10)
}

// fault returns why the verdict counts for nothing, if it does.
func (v *Verdict) fault() error {
	if n := v.Writes - v.counted + v.overlaps; n != 0 {
		return Violation{n}
	}
	if len(v.faults) > 0 {
		return fmt.Errorf("a caller gave up: %s", strings.Join(v.faults, "; "))
	}
	if v.Pairs == 0 {
		return errors.New("nobody got the lock")
	}
	return nil
}

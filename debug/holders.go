package debug

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	askedLocks = 20                     // with the longest waits: Redis is queried for their holders
	askedAgain = 2 * time.Second        // at most so often
	askedFor   = 500 * time.Millisecond // at most: then the holders are not known
)

// waitedFor is a lock that another process holds.
type waitedFor struct {
	manager int
	name    string
}

// name says of the locks with the longest waits, which come first, who holds them. h.mu is held: requests share that too.
func (h *handler) name(waiting []row, now time.Time) {
	if h.asked.IsZero() || now.Before(h.asked) || now.Sub(h.asked) >= askedAgain {
		h.asked, h.holders = now, h.ask(waiting)
	}
	for i := range waiting {
		r := &waiting[i]
		if info, known := h.holders[waitedFor{r.Manager, r.Name}]; known {
			r.asked, r.Holders = true, len(info.Holders)+info.More
			if len(info.Holders) > 0 {
				r.Holder = newHolder(info.Holders[0])
			}
		}
	}
}

// ask asks Redis for the holders of the first locks that callers wait for.
func (h *handler) ask(waiting []row) map[waitedFor]holdfast.Info {
	ctx, cancel := context.WithTimeout(context.Background(), askedFor)
	defer cancel()
	known := make(map[waitedFor]holdfast.Info)
	var mu sync.Mutex // guards known
	var asking sync.WaitGroup
	asked := 0
	for _, r := range waiting {
		if r.State != string(holdfast.LocalWaiting) || asked == askedLocks {
			continue
		}
		asked++
		asking.Go(func() {
			if info, err := h.peers[r.Manager-1].Inspect(ctx, r.Name); err == nil {
				mu.Lock()
				known[waitedFor{r.Manager, r.Name}] = info
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	return known
}

// whom says for which owner callers wait.
func (r row) whom() string {
	switch {
	case r.State == string(holdfast.LocalHeld) && r.Label != "":
		return "held here for " + span(r.For) + " by " + short(r.Label)
	case r.State == string(holdfast.LocalHeld):
		return "held here for " + span(r.For)
	case r.Holder != nil:
		return "held by " + r.Whom()
	}
	return r.Whom()
}

// A template calls Whom for the owner in another process for which callers wait.
func (r row) Whom() string {
	switch {
	case r.Holder == nil && r.asked:
		return "no owner at this moment"
	case r.Holder == nil:
		return "owner not known"
	case r.Others() > 0:
		return fmt.Sprintf("%s and %d more", r.Holder.Name(), r.Others())
	}
	return r.Holder.Name()
}

// Others counts the owners beside Holder: readers.
func (r row) Others() int { return max(r.Holders-1, 0) }

// Name is the process, if it says what it is, else the owner id.
func (h *holder) Name() string {
	if h.Process != nil {
		return h.Process.Name()
	}
	return short(h.Owner)
}

// Name is the process in one word.
func (p *process) Name() string { return short(fmt.Sprintf("%s@%s/%d", p.App, p.Host, p.PID)) }

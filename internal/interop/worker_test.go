package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// worker is the twin of Worker.java: it takes a lock again and again, each time in a way
// that chance chooses, and runs the section under it.
type worker struct {
	owner   owner
	section section
	random  *rand.Rand
	me      int64

	entered, refused, violations int
	longest                      time.Duration
}

const (
	workLease = 20 * time.Second // longer than any section can be delayed
	workWait  = 50 * time.Millisecond
)

func newWorker(o owner, s section, seed int64) *worker {
	return &worker{owner: o, section: s, me: seed, random: rand.New(rand.NewPCG(uint64(seed), 0))}
}

// work returns how many sections were run, how many attempts refused, how many rules
// broken, and the longest wait in ms.
func (w *worker) work(rounds int) (string, error) {
	for range rounds {
		if err := w.round(); err != nil {
			return "", err
		}
	}
	return fmt.Sprint(w.entered, " ", w.refused, " ", w.violations, " ", w.longest.Milliseconds()), nil
}

func (w *worker) round() error {
	began := time.Now()
	granted, err := w.acquire()
	w.longest = max(w.longest, time.Since(began))
	if err != nil {
		return err
	}
	if !granted {
		w.refused++
		return nil
	}
	if err := w.enter(w.owner.held.last(w.owner.key).Token()); err != nil {
		return err
	}
	if w.random.IntN(4) == 0 {
		if _, err := w.owner.lock(-1, 0); err != nil {
			return err
		}
		if err := w.enter(0); err != nil {
			return err
		}
		if err := w.owner.unlock(); err != nil {
			return err
		}
		if err := w.enter(0); err != nil { // still held
			return err
		}
	}
	return w.owner.unlock()
}

func (w *worker) acquire() (granted bool, err error) {
	switch w.random.IntN(6) {
	case 0:
		return w.owner.lock(0, 0)
	case 1:
		return w.owner.lock(workWait, 0)
	case 2:
		return w.owner.lock(workWait, workLease)
	case 3:
		return w.owner.lock(-1, workLease)
	default:
		return w.owner.lock(-1, 0)
	}
}

// overSuffix ends the name of the file, next to that of the section, that says to hammer: enough.
const overSuffix = ".over"

// hammer takes the lock as fast as it can, as often as rounds says, or until the file over exists.
// It returns how often it got it, how many sections of others passed while it waited (the median,
// which a process or a server that stands still for a moment does not change), how many rules were
// broken, and the longest wait in ms.
func (w *worker) hammer(rounds int, over string) (string, error) {
	var others []int64
	for rounds < 0 || w.entered < rounds {
		if _, err := os.Stat(over); err == nil {
			break
		}
		before, err := w.section.read()
		if err != nil {
			return "", err
		}
		began := time.Now()
		if _, err := w.owner.lock(-1, 0); err != nil {
			return "", err
		}
		w.longest = max(w.longest, time.Since(began))
		now, err := w.section.read()
		if err != nil {
			return "", err
		}
		others = append(others, now.Sections-before.Sections)
		violations, err := w.section.alone(w.me, 0, func() {})
		if err != nil {
			return "", err
		}
		w.entered++
		w.violations += violations
		if err := w.owner.unlock(); err != nil {
			return "", err
		}
	}
	slices.Sort(others)
	median := int64(0)
	if len(others) > 0 {
		median = others[len(others)/2]
	}
	return fmt.Sprint(w.entered, " ", median, " ", w.violations, " ", w.longest.Milliseconds()), nil
}

// enter runs the section; the token must be greater than all before it, unless it is 0.
func (w *worker) enter(token uint64) error {
	pause := time.Duration(w.random.IntN(100_000))
	work := func() { time.Sleep(pause) } // work, not waiting for anything
	var violations int
	var err error
	if w.owner.kind.shared {
		violations, err = w.section.shared(work)
	} else {
		violations, err = w.section.alone(w.me, int64(token), work)
	}
	w.entered++
	w.violations += violations
	return err
}

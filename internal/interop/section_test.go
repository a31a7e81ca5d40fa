package interop

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// section is code that must not run twice at a time, on a file that all processes share
// and that nothing but the lock protects. It is the twin of Section.java: who is inside,
// how many sections there were, and the last fencing token.
type section struct{ *os.File }

type sectionState struct{ Inside, Sections, Token int64 }

func newSectionFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "section")
	if err := os.WriteFile(path, make([]byte, binary.Size(sectionState{})), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openSection(path string) (section, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	return section{file}, err
}

func (s section) read() (state sectionState, err error) {
	buf := make([]byte, binary.Size(state))
	if _, err := s.ReadAt(buf, 0); err != nil {
		return state, err
	}
	_, err = binary.Decode(buf, binary.BigEndian, &state)
	return state, err
}

func (s section) write(state sectionState) error {
	buf, err := binary.Append(nil, binary.BigEndian, state)
	if err != nil {
		return err
	}
	_, err = s.WriteAt(buf, 0)
	return err
}

// alone runs a section that nobody may share. It returns how often it saw somebody
// else, or a token that is not new.
func (s section) alone(me, token int64, work func()) (violations int, err error) {
	before, err := s.read()
	if err != nil {
		return 0, err
	}
	if err := s.write(sectionState{me, before.Sections, before.Token}); err != nil {
		return 0, err
	}
	work()
	after, err := s.read()
	if err != nil {
		return 0, err
	}
	if before.Inside != 0 || after.Inside != me || after.Sections != before.Sections {
		violations++
	}
	if token != 0 && token <= before.Token {
		violations++
	}
	return violations, s.write(sectionState{0, before.Sections + 1, max(before.Token, token)})
}

// shared runs a section that others may share if they change nothing.
func (s section) shared(work func()) (violations int, err error) {
	before, err := s.read()
	if err != nil {
		return 0, err
	}
	work()
	after, err := s.read()
	if before.Inside != 0 || after.Inside != 0 || after.Sections != before.Sections {
		violations++
	}
	return violations, err
}

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

package interop

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// section is code that must not run twice at a time, on a file that all processes share
// and that nothing but the lock protects. It is the twin of Section.java: who is inside,
// how many sections there were, and the last fencing token.
type section struct{ *os.File }

type sectionState struct{ Inside, Sections, Token int64 }

func newSectionFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "section")
	redistest.Must(t, os.WriteFile(path, make([]byte, binary.Size(sectionState{})), 0o600))
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

// alone runs a section that no other caller may share. It returns how often it saw one
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

// Twelve owners in four processes of both sides, each taking the lock in every way that
// there is. One of Holdfast's processes keeps it after Unlock, for its next caller. The section counts what it sees, and no section may be lost. At the end a thread
// of Redisson that waits for a read-write lock may have missed the last release, one of
// Redisson's, and wait for the TTL; a process of Holdfast may not.
func exclusion(e *env) {
	const (
		threads, rounds = 3, 150
		missed          = 5 * time.Minute
	)
	file := newSectionFile(e)
	keeper := e.startGo(e, "--linger", "1s")
	var alone, visits []*call
	for i, p := range []*peer{e.java[0], e.golang[0], e.java[1], keeper} {
		for n := range threads {
			k := e.kind
			if n == 0 { // readers and writers mix
				k, _ = kindNamed(e.kind.against())
			}
			c := p.start(e, e.thread(n), "work", k.name, e.key, rounds, 1+i*threads+n, file)
			if k.shared {
				visits = append(visits, c)
			} else {
				alone = append(alone, c)
			}
		}
	}
	began := time.Now()
	var sections, refusals int
	longest := map[string]int{}
	for i, c := range slices.Concat(alone, visits) {
		var entered, refused, violations, wait int
		a := c.answerWithin(missed)
		if _, err := fmt.Sscan(a.value, &entered, &refused, &violations, &wait); err != nil {
			e.Errorf("%s answers %q with %q %s", c.peer.side, c.text, a.value, a.failure)
		}
		if violations > 0 {
			e.Errorf("%s saw %d violations in %d sections", c.peer.side, violations, entered)
		}
		if i < len(alone) {
			sections += entered
		}
		refusals += refused
		longest[c.peer.side] = max(longest[c.peer.side], wait)
	}
	e.Logf("%d sections alone, %d refusals in %v; longest wait of ours %d ms, of Redisson %d ms",
		sections, refusals, time.Since(began).Round(time.Millisecond), longest["go"], longest["java"])
	redistest.WantMost(e, time.Duration(longest["go"])*time.Millisecond, bounds.woken, "one of ours waited for %v")
	s, err := openSection(file)
	redistest.Must(e, err)
	defer s.Close()
	if state, err := s.read(); err != nil || state.Sections != int64(sections) {
		e.Errorf("%d sections were counted, want %d (%v)", state.Sections, sections, err)
	}
	// Who gave up has been told so before Redis has.
	e.eventually("all have left", patience, func() bool { return e.exists(e.key, queueKey(e.key)) == 0 })
	e.free()
}

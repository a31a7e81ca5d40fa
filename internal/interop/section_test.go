package interop

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
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

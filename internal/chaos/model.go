package chaos

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// step is what an operation does in the model.
type step uint8

const (
	stepAcquire step = iota // granted
	stepRefused             // another owner was in the way
	stepUnknown             // an acquire that may have been granted, without a caller that knows
	stepRelease             // the owner gave one of its leases back
	stepEnd                 // whatever the owner still has ends: expired, lost, dead
	stepHeld                // Inspect saw a holder
	stepFree                // Inspect saw none
)

// input is one operation of the model. A mutex is a read-write lock without readers.
type input struct {
	do     step
	owner  uint64
	shared bool
	fenced bool
	token  uint64
	op     *Op // for messages; nil if the server's file told us
}

// reader is one owner's leases of the read side.
type reader struct {
	owner uint64
	count int
}

// state is a lock as its callers see it.
type state struct {
	writer  uint64 // 0: none
	count   int    // leases of the writer
	token   uint64 // of the writer
	max     uint64 // the largest token given out
	wrote   uint64 // the largest one of a writer
	readers []reader
}

func (s state) free() bool { return s.writer == 0 && len(s.readers) == 0 }

// admits reports whether owner may have the side it asks for: its own writing does not
// keep it from reading, but its reading keeps it from writing.
func (s state) admits(owner uint64, shared bool) bool {
	if s.writer == owner {
		return true
	}
	return s.writer == 0 && (shared || len(s.readers) == 0)
}

func (s state) entered(in *input) state {
	s.max = max(s.max, in.token)
	if in.shared {
		s.readers = slices.Clone(s.readers)
		i, ok := slices.BinarySearchFunc(s.readers, in.owner, compareReader)
		if !ok {
			s.readers = slices.Insert(s.readers, i, reader{owner: in.owner})
		}
		s.readers[i].count++
		return s
	}
	s.writer = in.owner
	s.count++
	s.token = in.token
	s.wrote = max(s.wrote, in.token)
	return s
}

func compareReader(r reader, owner uint64) int {
	switch {
	case r.owner < owner:
		return -1
	case r.owner > owner:
		return 1
	}
	return 0
}

// fences reports whether a grant's token is what it has to be: the owner's if that writes; of
// another writer, larger than all before; of a reader, not smaller than any writer's.
func (s state) fences(in *input) bool {
	switch {
	case s.writer == in.owner && s.token != 0:
		return in.token == s.token
	case in.shared:
		return in.token >= s.wrote
	default:
		return in.token > s.max
	}
}

// left is the state when owner has given n of its leases of one side back, or all of
// them with n = 0.
func (s state) left(owner uint64, shared bool, n int) (state, bool) {
	if !shared {
		if s.writer != owner {
			return s, false
		}
		if s.count -= n; n == 0 || s.count == 0 {
			s.writer, s.count, s.token = 0, 0, 0
		}
		return s, true
	}
	i, ok := slices.BinarySearchFunc(s.readers, owner, compareReader)
	if !ok {
		return s, false
	}
	s.readers = slices.Clone(s.readers)
	if s.readers[i].count -= n; n == 0 || s.readers[i].count == 0 {
		s.readers = slices.Delete(s.readers, i, i+1)
	}
	return s, true
}

// next returns the states that may follow; none if the step is impossible.
func (s state) next(in *input) []state {
	switch in.do {
	case stepAcquire:
		if !s.admits(in.owner, in.shared) {
			return nil
		}
		if in.fenced && !s.fences(in) {
			return nil
		}
		return []state{s.entered(in)}
	case stepRefused:
		if s.admits(in.owner, in.shared) {
			return nil
		}
		return []state{s}
	case stepUnknown:
		if !s.admits(in.owner, in.shared) {
			return []state{s}
		}
		return []state{s, s.entered(in)}
	case stepRelease:
		after, ok := s.left(in.owner, in.shared, 1)
		if !ok {
			return nil
		}
		return []state{after}
	case stepEnd:
		s, _ = s.left(in.owner, in.shared, 0)
		return []state{s}
	case stepHeld:
		if s.free() {
			return nil
		}
		return []state{s}
	default:
		if !s.free() {
			return nil
		}
		return []state{s}
	}
}

func (s state) equal(o state) bool {
	return s.writer == o.writer && s.count == o.count && s.token == o.token && s.max == o.max && s.wrote == o.wrote && slices.Equal(s.readers, o.readers)
}

func (s state) hash() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, s.writer, s.count, s.token, s.max, s.wrote, s.readers)
	return h.Sum64()
}

func (s state) String() string {
	if s.writer == 0 && len(s.readers) == 0 {
		return "free"
	}
	var parts []string
	if s.writer != 0 {
		parts = append(parts, fmt.Sprintf("%s×%d token %d", ownerName(s.writer), s.count, s.token))
	}
	for _, r := range s.readers {
		parts = append(parts, fmt.Sprintf("read %s×%d", ownerName(r.owner), r.count))
	}
	return strings.Join(parts, ", ")
}

func ownerName(owner uint64) string { return fmt.Sprintf("p%d#%d", owner>>40, owner&(1<<40-1)) }

func (in *input) String() string {
	side := ""
	if in.shared {
		side = "read "
	}
	what := [...]string{"lock", "refused", "lock?", "unlock", "end", "held", "free"}[in.do]
	s := fmt.Sprintf("%s%s %s", side, what, ownerName(in.owner))
	if in.token != 0 {
		s += fmt.Sprintf(" token %d", in.token)
	}
	return s
}

// lockModel is the specification for porcupine: the state machine above, with the
// outcomes that no caller learned of left open, from a known beginning.
func lockModel(begin state) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{begin} },
		Step: func(s, in, _ any) (all []any) {
			for _, n := range s.(state).next(in.(*input)) {
				all = append(all, n)
			}
			return all
		},
		Equal:             func(a, b any) bool { return a.(state).equal(b.(state)) },
		Hash:              func(s any) uint64 { return s.(state).hash() },
		DescribeOperation: func(in, _ any) string { return in.(*input).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
	return model.ToModel()
}

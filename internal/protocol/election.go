package protocol

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// ProclaimAgain is how often a leader says anew what it has said of itself, so that Redis keeps it.
const ProclaimAgain = recordTTL / 24

// ParseProclaimed reads the reply of proclaim: the leader was heard, or it leads no more. wrong says which key holds what, if one holds
// something of another kind. It reports false for what the script does not give.
func ParseProclaimed(value any) (heard bool, wrong error, ok bool) {
	if n, number := value.(int64); number {
		return n == 1, nil, n == 0 || n == 1
	}
	wrong, ok = otherKind(value)
	return false, wrong, ok
}

// otherKind reads {AcquireKind, key, text}.
func otherKind(value any) (wrong error, ok bool) {
	var x lock.Reply
	ok = ParseVerdict(value, &x) && x.Says == lock.OtherKind
	return x.Cause, ok
}

func givesProclaimed(reply any) bool {
	_, _, ok := ParseProclaimed(reply)
	return ok
}

// Seat is who leads an election, as Redis knows it.
type Seat struct {
	Owner string // empty: none leads
	Term  uint64
	Value string
	TTL   time.Duration // for which the seat has a holder; 0: it has none, -1: without TTL
}

// First elements of the reply of leader.
const (
	seatVacant = 0
	seatTaken  = 1
)

// ParseSeat reads the reply of leader, as ParseProclaimed does that of proclaim.
func ParseSeat(value any) (s Seat, wrong error, ok bool) {
	if wrong, ok := otherKind(value); ok {
		return Seat{}, wrong, true
	}
	list, _ := value.([]any)
	if len(list) < 2 {
		return Seat{}, nil, false
	}
	ttl, ok := list[1].(int64)
	s.TTL = validity.Duration(max(ttl, 0))
	if ttl == -1 {
		s.TTL = -1
	}
	switch {
	case list[0] == int64(seatVacant) && len(list) == 2:
		return s, nil, ok
	case list[0] != int64(seatTaken) || len(list) != 5:
		return Seat{}, nil, false
	}
	owner, ok1 := list[2].(string)
	token, _ := list[3].(string)
	said, ok2 := list[4].(string)
	term, err := strconv.ParseUint(token, 10, 64)
	s.Owner, s.Term, s.Value = owner, term, said
	return s, nil, ok && ok1 && ok2 && owner != "" && err == nil
}

func givesLeader(reply any) bool {
	_, _, ok := ParseSeat(reply)
	return ok
}

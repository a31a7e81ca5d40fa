package chaos

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Action is what an operation asks for.
type Action string

const (
	Lock    Action = "lock"    // waits until its context ends
	TryLock Action = "trylock" // asks once
	Unlock  Action = "unlock"
	told    Action = "told"  // no call: a lease's Done, from its deadline to when it was heard
	stall   Action = "stall" // not planned: the process did not run
)

// Result is what an operation was told.
type Result string

const (
	OK          Result = "ok"
	Refused     Result = "refused"     // TryLock: another owner holds it
	Ended       Result = "ended"       // the context ended first
	Unavailable Result = "unavailable" // no answer from Redis
	Lost        Result = "lost"        // Unlock: the lease had ended; Detail has the reason
	Failed      Result = "failed"      // any other error
)

// Op is one operation of one client process.
type Op struct {
	ID      int64  `json:"id"` // unique in its process
	Proc    int    `json:"proc"`
	Worker  int    `json:"worker"`
	Do      Action `json:"do"`
	Name    string `json:"name"`
	Shared  bool   `json:"shared,omitempty"`
	Fixed   bool   `json:"fixed,omitempty"`   // a lease that ends by itself: it is not renewed, or only up to Limit
	Permits int    `json:"permits,omitempty"` // of a semaphore: how many an acquire asks for
	Limit   int64  `json:"limit,omitempty"`   // not before this does WithMaxHold end it; 0: it does not
	// Chain is the owner: the ID of its first acquire. Lease is, of an Unlock, the ID
	// of the acquire it is about.
	Chain int64 `json:"chain,omitempty"`
	Lease int64 `json:"lease,omitempty"`

	Call   int64  `json:"call"`
	Return int64  `json:"return,omitempty"` // never: the process died or still waits
	Result Result `json:"result,omitempty"`
	Detail string `json:"detail,omitempty"`
	Token  uint64 `json:"token,omitempty"`
	// Deadline of the lease: of an acquire at its return, of an Unlock just before
	// its call.
	Deadline int64 `json:"deadline,omitempty"`
}

func (o *Op) acquires() bool { return o.Do == Lock || o.Do == TryLock }

// maxHold is what Detail has of an end by WithMaxHold, beside the reasons of a loss.
const maxHold = "max hold"

func (o *Op) String() string {
	s := fmt.Sprintf("%s p%d/%d", o.Do, o.Proc, o.Worker)
	if o.Shared {
		s = "read " + s
	}
	s += fmt.Sprintf(" #%d -> %s", o.ID, o.Result)
	if o.Detail != "" {
		s += " (" + o.Detail + ")"
	}
	if o.Token != 0 {
		s += fmt.Sprintf(" token %d", o.Token)
	}
	return s
}

// recorder writes the history of one process. Every line is in the kernel's hands when
// record returns, so nothing is lost when the process is killed.
type recorder struct {
	mu   sync.Mutex
	file *os.File // guarded by mu
	next int64    // guarded by mu
}

func newRecorder(path string) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &recorder{file: f}, err
}

// begin numbers the operation, stamps its call and records it.
func (r *recorder) begin(o *Op) {
	r.mu.Lock()
	r.next++
	o.ID = r.next
	r.mu.Unlock()
	if o.acquires() && o.Chain == 0 {
		o.Chain = o.ID
	}
	o.Call = now()
	r.record(o)
}

// end records the operation once more, complete. returned is when it returned.
func (r *recorder) end(o *Op, returned time.Time) {
	o.Return = at(returned)
	r.record(o)
}

func (r *recorder) record(o *Op) {
	line, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// readHistory returns the operations of a process in the order of their calls.
func readHistory(path string) ([]*Op, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	byID := make(map[int64]*Op)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		o := new(Op)
		if err := json.Unmarshal(lines.Bytes(), o); err != nil {
			continue // the process was killed in the middle of the line
		}
		byID[o.ID] = o
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	ops := make([]*Op, 0, len(byID))
	for _, o := range byID {
		if o.Return == 0 {
			o.Return = never
		}
		ops = append(ops, o)
	}
	sortByCall(ops)
	return ops, nil
}

func sortByCall(ops []*Op) {
	slices.SortFunc(ops, func(a, b *Op) int { return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.ID, b.ID)) })
}

// Fault is one thing that the nemesis did.
type Fault struct {
	Kind       string
	Proc       int    // the client it hit; -1: the server or all
	Name       string // the lock that it took away from its holder; empty: none
	Start, End int64
}

// standstill reports whether its process did not run meanwhile.
func (f Fault) standstill() bool { return f.Kind == "stop a client" || f.Kind == "stall" }

// Process is one client process of the run.
type Process struct {
	ID     int
	Prefix string        // what its owner ids begin with
	Linger time.Duration // for how long it keeps locks; 0: it keeps none
	Born   int64
	Died   int64 // when it was killed; never if it ended by itself
}

// History is all that is known of a run.
type History struct {
	Seed      uint64
	Start     int64
	Faulty    int64 // the first fault; before, everything must be perfect
	Healed    int64 // the last fault was over; never if the run ended before
	Quiesced  int64 // the workers were told to stop
	End       int64
	Processes []*Process
	Ops       []*Op // in the order of their calls
	Faults    []Fault
	Stalls    []Fault    // that the nemesis has no part in, or only an indirect one
	Writes    [][]string // the server's append-only file
	Ticks     []Tick
	Wall      int64 // the system's wall clock is so far ahead of the one that times count from
}

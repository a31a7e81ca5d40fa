package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// startLine is what a process waits for on its standard input, so that all processes
// begin together. The end of that input tells it to stop.
const startLine = "start\n"

// message is a line that a process writes to its standard output: first that it is
// ready, then each buyer's outcome, at last its figures. One field is set.
type message struct {
	Ready   bool     `json:"ready,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
	Figures *Figures `json:"figures,omitempty"`
}

// Outcome is what a buyer went home with.
type Outcome struct {
	Buyer  int           `json:"buyer"`
	Phone  int           `json:"phone,omitempty"`  // 0: sold out
	Waited time.Duration `json:"waited,omitempty"` // for the lock, in nanoseconds
}

// Figures are the lock's costs in one process, or the sum over all of them.
type Figures struct {
	Commands  uint64 `json:"commands"`   // holdfast.Stats.Commands
	HandedOff uint64 `json:"handed_off"` // holdfast.Stats.HandedOff
}

// reporter writes messages. It is safe for concurrent use.
type reporter struct {
	mu  sync.Mutex
	out *json.Encoder // guarded by mu; each message is one Write
}

func newReporter(w io.Writer) *reporter { return &reporter{out: json.NewEncoder(w)} }

func (r *reporter) send(m message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.out.Encode(m); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// parseMessage is strict: a process that writes anything else is not to be trusted
// with a count.
func parseMessage(line []byte) (message, error) {
	var m message
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&m)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err == nil && m == (message{}) {
		err = errors.New("empty")
	}
	if err != nil {
		return message{}, fmt.Errorf("not a report: %.200q: %w", line, err)
	}
	return m, nil
}

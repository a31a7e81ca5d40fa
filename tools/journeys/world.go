package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// limit is for how long a step of a journey may take.
const limit = 10 * time.Second

// world is a Redis, the traced program, the gate between the two, and another process.
type world struct {
	gate    *gate
	other   *holdfast.Manager
	leases  map[string]*holdfast.Lease // of the other process
	program *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

func newWorld(binary string) (*world, error) {
	server := vredis.New(vredis.Options{})
	gate, err := newGate(server)
	if err != nil {
		return nil, err
	}
	w := &world{gate: gate, leases: make(map[string]*holdfast.Lease), program: exec.Command(binary, gate.listener.Addr().String())}
	w.program.Stderr = os.Stderr
	if w.other, err = holdfast.New(redis.NewClient(&redis.Options{Dialer: server.Dial})); err != nil {
		return nil, err
	}
	if w.in, err = w.program.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewScanner(out)
	w.out.Buffer(nil, 1<<20)
	return w, w.program.Start()
}

// end ends the program.
func (w *world) end() error {
	w.gate.listener.Close()
	w.in.Close()
	return w.program.Wait()
}

// step has one thing happen: a line for the program, or one of those below. It returns what the program says, if it waits for that.
func (w *world) step(line string) (said string, err error) {
	verb, object, _ := strings.Cut(line, " ")
	switch verb {
	case "begin": // the program begins what will take long
		return "", w.tell(object)
	case "told": // that has ended
		return w.said()
	case "hold": // the other process takes a lock, and gives it up
		w.leases[object], err = w.other.Mutex(object).Lock(context.Background())
		return "", err
	case "give":
		return "", w.leases[object].Unlock(context.Background())
	case "shut": // replies are held back
		w.gate.set(true)
	case "open":
		w.gate.set(false)
	case "held": // one has been
		return "", w.gate.until(func() bool { return w.gate.held })
	case "cut": // the connections for messages break
		w.gate.cut()
	case "traffic": // a request has been sent since
		before := time.Now()
		return "", w.gate.until(func() bool { return w.gate.passed.After(before) })
	case "quiet": // nothing is sent, and the program has nothing to do
		began := time.Now()
		return "", w.gate.until(func() bool { return min(time.Since(w.gate.passed), time.Since(began)) > quiet })
	default:
		if err := w.tell(line); err != nil {
			return "", err
		}
		return w.said()
	}
	return "", nil
}

// quiet is for how long nothing passes where the program has nothing to do.
const quiet = 200 * time.Millisecond

func (w *world) tell(line string) error {
	_, err := fmt.Fprintln(w.in, line)
	return err
}

func (w *world) said() (string, error) {
	if !w.out.Scan() {
		return "", fmt.Errorf("the program has ended: %w", w.out.Err())
	}
	return w.out.Text(), nil
}

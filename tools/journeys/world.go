package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// limit is for how long a step of a journey may take.
const limit = 10 * time.Second

// world is a Redis, the traced program, and another process.
type world struct {
	redis   *vredis.Listener
	latest  atomic.Int64 // when the program's latest command was executed
	other   *holdfast.Manager
	leases  map[string]*holdfast.Lease // of the other process
	program *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

func newWorld(binary string) (*world, error) {
	const other = "other"
	w := &world{leases: make(map[string]*holdfast.Lease)}
	var err error
	w.redis, err = vredis.Listen(vredis.Options{Log: func(x vredis.Executed) {
		if x.Name != other {
			w.latest.Store(time.Now().UnixNano())
		}
	}})
	if err != nil {
		return nil, err
	}
	w.program = exec.Command(binary, w.redis.Addr())
	w.program.Stderr = os.Stderr
	if w.other, err = holdfast.New(redis.NewClient(&redis.Options{ClientName: other, Dialer: w.redis.Dial})); err != nil {
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
	w.in.Close()
	err := w.program.Wait()
	w.redis.Close()
	return err
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
	case "shut": // requests are not answered
		w.redis.Freeze(vredis.Handshake...)
	case "open":
		w.redis.Thaw()
	case "held": // so many have come
		return "", w.until(func() bool { return strconv.Itoa(w.redis.Holds()) == object })
	case "cut": // the connections for messages break
		w.redis.Do("client", "kill", "type", "pubsub")
	case "traffic": // a request has been executed since
		before := time.Now()
		return "", w.until(func() bool { return w.latest.Load() > before.UnixNano() })
	case "quiet": // nothing is sent, and the program has nothing to do
		began := time.Now()
		return "", w.until(func() bool { return w.since(began) > quiet })
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

// since is for how long no request of the program has been executed, from a time on.
func (w *world) since(from time.Time) time.Duration {
	return time.Since(time.Unix(0, max(w.latest.Load(), from.UnixNano())))
}

// until waits for a state.
func (w *world) until(is func() bool) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if is() {
			return nil
		}
	}
	return fmt.Errorf("not within %v", limit)
}

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

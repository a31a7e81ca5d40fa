package example

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
)

// part is what a process needs to know to play its role.
type part struct {
	Role, Name, Mode, ID, Redis string
	StopAt                      string
}

// Worker is a process that plays a role, as it sees itself.
type Worker struct {
	*World
	Name string

	stopAt string
	stdout sync.Mutex // one line at a time
	told   chan string
	gone   <-chan struct{} // closed when the director has gone

	stopped atomic.Bool // at its point
}

var errDirectorGone = errors.New("the director has gone")

func (p part) play(ctx context.Context, role func(context.Context, *Worker) error) error {
	// Ctrl-C reaches every process of the terminal. The director ends our input.
	signal.Ignore(os.Interrupt)
	rdb, err := connect(ctx, p.Redis)
	if err != nil {
		return err
	}
	defer rdb.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &Worker{World: &World{Mode: p.Mode, Redis: rdb, id: p.ID}, Name: p.Name, stopAt: p.StopAt, told: make(chan string, 8), gone: ctx.Done()}
	go func() { // ends with the input, which ends with the director
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			w.told <- in.Text()
		}
		cancel(errDirectorGone)
	}()
	return role(ctx, w)
}

// Say tells the director something.
func (w *Worker) Say(format string, args ...any) {
	w.stdout.Lock()
	defer w.stdout.Unlock()
	fmt.Println(oneLine(format, args...))
}

// Told returns what the director has told this process.
func (w *Worker) Told() <-chan string { return w.told }

// Here is a point at which the director can stop this process, to kill or pause it.
// If it was started with StartUntil of that point, Here says so and blocks until
// the director lets it go on. It does so once: other goroutines pass.
func (w *Worker) Here(point string) {
	if point == w.stopAt && w.stopped.CompareAndSwap(false, true) {
		w.Say("%s%s", stopsAt, point)
		select {
		case <-w.told:
		case <-w.gone:
		}
	}
}

const stopsAt = "stops: "

package example

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Process is a process that plays a role, as the director sees it.
type Process struct {
	director *Director
	name     string
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	said     chan string // closed when the process has ended
	err      error       // how it ended; set before said is closed
}

// room is how much a process may say before the director listens.
const room = 10_000

func startProcess(d *Director, name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{director: d, name: name, cmd: cmd, said: make(chan string, room)}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process
		for out := bufio.NewScanner(stdout); out.Scan(); {
			d.print(name, out.Text())
			p.said <- out.Text()
		}
		p.err = cmd.Wait()
		close(p.said)
	}()
	return p, nil
}

// Await returns what follows prefix in the next line that begins with it. It gives up
// if the process ends before.
func (p *Process) Await(prefix string) string {
	rest, ok := p.AwaitFor(prefix, playWithin)
	if !ok {
		p.director.giveUp("%s never says %q", p.name, prefix)
	}
	return rest
}

// AwaitFor is Await that waits for d and then returns false.
func (p *Process) AwaitFor(prefix string, d time.Duration) (rest string, ok bool) {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	for {
		select {
		case line, running := <-p.said:
			if !running {
				p.director.giveUp("%s ended before it said %q: %v", p.name, prefix, p.err)
			}
			if rest, ok = strings.CutPrefix(line, prefix); ok {
				return rest, true
			}
		case <-timeout.C:
			return "", false
		}
	}
}

// AwaitStop waits until the process has come to the point given to StartUntil.
func (p *Process) AwaitStop() { p.Await(stopsAt) }

// Tell writes a line to the process. One that stands at its point goes on.
func (p *Process) Tell(line string) {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.director.giveUp("tell %s: %w", p.name, err)
	}
}

// Kill ends the process without a chance to clean up, as a crash does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	p.drain()
	p.director.Say("%s is killed", p.name)
}

// Pause stops the process, which does not notice: a long garbage collection, a laptop
// that is closed, a virtual machine that moves.
func (p *Process) Pause() {
	p.director.Must(pause(p.cmd.Process))
	p.director.Say("%s is paused", p.name)
}

// Resume lets a paused process go on.
func (p *Process) Resume() {
	p.director.Say("%s wakes up", p.name)
	p.director.Must(resume(p.cmd.Process))
}

// Wait waits until the process has ended, and gives up if that was with an error.
func (p *Process) Wait() {
	p.drain()
	if p.err != nil {
		p.director.giveUp("%s: %w", p.name, p.err)
	}
}

func (p *Process) drain() {
	for range p.said {
	}
}

// end ends a process that may have ended before.
func (p *Process) end() {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill()
	p.drain()
}

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Process is a process of the program, as the director sees it.
type Process struct {
	director *Director
	name     string
	cmd      *exec.Cmd
	line     *line
	said     chan string   // closed when the process has ended
	ended    chan struct{} // likewise
	err      error         // how it ended; set before both are closed
}

// room is how much a process may print before the director reads it.
const room = 10_000

// start starts cmd and prints what it prints.
func (p *Process) start() error {
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() { // ends with the process
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.director.print(p.name, lines.Text())
			p.said <- lines.Text()
		}
		p.err = p.cmd.Wait()
		close(p.said)
		close(p.ended)
	}()
	return nil
}

// Await returns what follows prefix in the next line that begins with it. It gives up if the process ends before.
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

// AwaitRequest waits until the process has sent the request that the stage holds back.
func (p *Process) AwaitRequest() {
	select {
	case <-p.line.reached:
	case <-p.ended:
		p.director.giveUp("%s ended before it sent %q: %v", p.name, p.line.until, p.err)
	case <-p.director.ctx.Done():
		p.director.giveUp("%s never sends %q", p.name, p.line.until)
	}
}

// LetPass lets that request pass to Redis.
func (p *Process) LetPass() { close(p.line.goOn) }

// Kill ends the process without a chance to clean up, as a crash does. Redis never gets a request that is held back.
func (p *Process) Kill(when string) {
	_ = p.cmd.Process.Kill()
	p.drain()
	p.line.close()
	p.director.Say("%s is killed %s", p.name, when)
}

// Pause stops the process, which does not notice: a long garbage collection, a laptop that is closed, a virtual machine
// that moves.
func (p *Process) Pause(when string) {
	p.director.Must(pause(p.cmd.Process))
	p.director.Say("%s is paused %s", p.name, when)
}

// Resume lets a paused process go on.
func (p *Process) Resume() {
	p.director.Say("%s wakes up", p.name)
	p.director.Must(resume(p.cmd.Process))
}

// Stop asks the process to end, as Ctrl-C does.
func (p *Process) Stop() { p.director.Must(p.cmd.Process.Signal(os.Interrupt)) }

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
	_ = p.cmd.Process.Kill()
	p.drain()
	p.line.close()
}

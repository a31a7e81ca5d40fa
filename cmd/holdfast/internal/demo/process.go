package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// grace is how long a process that has been told to stop may take to give its lock
// back before it is killed.
const grace = 3 * time.Second

// process is a running child, seen from its parent.
type process struct {
	shift  Shift
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr *tail
}

// startProcess starts cmd, which was made with exec.CommandContext: when its context
// is done the process's input ends, and after grace the process.
func startProcess(cmd *exec.Cmd, s Shift) (*process, error) {
	p := &process{shift: s, cmd: cmd, stderr: &tail{}}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, p.wrap(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, p.wrap(err)
	}
	p.stdin, p.stdout = stdin, bufio.NewScanner(stdout)
	cmd.Stderr = p.stderr
	cmd.Cancel = func() error {
		_ = stdin.Close()
		return nil
	}
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return nil, p.wrap(err)
	}
	return p, nil
}

// start lets the buyers loose. A process that does not read any more has ended, and
// follow reports why.
func (p *process) start() { _, _ = io.WriteString(p.stdin, startLine) }

// follow reads what the process reports until it has ended, and returns its figures.
// It calls ready and told from the calling goroutine.
func (p *process) follow(ready func(), told func(Outcome)) (Figures, error) {
	figures, readErr := p.read(ready, told)
	if readErr != nil && !errors.Is(readErr, io.ErrUnexpectedEOF) {
		_ = p.cmd.Process.Kill() // it writes nonsense and may go on doing so
		_ = p.cmd.Wait()
		return Figures{}, p.wrap(readErr)
	}
	if err := p.cmd.Wait(); err != nil {
		return Figures{}, p.wrap(err)
	}
	if readErr != nil {
		return Figures{}, p.wrap(readErr)
	}
	return figures, nil
}

// read returns io.ErrUnexpectedEOF, wrapped, if the output ends before it is complete.
func (p *process) read(ready func(), told func(Outcome)) (figures Figures, err error) {
	isReady, buyers, done := false, 0, false
	for p.stdout.Scan() {
		m, err := parseMessage(p.stdout.Bytes())
		switch {
		case err != nil:
			return Figures{}, err
		case done || m.Ready == isReady:
			return Figures{}, fmt.Errorf("out of turn: %.200q", p.stdout.Bytes())
		case m.Ready:
			isReady = true
			ready()
		case m.Outcome != nil:
			buyers++
			told(*m.Outcome)
		case buyers < p.shift.Count:
			return Figures{}, fmt.Errorf("figures after %d of %d buyers", buyers, p.shift.Count)
		default:
			done, figures = true, *m.Figures
		}
	}
	if err := p.stdout.Err(); err != nil {
		return Figures{}, err
	}
	if !done {
		return Figures{}, fmt.Errorf("ended after %d of %d buyers: %w", buyers, p.shift.Count, io.ErrUnexpectedEOF)
	}
	return figures, nil
}

// wrap says which process err is about, and what that had to say itself. Only to be
// called while the process does not run.
func (p *process) wrap(err error) error {
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("process %d: %w; its stderr: %s", p.shift.Process, err, said)
	}
	return fmt.Errorf("process %d: %w", p.shift.Process, err)
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

const tailLen = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - tailLen; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string { return string(t.kept) }

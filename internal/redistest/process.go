package redistest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// RoleEnv names the role that this process plays instead of running tests.
const RoleEnv = "HOLDFAST_TEST_ROLE"

// Main runs the tests, or a role if StartProcess started this process to play
// one. It returns the exit code:
//
//	func TestMain(m *testing.M) {
//		os.Exit(redistest.Main(m, map[string]func([]string){"holder": holder}))
//	}
//
// A role reads commands from os.Stdin and reports on os.Stdout, line by line,
// and should return when its input ends.
func Main(m *testing.M, roles map[string]func(args []string)) int {
	RunRole(roles)
	return m.Run()
}

// RunRole plays the role this process was started for and exits. In a process
// that runs tests it just returns. It is for a TestMain that does not call
// m.Run itself, as with goleak.VerifyTestMain; others use Main.
func RunRole(roles map[string]func(args []string)) {
	name, ok := os.LookupEnv(RoleEnv)
	if !ok {
		return
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "redistest: no role %q in this test binary\n", name)
		os.Exit(2)
	}
	role(os.Args[1:])
	os.Exit(0)
}

// Process is a process of this test's own: this test binary in a role, or a program.
type Process struct {
	tb     testing.TB
	role   string // or the program's name
	child  *child
	stdin  *os.File
	stderr string // path of the file

	out  *lineLog
	read chan struct{} // closed when the goroutine reading stdout has ended

	mu   sync.Mutex
	next int // guarded by mu; first line of out not yet returned
}

// StartProcess runs the role with args in a new process of this test binary,
// whose TestMain must call Main or RunRole. The process is killed at tb's
// cleanup. If the test failed, what it wrote to stderr is logged; a data race
// reported there fails the test.
func StartProcess(tb testing.TB, role string, args ...string) *Process {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), RoleEnv+"="+role,
		// Under -race a process sleeps for a second when it exits.
		"GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	return startProcess(tb, role, cmd)
}

// StartProgram is StartProcess for another program, found as exec.Command finds it.
func StartProgram(tb testing.TB, program string, args ...string) *Process {
	tb.Helper()
	return startProcess(tb, filepath.Base(program), exec.Command(program, args...))
}

func startProcess(tb testing.TB, role string, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{tb: tb, role: role, out: newLineLog(), read: make(chan struct{})}
	p.stderr = filepath.Join(tb.TempDir(), "stderr")
	if err := p.start(cmd); err != nil {
		tb.Fatalf("redistest: start role %s: %v", role, err)
	}
	tb.Cleanup(p.cleanup)
	return p
}

func (p *Process) start(cmd *exec.Cmd) error {
	stderr, err := os.Create(p.stderr)
	if err != nil {
		return err
	}
	defer stderr.Close()
	// Pipes of our own, not cmd.StdoutPipe: its reader and the reaper would
	// have to be ordered.
	stdin, stdinW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdoutR, stdout, err := os.Pipe()
	if err != nil {
		_ = stdinW.Close()
		return err
	}
	defer stdout.Close()

	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	if p.child, err = startChild(cmd); err != nil {
		_ = stdinW.Close()
		_ = stdoutR.Close()
		return err
	}
	p.stdin = stdinW
	go p.readLines(stdoutR)
	return nil
}

// readLines ends when the process has, and with it the other end of the pipe.
func (p *Process) readLines(stdout *os.File) {
	defer close(p.read)
	defer p.out.end()
	defer stdout.Close()
	br := bufio.NewReader(stdout)
	for {
		line, err := br.ReadString('\n')
		if line != "" {
			p.out.add(strings.TrimRight(line, "\r\n"))
		}
		if err != nil {
			return
		}
	}
}

func (p *Process) cleanup() {
	p.Kill()
	_ = p.stdin.Close()
	stderr := logTail(p.stderr)
	if strings.Contains(stderr, "WARNING: DATA RACE") {
		p.tb.Errorf("redistest: data race in role %s", p.role)
	}
	if p.tb.Failed() && stderr != "" {
		p.tb.Logf("redistest: stderr of role %s ends:\n%s", p.role, stderr)
	}
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.child.pid() }

// Send writes one line to the process. It fails the test if the process no
// longer reads. A paused process gets the line when it is resumed.
func (p *Process) Send(line string) {
	p.tb.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.tb.Fatalf("redistest: send %q to role %s: %v", line, p.role, err)
	}
}

// ReadLine returns the next line the process writes. It fails the test if there
// is none within timeout or if the process ends first.
func (p *Process) ReadLine(tb testing.TB, timeout time.Duration) string {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	line, at, err := p.out.await(p.next, func(string) bool { return true }, timeout)
	if err != nil {
		tb.Fatalf("redistest: read from role %s: %v; its stderr ends:\n%s", p.role, err, logTail(p.stderr))
	}
	p.next = at + 1
	return line
}

// Expect reads the next line, waiting up to Patience, and returns what follows
// prefix. It fails the test if the line does not begin with prefix.
func (p *Process) Expect(tb testing.TB, prefix string) string {
	tb.Helper()
	line := p.ReadLine(tb, Patience)
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		tb.Fatalf("redistest: role %s wrote %q, want a line beginning with %q", p.role, line, prefix)
	}
	return rest
}

// Await returns what follows prefix in the first line, past or to come, that begins with
// it, for processes whose answers come in any order. It leaves ReadLine's place alone.
func (p *Process) Await(tb testing.TB, prefix string, timeout time.Duration) string {
	tb.Helper()
	line, _, err := p.out.await(0, func(l string) bool { return strings.HasPrefix(l, prefix) }, timeout)
	if err != nil {
		tb.Fatalf("redistest: await %q from role %s: %v; its stderr ends:\n%s", prefix, p.role, err, logTail(p.stderr))
	}
	return line[len(prefix):]
}

// Pause stops the process with SIGSTOP and returns when it stands still. It
// runs again after Resume, and before any cleanup registered earlier.
func (p *Process) Pause() {
	p.tb.Helper()
	p.tb.Cleanup(p.Resume)
	if err := p.child.pause(); err != nil {
		p.tb.Fatalf("redistest: role %s: %v", p.role, err)
	}
}

// Resume continues a paused process. It does nothing if it runs or has ended.
func (p *Process) Resume() {
	p.tb.Helper()
	if err := p.child.resume(); err != nil {
		p.tb.Errorf("redistest: role %s: %v", p.role, err)
	}
}

// Kill ends the process with SIGKILL and waits until it is gone. Lines it wrote
// before can still be read.
func (p *Process) Kill() {
	p.child.kill()
	<-p.read
}

// CPU returns the processor time that the process has used, once it has ended.
func (p *Process) CPU() time.Duration {
	<-p.child.done
	return p.child.cmd.ProcessState.UserTime() + p.child.cmd.ProcessState.SystemTime()
}

// Wait closes the process's stdin, which tells a role to return, and waits
// until the process has ended. It returns nil if that was with code 0.
func (p *Process) Wait() error {
	_ = p.stdin.Close()
	select {
	case <-p.child.done:
	case <-time.After(Patience):
		return fmt.Errorf("redistest: role %s still runs %v after its stdin was closed", p.role, Patience)
	}
	<-p.read
	return p.child.err
}

package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// workerSwitch makes a program that calls Work a worker.
const workerSwitch = "HOLDFAST_BENCH_WORKER"

// Work does the jobs that another process of this program sends to standard input, if
// this one was started for that; otherwise it returns false at once. Main functions
// call it first.
//
// A job is a line of JSON, and so is each answer. After a job come the words start,
// sample and end. The Java program in bench/redisson speaks the same protocol. A worker
// ends with its standard input, so none outlives the program that started it.
func Work() bool {
	if os.Getenv(workerSwitch) == "" {
		return false
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var j Job
		if err := json.Unmarshal(in.Bytes(), &j); err != nil {
			fmt.Fprintln(os.Stderr, "bench worker:", err)
			os.Exit(1)
		}
		if err := do(j, in, out); err != nil {
			_ = out.Encode(answer{Error: err.Error()}) // the reader may be gone
		}
	}
	return true
}

// answer is a worker's to a job that it is ready for, or not.
type answer struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

func do(j Job, in *bufio.Scanner, out *json.Encoder) error {
	p, err := openPage(j.Page)
	if err != nil {
		return err
	}
	defer p.close()
	c, err := openCrowd(j, p)
	if err != nil {
		return err
	}
	defer c.close()
	if err := out.Encode(answer{Ready: true}); err != nil {
		return err
	}
	for in.Scan() {
		switch word := in.Text(); word {
		case "start":
			c.start()
		case "sample":
			err = out.Encode(c.sample())
		case "end":
			return out.Encode(c.end())
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return err
		}
	}
	os.Exit(1) // the benchmark has gone; callers may wait forever
	return nil
}

// worker is a member in another process.
type worker struct {
	server *Server // that keeps it for the next job, if it is dear
	java   bool
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	log    *strings.Builder
	broken bool        // it is in the middle of a job
	limit  *time.Timer // of the job: what hangs must not hang the report
}

// jobLimit is how long a job may take beside what it watches.
const jobLimit = 2 * time.Minute

// hire gives a job to a process: this program again, or the Java program, of which
// those of earlier measurements are used again, because a virtual machine takes long to
// become fast.
func (s *Server) hire(j Job, window time.Duration) (*worker, error) {
	w, err := s.idle(contender.Pick(j.Library)[0].Open == nil)
	if err != nil {
		return nil, err
	}
	w.broken = true
	w.limit = time.AfterFunc(jobLimit+2*window, func() { _ = w.cmd.Process.Kill() })
	if err := json.NewEncoder(w.in).Encode(j); err != nil {
		return nil, errors.Join(w.fail(err), w.close())
	}
	return w, nil
}

func (s *Server) idle(java bool) (*worker, error) {
	if n := len(s.javas); java && n > 0 {
		w := s.javas[n-1]
		s.javas = s.javas[:n-1]
		return w, nil
	}
	w := &worker{server: s, java: java, log: new(strings.Builder)}
	if java {
		cmd, err := contender.RedissonCommand()
		if err != nil {
			return nil, err
		}
		w.cmd = cmd
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		w.cmd = exec.Command(self)
		w.cmd.Env = append(os.Environ(), workerSwitch+"=1")
	}
	w.cmd.Stderr = w.log
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return w, nil
}

func (w *worker) ready() error {
	var a answer
	if err := w.read(&a); err != nil {
		return err
	}
	if !a.Ready {
		return fmt.Errorf("worker: %s", a.Error)
	}
	return nil
}

func (w *worker) start() error { return w.say("start") }

func (w *worker) sample() (s Sample, err error) {
	if err = w.say("sample"); err == nil {
		err = w.read(&s)
	}
	return s, err
}

func (w *worker) end() (*outcome, error) {
	if err := w.say("end"); err != nil {
		return nil, err
	}
	o := new(outcome)
	err := w.read(o)
	w.broken = err != nil
	return o, err
}

func (w *worker) say(word string) error {
	_, err := io.WriteString(w.in, word+"\n")
	return w.fail(err)
}

func (w *worker) read(v any) error {
	line, err := w.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	return w.fail(err)
}

func (w *worker) fail(err error) error {
	if err == nil {
		return nil
	}
	_ = w.cmd.Process.Kill() // its log is complete when it has ended
	_ = w.cmd.Wait()
	return w.with(err)
}

// with adds what the worker has logged to an error.
func (w *worker) with(err error) error {
	return fmt.Errorf("worker %d: %w: %s", w.cmd.Process.Pid, err, strings.TrimSpace(w.log.String()))
}

// close keeps a Java worker for the next job and ends any other.
func (w *worker) close() error {
	w.limit.Stop()
	if w.java && !w.broken {
		w.server.javas = append(w.server.javas, w)
		return nil
	}
	return w.stop()
}

func (w *worker) stop() error {
	if w.broken {
		_ = w.cmd.Process.Kill() // how far it got does not matter
		_ = w.cmd.Wait()
		return nil
	}
	_ = w.in.Close()
	if err := w.cmd.Wait(); err != nil {
		return w.with(err)
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/supervisor"
)

// guardName is the first argument of the guard, a process that run starts. Its others are not parsed as flags: the
// command's own are among them.
const guardName = "run-guard"

// guardOf returns the process that is the guard of j; the supervisor adds what runGuard has more.
func guardOf(j *job) (*exec.Cmd, error) {
	return self(guardName, printable(j.name), j.grace.String(), string(j.loss))
}

// runGuard is the guard, with the arguments NAME GRACE ON-LOSS IN OUT PATH ARGV0 [ARG...].
func runGuard(args []string, stderr io.Writer) int {
	var in, out int
	if len(args) < 7 {
		return exitUsage
	}
	grace, err := time.ParseDuration(args[1])
	if _, scan := fmt.Sscan(args[3]+" "+args[4], &in, &out); errors.Join(err, scan) != nil {
		return exitUsage
	}
	t := teller{w: stderr}
	return supervisor.Guard(args[0], grace, supervisor.Loss(args[2]), in, out, args[5], args[6:], func(text string) { t.insist("%s", text) })
}

// self returns this program as another process.
func self(args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if runtime.GOOS == "linux" {
		exe = "/proc/self/exe" // it is there even if the file has been replaced
		if _, err = os.Stat(exe); err != nil {
			err = errors.New("there is no /proc, which holdfast needs: mount it with `mount -t proc proc /proc`")
		}
	}
	if err != nil {
		return nil, err
	}
	return exec.Command(exe, args...), nil
}

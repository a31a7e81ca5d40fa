package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
)

func TestDemo_SellsTheStock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                     string
		args                     []string
		stock, buyers, processes int
	}{
		{"default", nil, 10, 100, 4},
		{"one buyer", []string{"--buyers=1", "--stock=1", "--processes=1"}, 1, 1, 1},
		{"uneven", []string{"--buyers=7", "--stock=3", "--processes=3", "--hold=0s"}, 3, 7, 3},
		{"a process each", []string{"--buyers=6", "--stock=4", "--processes=6"}, 4, 6, 6},
		{"more stock than buyers", []string{"--buyers=9", "--stock=20", "--processes=2"}, 20, 9, 2},
		{"no stock", []string{"--stock=0", "--buyers=10"}, 0, 10, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := invoke(t, append([]string{"demo"}, tt.args...)...)
			if status != 0 {
				t.Errorf("exit status %d, want 0", status)
			}
			wantSale(t, stdout, tt.stock, tt.buyers, tt.processes)
			if rest := progressLine.ReplaceAllString(stderr, ""); rest != "" {
				t.Errorf("stderr: %s", rest)
			}
			if (tt.stock == 0) != strings.Contains(stdout, "No sales.") {
				t.Errorf("stock of %d, and %q", tt.stock, "No sales.")
			}
		})
	}
}

// progressLine is what a sale says now and then that takes long, on a busy machine.
var progressLine = regexp.MustCompile(`(?m)^\d+ of \d+ buyers served, \d+ of \d+ phones sold\n`)

func TestDemo_UnsafeOversellsAndSaysWhy(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := invoke(t, "demo", "--unsafe")
	if status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	if n := len(sale.FindAllString(stdout, -1)); n <= 10 {
		t.Errorf("%d sales of 10 phones", n)
	}
	for _, want := range []string{"sold already!", "oversold", "THEY DISAGREE"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in stdout", want)
		}
	}
	for _, want := range []string{"stock and sales disagree (as they do without a lock)", "do not add up to the 10 phones", "sold already"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in stderr", want)
		}
	}
}

func TestDemo_RefusesBadFlagsBeforeItStarts(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"demo --buyers=0", "demo --stock=-1", "demo --processes=0", "demo --buyers=3 --processes=4", "demo --hold=-1ms",
		"demo --buyers=many", "demo --hold=2", "demo --colour", "demo 100", "demo --redis=localhost", "demo --redis=http://u:secret@h",
		"sale", "--colour", "demo-buyers", "demo-buyers --sale=x",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := invoke(t, strings.Fields(args)...)
			if status != 2 || stdout != "" {
				t.Errorf("exit status %d, want 2; stdout %q", status, stdout)
			}
			if lines := strings.Count(stderr, "\n"); lines != 1 || !strings.Contains(stderr, "--help") {
				t.Errorf("stderr %q, want one line that names --help", stderr)
			}
			if strings.Contains(stderr, "secret") {
				t.Error("stderr contains a password")
			}
		})
	}
}

func TestDemo_SaysThatRedisIsUnreachable(t *testing.T) {
	t.Parallel()
	// The kernel accepts connections for it, and no process answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, addr := range map[string]string{"refused": "127.0.0.1:1", "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			status, stdout, stderr := invoke(t, "demo", "--redis=redis://:secret@"+addr)
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if status != 1 || stdout != "" || !strings.Contains(stderr, "no usable Redis at "+addr) {
				t.Errorf("exit status %d, stdout %q, stderr %q", status, stdout, stderr)
			}
			if strings.Contains(stderr, "secret") {
				t.Error("stderr contains the password")
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "demo", "--help": "demo", "demo --help": "--processes", "--version": "holdfast version ",
	} {
		status, stdout, stderr := invoke(t, strings.Fields(args)...)
		if status != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("holdfast %s: exit status %d, stderr %q, stdout without %q", args, status, stderr, want)
		}
		if strings.Contains(stdout, buyersName) {
			t.Errorf("holdfast %s shows the hidden command", args)
		}
	}
}

// The other tests run the test binary as the command. This one runs what users do.
func TestBuiltCommand(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "holdfast.exe")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command(exe, "demo").CombinedOutput()
	if err != nil {
		t.Fatalf("holdfast demo: %v\n%s", err, out)
	}
	wantSale(t, string(out), 10, 100, 4)
}

func TestSpawner_HidesTheURL(t *testing.T) {
	t.Parallel()
	const secret = "redis://user:secret@host:6379/0"
	s := demo.Shift{Sale: "id", Process: 2, First: 26, Count: 25, Stock: 10, Hold: time.Millisecond, Unsafe: true}
	cmd := spawner(os.Args[0])(context.Background(), secret, s)
	if args := strings.Join(cmd.Args, " "); strings.Contains(args, "secret") {
		t.Errorf("the password is among the arguments: %s", args)
	}
	if got, want := cmd.Env[len(cmd.Env)-1], redisEnv+"="+secret; got != want {
		t.Errorf("the environment ends with %q, want %q", got, want)
	}
}

func TestProgress_WithoutTerminalIsALineNowAndThen(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := newProgress(&b, 100, 10)
	p.advance(1, 1)
	if b.Len() != 0 {
		t.Errorf("at once it writes %q", &b)
	}
	p.next = time.Now()
	p.advance(2, 2)
	p.advance(3, 3)
	p.done()
	if got, want := b.String(), "2 of 100 buyers served, 2 of 10 phones sold\n"; got != want {
		t.Errorf("later it writes %q, want %q", got, want)
	}
}

func TestSignalled_ExitCodeIsTheOneOfShells(t *testing.T) {
	t.Parallel()
	for s, want := range map[signalled]int{1: 129, 2: 130, 15: 143} {
		if got := s.exitCode(); got != want {
			t.Errorf("%v: exit code %d, want %d", s, got, want)
		}
		if !strings.Contains(fmt.Sprint(s), "signal") {
			t.Errorf("%d prints as %v", int(s), s)
		}
	}
}

package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestDemo_SellsTheStock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args                     string
		stock, buyers, processes int
	}{
		{"--buyers=1 --stock=1 --processes=1", 1, 1, 1},
		{"--buyers=7 --stock=3 --processes=3 --hold=0s", 3, 7, 3},
		{"--buyers=9 --stock=20 --processes=2", 20, 9, 2},
		{"--stock=0 --buyers=10", 0, 10, 4},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := invoke(t, append([]string{"demo"}, strings.Fields(tt.args)...)...)
			if status != 0 || stderr != "" {
				t.Errorf("exit status %d, stderr %q", status, stderr)
			}
			wantSale(t, stdout, tt.stock, tt.buyers, tt.processes)
			if (tt.stock == 0) != strings.Contains(stdout, "No sales.") {
				t.Errorf("stock of %d, and %q", tt.stock, "No sales.")
			}
		})
	}
}

func TestDemo_UnsafeOversellsAndSaysWhy(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := invoke(t, "demo", "--unsafe")
	redistest.Want(t, status, 1, "exit status %d, want 1")
	if n := len(saleLine.FindAllString(stdout, -1)); n <= 10 {
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

// What no run of the demo shows: sales that are wrong in a way of their own.
func TestDemo_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := &sale{Buyers: 3, Stock: 2}
	all := []served{{Waits: make([]time.Duration, 3)}}
	first, second := receipt{Phone: 1, Buyer: 3, Left: 1}, receipt{Phone: 2, Buyer: 1}
	for _, tt := range []struct {
		sold   []receipt
		left   int
		buyers []served
		want   string
	}{
		{[]receipt{first, second}, 0, all, ""},
		{[]receipt{first, second}, -1, all, "2 sold and -1 left do not add up to the 2 phones of the beginning"},
		{[]receipt{first, first}, 0, all, "1 of 2 sales were of a phone that was sold already"},
		{[]receipt{second, first}, 0, all, "sale 1 is out of order: phone 2, 0 left"},
		{[]receipt{first, second}, 0, nil, "0 of 3 buyers came back"},
		{[]receipt{first}, 1, all, "buyers were turned away with 1 left"},
	} {
		if got := strings.Join(s.wrong(tt.sold, tt.left, tt.buyers), "; "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestDemo_RefusesBadFlagsBeforeItStarts(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"demo --buyers=0", "demo --stock=-1", "demo --processes=0", "demo --buyers=3 --processes=4", "demo --hold=-1ms",
		"demo --hold=2", "demo --colour", "demo 100", "demo --redis=localhost", "demo --redis=http://u:secret@h", "sale", "--colour", "demo-buyers",
	} {
		status, stdout, stderr := said(strings.Fields(args)...)
		if status != exitUsage || stdout != "" {
			t.Errorf("%s: exit status %d, want 2; stdout %q", args, status, stdout)
		}
		if lines := strings.Count(stderr, "\n"); lines != 1 || !strings.Contains(stderr, "--help") || strings.Contains(stderr, "secret") {
			t.Errorf("%s: stderr %q, want one line that names --help", args, stderr)
		}
	}
}

func TestDemo_SaysThatRedisIsUnreachable(t *testing.T) {
	t.Parallel()
	// The kernel accepts connections for it, and no process answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for name, addr := range map[string]string{"refused": "127.0.0.1:1", "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			status, stdout, stderr := invoke(t, "demo", "--redis=redis://:secret@"+addr)
			redistest.WantMost(t, time.Since(begun), 20*time.Second, "it took %v")
			if status != 1 || stdout != "" || !strings.Contains(stderr, "no usable Redis: server at "+addr) || strings.Contains(stderr, "secret") {
				t.Errorf("exit status %d, stdout %q, stderr %q", status, stdout, stderr)
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

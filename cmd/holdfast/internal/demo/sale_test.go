package demo

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// openSale opens a sale on an embedded server.
func openSale(t *testing.T, cfg Config) *Sale {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

func TestSale_SellsEachPhoneOnceInOrder(t *testing.T) {
	t.Parallel()
	cfg := Config{Buyers: 23, Stock: 7, Processes: 3, Hold: time.Millisecond, Spawn: spawnRoles(t, "work")}
	s := openSale(t, cfg)
	calls, sold := 0, 0
	r, err := s.Run(t.Context(), func(served, n int) {
		if calls++; served != calls {
			t.Errorf("call %d of progress says %d served", calls, served)
		}
		sold = n
	})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := r.Disagreements(); len(wrong) > 0 {
		t.Errorf("Disagreements() = %q", wrong)
	}
	if len(r.Receipts) != 7 || r.Left != 0 || sold != 7 || calls != 23 {
		t.Errorf("%d receipts, %d left, progress of %d sold and %d served, want 7, 0, 7, 23", len(r.Receipts), r.Left, sold, calls)
	}
	for i, o := range r.Outcomes {
		if o.Buyer != i+1 {
			t.Errorf("outcome %d is of buyer %d", i, o.Buyer)
		}
		if o.Waited <= 0 {
			t.Errorf("buyer %d waited %v", o.Buyer, o.Waited)
		}
	}
	if r.Figures.Commands == 0 || r.Took <= 0 {
		t.Errorf("Figures = %+v, Took = %v", r.Figures, r.Took)
	}
}

func TestSale_WithoutLockOversells(t *testing.T) {
	t.Parallel()
	cfg := Config{Buyers: 40, Stock: 5, Processes: 2, Hold: 5 * time.Millisecond, Unsafe: true, Spawn: spawnRoles(t, "work")}
	r, err := openSale(t, cfg).Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Oversold() == 0 || len(r.Disagreements()) == 0 {
		t.Errorf("Oversold() = %d, Disagreements() = %q", r.Oversold(), r.Disagreements())
	}
	if r.Figures.Commands != 0 {
		t.Errorf("Commands = %d without a lock", r.Figures.Commands)
	}
}

func TestSale_FailsWithItsProcesses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ role, want string }{
		{"crash", "exit status 3; its stderr: crashing as told"},
		{"garbage", `not a report: "Hello, world!"`},
		{"silent", "ended after 0 of 1 buyers"},
		{"impatient", "out of turn"},
		{"lazy", "figures after 0 of 1 buyers"},
	} {
		t.Run(tt.role, func(t *testing.T) {
			t.Parallel()
			// The second process would wait for its start forever.
			cfg := Config{Buyers: 2, Stock: 1, Processes: 2, Spawn: spawnRoles(t, tt.role, "work")}
			_, err := openSale(t, cfg).Run(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "process 1") {
				t.Errorf("Run() = %v, want process 1 and %q", err, tt.want)
			}
		})
	}
}

func TestSale_FailsIfAProcessCannotBeStarted(t *testing.T) {
	t.Parallel()
	work, n := spawnRoles(t, "work"), 0
	cfg := Config{Buyers: 2, Stock: 1, Processes: 2}
	s := openSale(t, cfg)
	c := &crew{redisURL: s.redisURL}
	c.spawn = func(ctx context.Context, url string, sh Shift) (cmd *exec.Cmd) {
		cmd = work(ctx, url, sh)
		if n++; n == 2 {
			cmd.Path = t.TempDir()
		}
		return cmd
	}
	if err := c.run(t.Context(), cfg.shifts(s.id)); err == nil || !strings.Contains(err.Error(), "process 2") {
		t.Errorf("run() = %v, want an error about process 2", err)
	}
}

func TestSale_StopsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("shop closed")
	for _, role := range []string{"work", "deaf"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			// The second phone is never sold: its buyer thinks forever.
			cfg := Config{Buyers: 2, Stock: 2, Processes: 2, Hold: time.Hour, Spawn: spawnRoles(t, "deaf", role)}
			s := openSale(t, cfg)
			_, err := s.Run(ctx, func(served, _ int) { cancel(why) })
			if err != why {
				t.Errorf("Run() = %v, want %v", err, why)
			}
		})
	}
}

func TestOpen_FailsOnAnUnreachableRedis(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Buyers: 1, Processes: 1, Redis: "redis://user:secret@127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "no usable Redis at 127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("Open() = %v", err)
	}
}

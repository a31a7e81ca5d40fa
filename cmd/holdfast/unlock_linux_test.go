package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// At a terminal the name must be typed.
func TestUnlock_AsksAtATerminal(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for typed, want := range map[string]string{"job\n": "job is freed", "jab\n": "not freed: that is not the name", "\x04": "not freed: that is not the name", "\x03": "stopped by signal: interrupt"} {
		srv.Admin().HSet(t.Context(), "job", aliceID, 1)
		c := openShell(t, srv)
		c.press(t, "holdfast unlock job; echo status-$?\n")
		c.await(t, "type the name to free it: ", 1)
		c.press(t, typed)
		c.await(t, want, 1)
		if freed := srv.Admin().Exists(t.Context(), "job").Val() == 0; freed != (typed == "job\n") {
			t.Errorf("after %q: freed is %t", typed, freed)
		}
	}
}

// An owner that takes the lock while the question is on the screen was not shown, and keeps it.
func TestUnlock_AtATerminalKeepsAnotherOwner(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Admin().HSet(t.Context(), "job", aliceID, 1)
	c := openShell(t, srv)
	c.press(t, "holdfast unlock job; echo status-$?\n")
	c.await(t, "type the name to free it: ", 1)
	srv.Admin().Del(t.Context(), "job")
	srv.Admin().HSet(t.Context(), "job", bobID, 1)
	c.press(t, "job\n")
	c.await(t, "not freed: job has another owner by now", 1)
	c.await(t, "status-4", 1)
	if !srv.Admin().HExists(t.Context(), "job", bobID).Val() {
		t.Error("it was freed")
	}
}

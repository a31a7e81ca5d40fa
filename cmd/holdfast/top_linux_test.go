package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// At a terminal top draws a screen, keys change it, and q leaves the terminal as it was.
func TestTop_AtATerminal(t *testing.T) {
	t.Parallel()
	srv := newGallery(t)
	c := openShell(t, srv)
	c.press(t, "stty -a | grep -o 'echo ' ; TERM=xterm holdfast top --every=100ms; echo status-$?; stty -a | grep -o 'echo ' | tr -d ' '\n")
	c.await(t, enterScreen, 1)
	c.await(t, "\x1b["+bold+"mNAME", 1)
	c.await(t, "\x1b["+red+"mforever", 1)
	c.press(t, "s")
	c.await(t, "by handoffs, all", 1)
	c.press(t, "f")
	c.await(t, "by handoffs, with waiters", 1)
	c.press(t, "f")
	c.await(t, "with something wrong", 1)
	c.press(t, "f")
	c.press(t, "unobody\x7f\x7f\x7f\x7f\x7f\x7fforgotten\r")
	c.await(t, "the screen shows no lock forgotten", 1)
	c.press(t, "uforever\r")
	c.await(t, "forever is freed", 1)
	redistest.Want(t, srv.Admin().Exists(t.Context(), "forever").Val(), 0, "it is not freed")
	if strings.Contains(c.shown(), "evil\x1b[31m") {
		t.Error("a name has reached the terminal as it is")
	}
	srv.Kill() // an outage does not end it
	c.await(t, "connection refused", 1)
	c.press(t, "q")
	c.await(t, leaveScreen, 1)
	c.await(t, "status-0", 1)
	c.await(t, "echo\r\n", 1)
}

// Colours are for terminals that want them.
func TestStyle_NoColor(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Admin().HSet(t.Context(), "forever", aliceID, 1)
	for _, tt := range []struct {
		line   string
		colour bool
	}{
		{"TERM=xterm holdfast ls", true},
		{"TERM=xterm holdfast ls --no-color", false},
		{"TERM=xterm NO_COLOR=1 holdfast ls", false},
		{"TERM=dumb holdfast ls", false},
		{"TERM=xterm holdfast ls | cat", false},
		{"TERM=xterm holdfast doctor", true},
		{"TERM=xterm NO_COLOR=1 holdfast doctor", false},
		{"TERM=xterm NO_COLOR=1 holdfast top --once", false},
	} {
		c := openShell(t, srv)
		c.press(t, tt.line+"; echo sta''tus-$?\n")
		c.await(t, "status-", 1)
		if got := strings.Contains(c.shown(), "\x1b[0m"); got != tt.colour {
			t.Errorf("%s: colours %t, want %t", tt.line, got, tt.colour)
		}
	}
}

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

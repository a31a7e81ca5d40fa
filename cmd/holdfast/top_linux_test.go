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

// At a terminal the name must be typed. An owner that takes the lock while the question is on the screen was not shown, and keeps it.
func TestUnlock_AsksAtATerminal(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, tt := range []struct{ typed, by, want string }{
		{"job\n", aliceID, "job is freed"},
		{"job\n", bobID, "not freed: job has another owner by now"},
		{"jab\n", aliceID, "not freed: that is not the name"},
		{"\x04", aliceID, "not freed: that is not the name"},
		{"\x03", aliceID, "stopped by signal: interrupt"},
	} {
		srv.Admin().HSet(t.Context(), "job", aliceID, 1)
		c := openShell(t, srv)
		c.press(t, "holdfast unlock job; echo status-$?\n")
		c.await(t, "type the name to free it: ", 1)
		srv.Admin().Del(t.Context(), "job")
		srv.Admin().HSet(t.Context(), "job", tt.by, 1)
		c.press(t, tt.typed)
		c.await(t, tt.want, 1)
		if freed := srv.Admin().Exists(t.Context(), "job").Val() == 0; freed != (tt.want == "job is freed") {
			t.Errorf("after %q: freed is %t", tt.typed, freed)
		}
		srv.Admin().Del(t.Context(), "job")
	}
}

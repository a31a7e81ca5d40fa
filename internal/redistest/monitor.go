package redistest

import (
	"strings"
	"testing"
	"time"
)

// Monitor is the server's own record of what it executes, in order, with
// microseconds; commands run by scripts are marked "lua".
type Monitor struct {
	conn *rawConn // nil: of a virtual server
	log  *lineLog
	done chan struct{} // closed when the reading goroutine has ended
}

// Monitor starts to record and returns when the server has confirmed, so that
// every later command is seen. It stops at tb's cleanup or when the server dies.
func (s *Server) Monitor(tb testing.TB) *Monitor {
	tb.Helper()
	if s.virtual != nil {
		return s.virtual.monitor()
	}
	conn, err := dialRaw(s.addr, s.password, Patience)
	if err != nil {
		tb.Fatalf("redistest: monitor: %v", err)
	}
	if _, err := conn.do("MONITOR"); err != nil {
		_ = conn.Close()
		tb.Fatalf("redistest: monitor: %v", err)
	}
	m := &Monitor{conn: conn, log: newLineLog(), done: make(chan struct{})}
	go m.read()
	tb.Cleanup(func() {
		_ = conn.Close()
		<-m.done
	})
	return m
}

func (m *Monitor) read() {
	defer close(m.done)
	defer m.log.end()
	for {
		f, err := m.conn.replies.reply()
		if err != nil {
			return
		}
		m.log.add(f.text())
	}
}

// Lines returns the lines seen so far. The server sends a line when it executes
// the command, but it can arrive after the command's reply: to be sure that
// everything is in, Wait for a command sent last.
func (m *Monitor) Lines() []string { return m.log.snapshot() }

// Wait returns the first line, past or to come, that contains substr. It fails
// the test if there is none within timeout.
func (m *Monitor) Wait(tb testing.TB, substr string, timeout time.Duration) string {
	tb.Helper()
	line, _, err := m.log.await(0, func(l string) bool { return strings.Contains(l, substr) }, timeout)
	if err != nil {
		tb.Fatalf("redistest: monitor: wait for %q: %v", substr, err)
	}
	return line
}

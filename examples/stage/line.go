package main

import (
	"io"
	"net"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// line is the connection of one process to Redis, through the stage. It holds back requests that contain a text, all of
// them: a client may send one again over another connection.
type line struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	until    string        // "": no request is held back
	reached  chan struct{} // closed when the first one has come
	goOn     chan struct{} // closed to let them pass
	done     chan struct{} // closed by close
	once     sync.Once     // closes reached
	running  sync.WaitGroup

	mu     sync.Mutex // guards the following
	conns  []net.Conn
	closed bool
}

func newLine(until string, dial func() (net.Conn, error)) (*line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &line{
		listener: listener, dial: dial, until: until,
		reached: make(chan struct{}), goOn: make(chan struct{}), done: make(chan struct{}),
	}
	l.running.Go(l.accept)
	return l, nil
}

// close ends all connections. A request that is held back then never reaches Redis.
func (l *line) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
		l.listener.Close()
		for _, c := range l.conns {
			c.Close()
		}
	}
	l.mu.Unlock()
	l.running.Wait()
}

// own has close end c. It returns false if that was called before.
func (l *line) own(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.conns = append(l.conns, c)
	return true
}

func (l *line) accept() {
	for {
		process, err := l.listener.Accept()
		if err != nil {
			return
		}
		if !l.own(process) {
			return
		}
		redis, err := l.dial()
		if err != nil { // the process sees a connection that ends
			process.Close()
			continue
		}
		if !l.own(redis) {
			return
		}
		l.running.Go(func() {
			defer process.Close()
			_, _ = io.Copy(process, redis)
		})
		l.running.Go(func() {
			defer redis.Close()
			l.forward(process, redis)
		})
	}
}

// forward passes requests on, until one end closes its connection.
func (l *line) forward(process io.Reader, redis io.Writer) {
	var come []byte // and not passed on
	for part := make([]byte, 1<<16); ; {
		n, err := process.Read(part)
		if err != nil {
			return
		}
		come = append(come, part[:n]...)
		for {
			words, rest, wrong := vredis.ParseCommand(come)
			if wrong != "" {
				return
			}
			if words == nil { // the rest is still to come
				break
			}
			if !l.holdBack(strings.Join(words, " ")) {
				return
			}
			if _, err := redis.Write(come[:len(come)-len(rest)]); err != nil {
				return
			}
			come = rest
		}
	}
}

// holdBack waits with a request that is to be held back. It returns false if that never passes.
func (l *line) holdBack(request string) bool {
	if l.until == "" || !strings.Contains(request, l.until) {
		return true
	}
	l.once.Do(func() { close(l.reached) })
	select {
	case <-l.goOn:
		return true
	case <-l.done:
		return false
	}
}

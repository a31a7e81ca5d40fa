package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// line is the connection of one process to Redis, through the stage. It holds back the first request that contains a text.
type line struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	until    string        // "": no request is held back
	reached  chan struct{} // closed when that request has come
	goOn     chan struct{} // closed to let it pass
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
	for in := bufio.NewReader(process); ; {
		words, err := readRequest(in)
		if err != nil {
			return
		}
		if l.until != "" && strings.Contains(strings.Join(words, " "), l.until) {
			first := false
			l.once.Do(func() { close(l.reached); first = true })
			if first {
				select {
				case <-l.goOn:
				case <-l.done:
					return
				}
			}
		}
		if _, err := redis.Write(request(words)); err != nil {
			return
		}
	}
}

// readRequest reads what a client sends: an array of strings.
func readRequest(in *bufio.Reader) (words []string, err error) {
	n, err := readLength(in, '*')
	for range n {
		var size int
		if size, err = readLength(in, '$'); err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err = io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, err
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(head[1:]))
	if err != nil || head[0] != kind || n < 0 {
		return 0, fmt.Errorf("not a request: %q", head)
	}
	return n, nil
}

func request(words []string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out
}

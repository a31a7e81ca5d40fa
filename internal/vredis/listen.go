package vredis

import (
	"context"
	"io"
	"net"
	"sync"
)

// Listener is a Server on a port of the loopback interface, for clients in other processes. Only it has goroutines.
type Listener struct {
	*Server
	port   net.Listener
	served sync.WaitGroup // goroutines

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu; nil: closed
}

// Listen starts a server on a port, which is its address. The caller closes it.
func Listen(o Options) (*Listener, error) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o.Addr = port.Addr().String()
	l := &Listener{Server: New(o), port: port, conns: map[net.Conn]bool{}}
	l.served.Go(func() {
		for {
			client, err := port.Accept()
			if err != nil {
				return // closed
			}
			l.accept(client)
		}
	})
	return l, nil
}

// accept connects a client to the server, until either end is closed.
func (l *Listener) accept(client net.Conn) {
	here, err := l.Dial(context.Background(), "", "")
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || l.conns == nil {
		client.Close()
		return
	}
	l.conns[client] = true
	l.served.Go(func() {
		_, _ = io.Copy(here, client) // it ends with its connection, whatever the reason
		here.Close()
	})
	l.served.Go(func() {
		_, _ = io.Copy(client, here)
		client.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, client)
	})
}

// Close ends the server and all its connections, and waits for them.
func (l *Listener) Close() {
	l.port.Close()
	l.mu.Lock()
	for client := range l.conns {
		client.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.served.Wait()
}

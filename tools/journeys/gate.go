package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// gate is between the traced program and Redis. It can hold back what Redis says.
type gate struct {
	listener net.Listener
	redis    *vredis.Server

	mu      sync.Mutex // guards the following
	changed sync.Cond
	shut    bool
	held    bool              // something is held back
	passed  time.Time         // when the last bytes came, in either direction
	hearing map[net.Conn]bool // the connections that have subscribed
}

func newGate(redis *vredis.Server) (*gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{listener: listener, redis: redis, hearing: make(map[net.Conn]bool)}
	g.changed.L = &g.mu
	go g.accept()
	return g, nil
}

// accept serves connections until the listener is closed.
func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := g.redis.Dial(context.Background(), "", "")
		if err != nil {
			client.Close()
			return
		}
		go g.copy(server, client, func(b []byte) {
			if bytes.Contains(bytes.ToLower(b), []byte("\r\nsubscribe\r\n")) {
				g.hearing[client] = true
			}
		})
		go g.copy(client, server, func([]byte) {
			for g.held = g.shut; g.shut; {
				g.changed.Wait()
			}
		})
	}
}

// copy passes on what comes, each time after look, which is called with mu held. It ends with either connection.
func (g *gate) copy(to, from net.Conn, look func([]byte)) {
	defer to.Close()
	defer from.Close()
	for b := make([]byte, 1<<16); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		g.mu.Lock()
		g.passed = time.Now()
		look(b[:n])
		g.passed = time.Now()
		g.changed.Broadcast()
		g.mu.Unlock()
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// set has replies held back, or lets them through.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.held = shut, false
	g.changed.Broadcast()
}

// cut ends the connections that have subscribed.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.hearing {
		c.Close()
	}
	clear(g.hearing)
}

// until waits for a state of the gate, which is called with mu held.
func (g *gate) until(is func() bool) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		g.mu.Lock()
		ok := is()
		g.mu.Unlock()
		if ok {
			return nil
		}
	}
	return fmt.Errorf("not within %v", limit)
}

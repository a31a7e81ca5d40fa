package load

import (
	"net"
	"sync"
	"time"
)

// Relay is the way between clients and a server that are some distance apart: whatever one
// side sends reaches the other that much later, in order, and any number of messages is on
// the way at the same time. It has the clocks and the scheduler of this machine, so the way
// takes a tenth of a millisecond more than it should; what a scenario compares takes the same way.
type Relay struct {
	listener net.Listener
	server   string
	way      time.Duration // one way
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
	closed bool       // guarded by mu
}

// StartRelay returns a relay to the server at an address.
func StartRelay(server string, way time.Duration) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, server: server, way: way}
	r.running.Go(r.accept)
	return r, nil
}

// Address is where clients reach it.
func (r *Relay) Address() string { return r.listener.Addr().String() }

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			client.Close()
			continue
		}
		if !r.add(client, server) {
			return
		}
		r.running.Go(func() { r.carry(client, server) })
		r.running.Go(func() { r.carry(server, client) })
	}
}

// add keeps connections for Close to end; it ends them itself if that has been called.
func (r *Relay) add(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	if r.closed {
		for _, c := range conns {
			c.Close()
		}
	}
	return !r.closed
}

// parcel is what was read at one time.
type parcel struct {
	bytes []byte
	due   time.Time
}

// carry takes what from sends to the other side until one of them ends.
func (r *Relay) carry(from, to net.Conn) {
	way := make(chan parcel, 1024)
	r.running.Go(func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				from.Close()
				for range way { // the reader must not wait for room
				}
				return
			}
		}
	})
	defer close(way)
	for room := make([]byte, 16<<10); ; {
		n, err := from.Read(room)
		if err != nil {
			return
		}
		way <- parcel{append([]byte(nil), room[:n]...), time.Now().Add(r.way)}
	}
}

// Close ends all connections and waits for the goroutines. It may be called more than once.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for _, c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
	return err
}

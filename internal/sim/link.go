package sim

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// link is a connection between a process and a server: the client's end of it, and the way in between. Packets
// take their time in each direction, and keep their order. All fields below inner are guarded by World.mu.
type link struct {
	*vredis.End             // the client's
	far         *vredis.End // what is written there, the client reads
	w           *World
	p           *process
	s           *server
	n           uint64 // which one of the process it is
	messages    bool   // a PubSub has made it
	inner       vredis.Conn

	greeting   bool // messages: no command but those of the handshake so far. They take no time
	up, down   way
	asked      uint64        // what the server has executed last, as content has it
	arrived    []byte        // at the server, and not executed: half a command
	inbox      time.Duration // since when the server has its process's inbox subscribed by it; -1: it has not
	relying    int           // requests that say that their process listens, whose replies it has not
	replied    int           // of those, whose replies pump has not taken yet
	slow       time.Duration // what packets take in addition
	dead       bool          // at the server
	closed     bool          // by the client
	broken     bool          // it was reset, or is about to be
	deadline   time.Time     // of the client's Read
	swallow    bool          // the reply to what is executed is lost
	afterwards string        // what becomes of it then: "cut" or "hole"
	unsent     [][]byte      // what was written while the process stood still
}

// way is one direction.
type way struct {
	last time.Duration // when the latest packet arrives
	held []func()      // packets that wait until the network or the server goes on
	hole bool          // what is sent is lost
}

var errReset = &net.OpError{Op: "read", Net: "sim", Err: syscall.ECONNRESET}

// Read waits for what has come, and until the process does not stand still.
func (c *link) Read(b []byte) (int, error) {
	n, err := c.End.Read(b)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for c.p.standing != nil && !c.greeting {
		standing := c.p.standing
		c.w.mu.Unlock()
		<-standing
		time.Sleep(time.Duration(c.n)) // one connection after the other
		c.w.mu.Lock()
	}
	switch {
	case n > 0 && c.lapsedLocked(b[:n]):
		return 0, &net.OpError{Op: "read", Net: "sim", Err: os.ErrDeadlineExceeded}
	case err == io.EOF:
		return 0, errReset
	}
	return n, err
}

// lapsedLocked reports whether the deadline of a Read was over before the process went on. Which of the two a real one finds first, that
// or what has come, is a matter of chance.
func (c *link) lapsedLocked(read []byte) bool {
	return !c.deadline.IsZero() && c.deadline.Before(c.w.began.Add(c.p.woke)) && c.w.chance(uint64(c.w.now()), content(read), 8)%2 == 0
}

// Write never waits.
func (c *link) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.broken:
		c.p.troubleLocked(0) // go-redis would have seen it, of a real connection, and have taken another one
		return 0, &net.OpError{Op: "write", Net: "sim", Err: syscall.EPIPE}
	}
	packet := slices.Clone(b)
	if c.greeting && isHandshake(packet) {
		c.executeLocked(packet)
		return len(b), nil
	}
	c.greeting = false
	if c.p.standing != nil {
		c.unsent = append(c.unsent, packet)
		return len(b), nil
	}
	c.sendLocked(&c.up, content(packet), func() { c.arriveLocked(packet) })
	return len(b), nil
}

// sendLocked has a packet arrive, if nothing is in its way.
func (c *link) sendLocked(d *way, what uint64, arrive func()) {
	w := c.w
	at := max(w.now()+w.delayLocked(c, d, what), d.last+1)
	d.last = at
	var deliver func()
	deliver = func() {
		if len(d.held) > 0 || c.stopsLocked(d) {
			d.held = append(d.held, deliver)
			return
		}
		if !d.hole {
			arrive()
		}
	}
	w.atLocked(at, deliver)
}

// stopsLocked reports whether packets have to wait.
func (c *link) stopsLocked(d *way) bool {
	return c.p.apart[c.s.n] > 0 || d == &c.up && c.s.frozen > 0
}

// flushLocked lets packets go on, in their order, if nothing is in their way any more.
func (c *link) flushLocked() {
	for _, d := range []*way{&c.up, &c.down} {
		if c.stopsLocked(d) {
			continue
		}
		held := d.held
		d.held = nil
		for _, deliver := range held {
			deliver()
		}
	}
}

// arriveLocked is called when a packet has come to the server.
func (c *link) arriveLocked(packet []byte) {
	if c.dead {
		return
	}
	c.arrived = append(c.arrived, packet...)
	for !c.dead && !c.up.hole {
		args, rest, ok := parseCommand(c.arrived)
		if !ok {
			break
		}
		raw := c.arrived[:len(c.arrived)-len(rest)]
		c.arrived = rest
		c.s.executeLocked(c, args, raw)
	}
	if len(c.arrived) == 0 {
		c.arrived = nil
	}
}

// executeLocked hands bytes to the server, which executes them at once. pump finds the replies.
func (c *link) executeLocked(raw []byte) {
	c.asked = content(raw)
	_, _ = c.inner.Write(raw)
}

// pump carries what the server sends to the client. It ends with the server's end of the connection.
func (c *link) pump() {
	defer c.w.pumps.Done()
	for {
		<-c.inner.Ready()
		c.w.mu.Lock()
		packet, err := c.inner.Take()
		if len(packet) > 0 {
			switch {
			case c.greeting:
				_, _ = c.far.Write(packet)
			case c.swallow:
				c.swallow = false
				c.loseLocked()
			default:
				n := c.replied
				c.replied = 0
				c.sendLocked(&c.down, c.asked^content(packet), func() {
					c.relying -= n
					c.receiveLocked(packet)
				})
			}
		}
		if err != nil {
			c.endLocked()
			if !errors.Is(err, net.ErrClosed) {
				c.sendLocked(&c.down, c.asked, c.breakLocked)
			}
			c.w.mu.Unlock()
			return
		}
		c.w.mu.Unlock()
	}
}

// receiveLocked is called when a packet has come to the client.
func (c *link) receiveLocked(packet []byte) {
	if c.closed || c.broken {
		return
	}
	if c.messages {
		c.noteMessagesLocked(packet)
	}
	_, _ = c.far.Write(packet)
}

// loseLocked is what becomes of a connection whose packet was lost: TCP would repeat it, so nothing else comes over it either.
func (c *link) loseLocked() {
	if c.afterwards == "cut" {
		c.cutLocked(0)
	} else {
		c.holeLocked()
	}
}

// holeLocked has everything vanish that is sent from now on. Neither end knows.
func (c *link) holeLocked() { c.up.hole, c.down.hole = true, true }

// cutLocked ends the connection at both ends. A Read that waits hears of it after a while.
func (c *link) cutLocked(after time.Duration) {
	c.endLocked()
	c.broken = true
	c.w.afterLocked(after, c.breakLocked)
}

// endLocked ends the connection at the server.
func (c *link) endLocked() {
	if c.dead {
		return
	}
	c.dead, c.inbox = true, -1
	if c.messages {
		c.p.deafened = c.w.now()
	}
	_ = c.inner.Close()
	c.p.links = slices.DeleteFunc(c.p.links, func(x *link) bool { return x == c })
	c.w.judge.touchLocked(c.s)
}

// breakLocked resets the connection at the client, behind what has come.
func (c *link) breakLocked() {
	c.broken = true
	_ = c.far.CloseWrite()
}

// Close ends the connection at the client. The server learns of it as it does of a packet.
func (c *link) Close() error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	_ = c.End.Close()
	if !c.dead {
		c.sendLocked(&c.up, c.asked, c.endLocked)
	}
	return nil
}

// SetReadDeadline is the client's.
func (c *link) SetReadDeadline(t time.Time) error {
	c.w.mu.Lock()
	c.deadline = t
	c.w.mu.Unlock()
	return c.End.SetReadDeadline(t)
}

func (c *link) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// noteMessagesLocked writes what the inbox has brought.
func (c *link) noteMessagesLocked(packet []byte) {
	if text := string(packet); strings.Contains(text, "holdfast_inbox:") && strings.Contains(text, "message") {
		parts := strings.Split(strings.TrimSpace(text), "\r\n")
		c.w.noteLocked("%v    hears %q", c.p, parts[len(parts)-1])
	}
}

package lock

import "time"

// Terms are what the options of a lock add up to.
type Terms struct {
	Options
	Claim time.Duration // TTL of a grant to another process
	Shell any           // the shell's: for how requests are made
}

// Options are compared: two callers with equal ones can use one hold.
type Options struct {
	TTL     time.Duration
	Fixed   bool          // not renewed
	MaxHold time.Duration // 0: none
	AtLeast time.Duration // for how long the lock stays taken; 0: until it is given up
	Linger  time.Duration // for how long the process keeps it after Unlock, for its next caller; 0: it does not
	Fencing bool
	Acked   bool // a grant waits for acknowledgements of replicas
}

// suit reports whether t and o are of equal options.
func (t *Terms) suit(o *Terms) bool { return t == o || t.Options == o.Options }

// MaxClaim bounds for how long a grant to a process that is dead, or stopped, or does
// not hear of it keeps others out. A lock that is held for longer than 25 ms is renewed
// then, which gives it its own TTL; shorter ones are spared that command.
const MaxClaim = 2 * time.Second

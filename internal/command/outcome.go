package command

import (
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Outcome says what is known about a request's effect on Redis.
type Outcome uint8

const (
	// Answered: the script ran and this is its reply.
	Answered Outcome = iota
	// NotSent: not a byte of the request can have reached Redis.
	NotSent
	// Refused: Redis answered that it did not run the script; it may if asked again
	// (LOADING, READONLY, OOM, CLUSTERDOWN, ...).
	Refused
	// Denied: Redis did not run the script and will not until somebody changes
	// something (ACL, authentication, a command it does not know).
	Denied
	// Unknown: the script may have run, entirely or up to an error inside it.
	Unknown
)

func (o Outcome) String() string {
	return [...]string{"answered", "not sent", "refused", "denied", "unknown"}[o]
}

// Reply is the end of a request.
type Reply struct {
	Value   any // the script's reply if Answered
	Err     error
	Outcome Outcome
	Sent    time.Time // read before the request was handed to go-redis
	Acked   int       // by how many replicas, if Call.Acks is set and the outcome is Answered
	AckErr  error     // why that is not known
}

// refusals are beginnings of error replies that say "not now".
var refusals = [...]string{
	"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK",
	"ERR max number of clients reached",
	"UNBLOCKED",
}

// raisedByFirstWrite say "not now" as well. They are looked for anywhere in the text: Redis up
// to 6 wraps what a command inside a script raises in a text of its own.
var raisedByFirstWrite = [...]string{"OOM ", "READONLY ", "NOREPLICAS ", "MISCONF "}

// scriptFrame is in every error text raised by a command inside a running script:
// writes before it have happened and stay.
const scriptFrame = "@user_script"

// classify sorts the error of one request. It errs towards Unknown, which costs a
// resolving request; the opposite mistake would cost a stranded or doubled lock.
func classify(err error) Outcome {
	if err == nil {
		return Answered
	}
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return classifyReply(reply.Error())
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return NotSent
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return NotSent
	}
	return Unknown
}

func classifyReply(text string) Outcome {
	for _, r := range raisedByFirstWrite {
		// Our scripts write nothing before the first command that Redis can refuse in
		// this way, and once one write has passed these are not raised any more.
		if strings.Contains(text, r) {
			return Refused
		}
	}
	if strings.Contains(text, scriptFrame) {
		return Unknown
	}
	for _, r := range refusals {
		if strings.HasPrefix(text, r) {
			return Refused
		}
	}
	return Denied
}

// IsDenied reports whether err says that Redis will not run a command until somebody changes
// something.
func IsDenied(err error) bool { return err != nil && classify(err) == Denied }

func isNoScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}

// isReadOnly reports whether the server says that it is a replica.
func isReadOnly(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(reply.Error(), "READONLY ")
}

// errLapsed ends requests that are repeated before they were sent, see Call.Lapses.
var errLapsed = errors.New("not sent in time")

// errStopped ends requests that were never sent because the executor stopped.
var errStopped = errors.New("command executor stopped")

package command

import (
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// Reply is the end of a request.
type Reply struct {
	Value   any // the script's reply if Answered
	Err     error
	Outcome lock.Outcome
	Sent    time.Time // read before the request was handed to go-redis
	Unacked *Unacked  // nil: the replicas of Call.Acks have acknowledged it, or there are none
}

// Passes reports whether Redis, or what stands before it, has answered with an error that may pass, or with what the
// script does not give.
func (r Reply) Passes() bool {
	return (isReply(r.Err) || errors.Is(r.Err, errShifted) || IsGarbled(r.Err)) && (r.Outcome == lock.Refused || r.Outcome == lock.Unknown)
}

// Refuses reports whether err, of a request, is an answer: Redis has replied with an error, or too few replicas have acknowledged
// a grant. What a Sentinel says is none.
func Refuses(err error) bool {
	unacked := (*Unacked)(nil)
	return errors.As(err, &unacked) || isReply(err) && !strings.Contains(strings.ToLower(err.Error()), "sentinel")
}

// IsGarbled reports whether go-redis could not read what came as a reply, or as a message.
func IsGarbled(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "redis: invalid reply") || strings.Contains(text, "redis: can't parse") ||
		strings.Contains(text, "redis: unsupported pubsub message")
}

// Beginnings of error replies, in lower case and without a leading "ERR".
var (
	// refusals say "not now", and that the script was not run.
	refusals = [...]string{
		"loading", "busy ", "masterdown", "clusterdown", "tryagain", "moved ", "ask ", "crossslot", "noscript",
		"max number of clients reached", "unblocked",
	}
	// barriers say that the client is not known, or has no right.
	barriers = [...]string{
		"noauth", "wrongpass", "noperm",
		"protocol error: unauthenticated ",                                                        // a long request of a client that has sent no password
		"auth <password> called without any password", "client sent auth, but no password is set", // Redis from 6 on, and before
		"invalid password", "operation not permitted", // Redis up to 5, and up to 2.6
	}
	// denials say that the request will never do here.
	denials = [...]string{
		"unknown command", "unsupported command", "unknown subcommand", "wrongtype",
		"db index is out of range", "invalid db index", "select is not allowed in cluster mode",
	}
)

// raisedByFirstWrite say "not now" as well. They are looked for anywhere in the text: Redis up
// to 6 wraps what a command inside a script raises in a text of its own.
var raisedByFirstWrite = [...]string{"OOM ", "READONLY ", "NOREPLICAS ", "MISCONF "}

// scriptFrame is in every error text raised by a command inside a running script, or by
// the script: writes before it have happened and stay.
const scriptFrame = "user_script:"

// failures are in the texts of such errors that come again each time: the command is unknown, a
// key holds something else, or Lua cannot go on.
var failures = [...]string{
	"WRONGTYPE ", "Unknown Redis command", "Unknown command called", "not allowed from script", // the third is Valkey's
	" attempt to ", "bad argument #", "nonexistent global variable",
}

// ownError is what errors begin with that the scripts return by themselves. They have written
// nothing by then, or taken it back.
const ownError = "HOLDFAST "

// classify sorts the error of one request. It errs towards Unknown, which costs a
// resolving request; the opposite mistake would cost a stranded or doubled lock, or a wait
// that is given up for no reason.
func classify(err error) lock.Outcome {
	if err == nil {
		return lock.Answered
	}
	var reply redis.Error
	var wrong *misfit
	switch {
	case errors.As(err, &wrong):
		return lock.Barred
	case errors.As(err, &reply):
		return classifyReply(reply.Error())
	case errors.Is(err, redis.ErrClosed):
		return lock.Shut
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return lock.NotSent
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return lock.NotSent
	}
	return lock.Unknown
}

// classifyReply sorts an error reply. Barred stands for Denied as well: which it is, depends on
// whether the client was let in before.
func classifyReply(text string) lock.Outcome {
	for _, r := range raisedByFirstWrite {
		// Our scripts write nothing before the first command that Redis can refuse in
		// this way, and once one write has passed these are not raised any more.
		if strings.Contains(text, r) {
			return lock.Refused
		}
	}
	contains := func(part string) bool { return strings.Contains(text, part) }
	if contains("Error compiling script") {
		return lock.Denied
	}
	if contains(scriptFrame) {
		if slices.ContainsFunc(failures[:], contains) {
			return lock.Failed
		}
		return lock.Unknown
	}
	if own, ok := strings.CutPrefix(text, ownError); ok {
		if strings.Contains(own, "NOPERM") {
			return lock.Barred
		}
		return lock.Denied
	}
	lower := strings.TrimPrefix(strings.ToLower(text[:min(len(text), 64)]), "err ")
	begins := func(with string) bool { return strings.HasPrefix(lower, with) }
	switch {
	case slices.ContainsFunc(refusals[:], begins):
		return lock.Refused
	case slices.ContainsFunc(barriers[:], begins):
		return lock.Barred
	case slices.ContainsFunc(denials[:], begins):
		return lock.Denied
	}
	return lock.Unknown
}

// IsFinal reports whether err says that a command will not be run until something is
// changed.
func IsFinal(err error) bool {
	o := classify(err)
	return o.Final() || o == lock.Barred
}

// IsBarred reports whether err says that Redis does not let the client.
func IsBarred(err error) bool { return classify(err) == lock.Barred }

// IsDenied reports whether err is a reply by which Redis does not run a command, or does not let the client, until
// something is changed.
func IsDenied(err error) bool {
	o := classify(err)
	return o == lock.Denied || o == lock.Barred
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

// redirects reports whether go-redis follows err to another node of a cluster.
func redirects(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK "))
}

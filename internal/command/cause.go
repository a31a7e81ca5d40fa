package command

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// What go-redis says of a connection that it cannot make or use is often short: EOF. An operator needs to know
// of which address; and as long as Redis has answered nothing, the address, or the choice of TLS, may be wrong.

// ErrSilent is the cause if Redis sends nothing.
var ErrSilent = errors.New("no answer")

// where is what a client's options say of the servers that it is for.
type where struct {
	addr string // "": the client does not tell
	host string // of addr
	tls  bool
	told bool // the options are known
	db   int  // of the one server
}

// whereOf asks a client of go-redis's, or a type that embeds one.
func whereOf(client any) where {
	switch c := client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		w := where{addr: o.Addr, tls: o.TLSConfig != nil, told: true, db: o.DB}
		if w.addr == failoverClient {
			w.addr = sentinelsMaster
		}
		w.host = w.addr
		if host, _, err := net.SplitHostPort(w.addr); err == nil && host != "" {
			w.host = host
		}
		return w
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		addr := strings.Join(o.Addrs[:min(3, len(o.Addrs))], ",")
		return where{addr: addr, host: addr, tls: o.TLSConfig != nil, told: true}
	}
	return where{}
}

const sentinelsMaster = "Sentinel's master"

// OneServer reports whether the clients of two executors are for different databases of one address.
func OneServer(x, y *Executor) bool {
	return x.where.told && x.where.addr == y.where.addr && x.where.addr != sentinelsMaster && x.where.db != y.where.db
}

// failoverClient is what go-redis gives as the address of a client that asks Sentinel.
const failoverClient = "FailoverClient"

// Cause adds to an error of a client that has reached nothing yet what helps to find its cause.
func Cause(client any, err error) error {
	if err == nil || isReply(err) {
		return err
	}
	return whereOf(client).explain(err, false)
}

// explain adds to an error that is not Redis's what helps to find its cause.
func (x *Executor) explain(s *shard, err error) error {
	if err == nil || isReply(err) || classify(err) == lock.Shut {
		return err
	}
	w := x.where
	if s != nil && s.master != nil {
		w = whereOf(s.master)
	}
	return w.explain(err, x.admitted.Load())
}

func (w where) explain(err error, admitted bool) error {
	text := err.Error()
	if w.host != "" && !strings.Contains(text, w.host) {
		text = w.addr + ": " + text
	}
	if !admitted {
		text += w.doubt(err)
	}
	if text == err.Error() {
		return err
	}
	return &retold{text, err}
}

// doubt asks what may be wrong with w if err is all that was ever heard.
func (w where) doubt(err error) string {
	switch silent := isSilence(err); {
	case !w.told:
	case silent && w.tls:
		return " (can Redis be reached there, and does that port speak TLS?)"
	case silent:
		return " (can Redis be reached there, without TLS?)"
	case !isStrange(err):
	case w.tls:
		return " (does that port speak TLS?)"
	case HangsUp(err):
		return " (is that Redis, without TLS, and not in protected mode?)" // what Redis says before it hangs up is seldom read
	default:
		return " (is that Redis, without TLS?)"
	}
	return ""
}

// isSilence reports whether err says that something took too long.
func isSilence(err error) bool {
	slow := net.Error(nil)
	return errors.Is(err, ErrSilent) || errors.Is(err, errGaveUp) || errors.As(err, &slow) && slow.Timeout()
}

// isStrange reports whether err says that something there speaks another protocol, or hangs up.
func isStrange(err error) bool {
	record := tls.RecordHeaderError{}
	text := err.Error()
	return errors.As(err, &record) || HangsUp(err) ||
		strings.HasPrefix(text, "redis: can't parse ") || strings.HasPrefix(text, "redis: invalid reply")
}

// HangsUp reports whether err says that the connection was closed.
func HangsUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// failure says what is known of a request that ended with err, and the error to tell.
func (l *lane) failure(err error) (lock.Outcome, error) {
	x := l.shard.x
	err = x.misfit(err)
	outcome := classify(err)
	switch {
	case outcome == lock.Shut:
		if x.CheckClosed(); !x.Closed() {
			outcome, err = lock.NotSent, errNodeGone
		}
	case outcome == lock.Barred && !x.admitted.Load() && !isReadOnly(err): // a fail-over may be under way
		outcome = lock.Denied
	}
	return outcome, x.explain(l.shard, Legible(err))
}

var errGaveUp = errors.New("no connection in time")

// noReply is the error of a command that go-redis left without reply and without
// error, when the exchange as a whole ended with cause. It can be Redis's reply to the client's introduction.
func noReply(cause error) error {
	if isReply(cause) {
		return cause
	}
	return fmt.Errorf("no reply: %w", cmp.Or(cause, io.ErrUnexpectedEOF))
}

// misfit is that the client is of a kind that the server is not for, or is not known there. The server may change: Sentinel and DNS lead to others.
type misfit struct{ retold }

// misfit adds to an error that says so what to do.
func (x *Executor) misfit(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	do := ""
	switch text := strings.ToLower(reply.Error()); {
	case x.cluster == nil && redirects(reply):
		do = "the server is a node of a cluster: use redis.NewClusterClient"
	case strings.Contains(text, "cluster support disabled"):
		do = "the server is no cluster: use redis.NewClient"
	case strings.Contains(text, "protocol error: unauthenticated "):
		do = "the server wants a password, and the client has sent none"
	case errors.Is(err, redis.Nil) && strings.Contains(err.Error(), "sentinel"):
		do = "Sentinel knows no master of this name: check MasterName"
	case isReadOnly(err) && !x.admitted.Load():
		do = "the server is a replica: use its master's address, or redis.NewFailoverClient"
	default:
		return err
	}
	return &misfit{retold{Legible(err).Error() + " (" + do + ")", err}}
}

// longest is how much of a text goes into errors and logs: more than the longest that Redis has, and
// not what a proxy may send.
const longest = 512

// LegibleText makes a text that comes from outside fit for errors and logs: not endless, on one line, printable.
func LegibleText(text string) string {
	cut := ""
	if len(text) > longest {
		end := longest
		for end > longest-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		cut = fmt.Sprintf("… (%d bytes)", len(text))
		text = text[:end]
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	return text + cut
}

// Legible makes the text of err fit for errors and logs. What err is stays visible to errors.Is and errors.As.
func Legible(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if text == "" {
		return &retold{"an error without a text", err}
	}
	if plain := LegibleText(text); plain != text {
		return &retold{plain, err}
	}
	return err
}

// retold is an error with another text.
type retold struct {
	text string
	err  error
}

func (r *retold) Error() string { return r.text }
func (r *retold) Unwrap() error { return r.err }

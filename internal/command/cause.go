package command

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
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
	return errors.As(err, &record) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.HasPrefix(text, "redis: can't parse ") || strings.HasPrefix(text, "redis: invalid reply")
}

// Silence is why a request has no answer: what other requests have failed with since Redis has answered one, else ErrSilent.
func (x *Executor) Silence() error {
	if failure := x.Failure(); failure != nil {
		return failure
	}
	if x.admitted.Load() {
		return ErrSilent
	}
	return x.explain(nil, ErrSilent)
}

// outageAfter is how long requests have to remain without an answer before that is an outage.
const outageAfter = time.Second

// outage finds out when requests bring no answer any more, and when they do again. A request that
// fails or is overdue is a suspicion. It becomes an outage when a request that was submitted after
// that comes to nothing as well, outageAfter or more after the first, and no answer came in between.
// So neither one dead connection nor one lost reply is an outage. What costs nearly nothing is the
// answer: one atomic load where nothing is suspected.
type outage struct {
	began func(cause error)          // called under mu, which keeps the order, with nil if Redis says nothing; nil: nothing is told
	ended func(lasted time.Duration) // likewise
	doubt atomic.Bool                // something is suspected

	mu    sync.Mutex // guards the following
	since time.Time  // when the first request was submitted, or failed
	known time.Time  // when that was noticed
	cause error      // of the latest failure, if it had one
	told  bool       // it is an outage
}

// OnOutage has began and ended called, in turns and on goroutines of the executor, when Redis does not answer any
// more and when it answers again. They must not block. It must be called before Submit.
func (x *Executor) OnOutage(began func(cause error), ended func(lasted time.Duration)) {
	x.outage.began = func(cause error) {
		if cause == nil {
			cause = x.explain(nil, ErrSilent)
		}
		began(cause)
	}
	x.outage.ended = ended
}

// Failure returns why requests come to nothing, as the latest failure tells it; nil: Redis has answered since
// then, or the failure is that Redis says nothing. It knows nothing without OnOutage.
func (x *Executor) Failure() error {
	o := &x.outage
	if !o.doubt.Load() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if isSilence(o.cause) {
		return nil
	}
	return o.cause
}

// Suspicious reports whether an outage is suspected, or told.
func (x *Executor) Suspicious() bool { return x.outage.doubt.Load() }

// failed records a request, submitted or sent at from, that failed with cause; nil: it is overdue.
func (o *outage) failed(from time.Time, cause error) {
	if o.began == nil || errors.Is(cause, errLapsed) || errors.Is(cause, errStopped) {
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if cause != nil {
		o.cause = cause
	}
	switch {
	case o.known.IsZero():
		o.since, o.known = now, now
		if cause == nil {
			o.since = from
		}
		o.doubt.Store(true)
	case !o.told && from.After(o.known) && now.Sub(o.since) >= outageAfter:
		o.told = true
		o.began(o.cause)
	}
}

// answered records that Redis has answered.
func (o *outage) answered() {
	if !o.doubt.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubt.Store(false)
	if o.told {
		o.ended(time.Since(o.since))
	}
	o.since, o.known, o.cause, o.told = time.Time{}, time.Time{}, nil, false
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

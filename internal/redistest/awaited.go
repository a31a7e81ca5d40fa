package redistest

import (
	"slices"
	"strings"
	"sync"
)

// request is a request that was forwarded and awaits its reply.
type request struct {
	verdict
	confirm string // for SUBSCRIBE and its like: "subscribe channel"
}

// awaited is what the server still has to say on one connection: it tells
// which request a reply belongs to. The zero value is empty.
type awaited struct {
	mu         sync.Mutex
	replies    []*request // guarded by mu; in order
	confirms   []*request // guarded by mu; subscription changes to be confirmed
	subscribed bool       // guarded by mu; there was a SUBSCRIBE
}

// subscriptions are the commands that are confirmed once per channel. The
// confirmation repeats the command's name, and then the channel.
var subscriptions = []string{"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}

// messages are the other things a RESP2 subscriber gets without asking.
var messages = []string{"message", "pmessage", "smessage"}

// add notes what the server will say to cmd.
func (a *awaited) add(cmd []string, req *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := strings.ToLower(cmd[0])
	if !slices.Contains(subscriptions, name) {
		a.replies = append(a.replies, req)
		return
	}
	a.subscribed = true
	for _, channel := range cmd[1:] {
		a.confirms = append(a.confirms, &request{verdict: req.verdict, confirm: name + " " + channel})
	}
}

// addUnsent gives a request that was not sent its place among the replies.
func (a *awaited) addUnsent(req *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replies = append(a.replies, req)
}

// lostIsNext reports that all replies before a lost request are dealt with.
func (a *awaited) lostIsNext() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.replies) > 0 && a.replies[0].action == loseRequest
}

// nextAnswer takes the answer of the proxy's own that is next in line; nil if there is none.
func (a *awaited) nextAnswer() *request {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.replies) == 0 || a.replies[0].action != answer {
		return nil
	}
	r := a.replies[0]
	a.replies = a.replies[1:]
	return r
}

// match returns the request that f is the reply to, or nil if to none.
func (a *awaited) match(f frame) *request {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := f.text()
	pushed := f.kind == '>' || f.kind == '*' && a.subscribed &&
		(slices.Contains(subscriptions, kind) || slices.Contains(messages, kind))
	if !pushed {
		if len(a.replies) == 0 {
			return nil
		}
		return a.replies[0]
	}
	if len(f.elems) < 2 {
		return nil
	}
	confirm := kind + " " + f.elems[1]
	i := slices.IndexFunc(a.confirms, func(r *request) bool { return r.confirm == confirm })
	if i < 0 {
		return nil
	}
	return a.confirms[i]
}

// settle forgets a request whose reply has been dealt with. Only then, so that
// a lost request does not overtake the reply before it.
func (a *awaited) settle(req *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := func(r *request) bool { return r == req }
	a.replies = slices.DeleteFunc(a.replies, same)
	a.confirms = slices.DeleteFunc(a.confirms, same)
}

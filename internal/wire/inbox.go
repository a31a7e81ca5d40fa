package wire

import (
	"strconv"
	"strings"
	"time"
)

// inboxPrefix begins the channel on which a manager is told of its grants.
const inboxPrefix = "holdfast_inbox:"

// Inbox names the channel of the manager whose owner ids begin with prefix.
func Inbox(prefix string) string {
	return inboxPrefix + strings.TrimSuffix(strings.TrimPrefix(prefix, ownerMarker), ":")
}

// IsInbox reports whether a channel is some manager's.
func IsInbox(channel string) bool { return strings.HasPrefix(channel, inboxPrefix) }

// Notice is one message in an inbox; scripts/README.md describes the payloads.
type Notice struct {
	Number  uint64        // of the owner id that it is for
	Granted bool          // it has the lock; else: ask again soon, or when Left is over
	Left    time.Duration // not granted: for how long others have the lock, which is shorter than before; 0: ask soon
	Claim   time.Duration // for how long, if granted
	Clock   int64         // the server's time of the grant, milliseconds
	Turn    int           // which grant in a row it is since other clients could get in
	Others  bool          // another waiter is behind it
	Token   uint64        // the last of TokensPerGrant fencing tokens; 0: none
	Busy    bool          // the holder, which it asked, has the lock in use
	Wanted  bool          // another process wants the lock that it has
	Asker   string        // Wanted: the owner id of a TryLock that is to be answered if the lock is in use; empty: none
}

// TokensPerGrant is how many fencing tokens come with a grant by the server.
const TokensPerGrant = 128

// ParseNotice reads a message. It reports false for what no script of Holdfast sends. Processes of several
// versions share a lock, and a later one may have more to say: what follows the fields known here is ignored.
func ParseNotice(payload string) (Notice, bool) {
	kind, fields, _ := strings.Cut(payload, " ")
	var n [7]uint64
	var least, known int
	switch kind {
	case "w":
		return parseWanted(fields)
	case "b":
		least, known = 1, 1
	case "g":
		least, known = len(n), len(n)
	case "o":
		least, known = 1, 2
	default:
		return Notice{}, false
	}
	read := 0
	for s := range strings.SplitSeq(fields, " ") { // without allocations: one per grant
		if read == known {
			break
		}
		v, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			break
		}
		n[read] = v
		read++
	}
	if read < least {
		return Notice{}, false
	}
	const day = 24 * 60 * 60 * 1000
	if kind == "b" {
		return Notice{Number: n[0], Busy: true}, true
	}
	if kind == "o" {
		return Notice{Number: n[0], Left: time.Duration(min(n[1], day)) * time.Millisecond}, true
	}
	clock, ok := milliseconds(n[2], n[3])
	if !ok || n[1] > day || n[4] > 1<<30 {
		return Notice{}, false
	}
	return Notice{
		Number:  n[0],
		Granted: true,
		Claim:   time.Duration(n[1]) * time.Millisecond,
		Clock:   clock,
		Turn:    int(n[4]),
		Others:  n[5] != 0,
		Token:   n[6],
	}, true
}

// parseWanted reads "<number>", or "<number> <owner id>".
func parseWanted(fields string) (Notice, bool) {
	number, rest, _ := strings.Cut(fields, " ")
	asker, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 63)
	return Notice{Number: n, Wanted: true, Asker: asker}, err == nil && (asker == "" || IsOurs(asker))
}

// And is what two messages for one owner id say together: the later one counts, and that the lock is wanted stays.
func (n Notice) And(before Notice) Notice {
	switch {
	case n.Wanted && !n.Granted:
		before.Number, before.Wanted, before.Asker = n.Number, true, n.Asker
		return before
	case before.Wanted:
		n.Wanted, n.Asker = true, before.Asker
	}
	return n
}

// BusyFor is the message for the process of an owner id of Holdfast whose TryLock has asked, and the channel on which it hears
// that.
func BusyFor(asker string) (inbox, message string) {
	manager, number, _ := strings.Cut(strings.TrimPrefix(asker, ownerMarker), ":")
	number, _, _ = strings.Cut(number, ":") // a writer's
	return inboxPrefix + manager, "b " + number
}

func milliseconds(seconds, microseconds uint64) (ms int64, ok bool) {
	return int64(seconds*1000 + microseconds/1000), seconds <= 1<<40 && microseconds < 1e6
}

// SaysReleased reports whether a payload on one of Redisson's channels says that a lock, or a read hold of it, was given up: "0", or after
// a writer "1", for all readers; or how many permits of a semaphore are available. Redisson decodes payloads as decimal numbers. Any other
// payload is no release and must cost nothing.
func SaysReleased(payload string) bool {
	_, err := strconv.ParseUint(payload, 10, 31)
	return err == nil
}

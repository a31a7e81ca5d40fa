package wire

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Ticket is what a process needs that attaches a detached lock. Redis knows a part of its digest, as the number of the owner id that has
// the lock until then. So only the text of the ticket has the secret.
type Ticket struct {
	Kind  byte   // of the lock, a letter
	Giver string // what the owner ids begin with of the manager that has detached it
	Key   string // the name of the lock as Redis knows it
	Name  string // as the caller has given it
	Token uint64 // 0: none
	For   time.Duration

	Permits int // of a semaphore; 0: it is another kind

	secret [16]byte
}

// NewTicket completes a ticket.
func NewTicket(t Ticket) *Ticket {
	rand.Read(t.secret[:]) // never fails: crypto/rand aborts the program instead
	return &t
}

const (
	ticketPrefix  = "hft1_" // the version is in it
	maxTicket     = 4 << 10
	ticketSum     = 4 // bytes of the digest behind a ticket
	detachedFrom  = 1 << 62
	permitsFrom   = 1 << (8 * (PermitBytes - PermitManager - 1)) // of a semaphore: the first of the bytes of a number is 1
	ticketContent = 1 + 16 + 36                                  // kind, secret, UUID of the giver: what each has
	maxTicketFor  = int64(math.MaxInt64 / time.Millisecond)
)

// Number is that of the ticket's owner id, or of its first permit. Numbers of holds do not come so far.
func (t *Ticket) Number() uint64 {
	sum := sha256.Sum256(t.content())
	n := binary.BigEndian.Uint64(sum[8:])
	if t.Permits > 0 {
		return permitsFrom + n%(permitsFrom/2) // the others fit behind it
	}
	return detachedFrom + n>>3
}

// IsDetached reports whether an owner id, or a permit in hexadecimal digits, is a ticket's.
func IsDetached(owner string) bool {
	if _, ours := PermitOwner(owner); ours {
		return strings.HasPrefix(owner[2*PermitManager:], "01")
	}
	_, number, _ := strings.Cut(strings.TrimPrefix(owner, ownerMarker), ":")
	number, _, _ = strings.Cut(number, ":")
	n, err := strconv.ParseUint(number, 10, 63)
	return IsOurs(owner) && err == nil && n >= detachedFrom
}

// String is the ticket as its caller gets it. It fits into a URL, a header or a field of JSON.
func (t *Ticket) String() string {
	b := t.content()
	sum := sha256.Sum256(b)
	return ticketPrefix + base64.RawURLEncoding.EncodeToString(append(b, sum[:ticketSum]...))
}

// content is all that a ticket says.
func (t *Ticket) content() []byte {
	b := append([]byte{t.Kind}, t.secret[:]...)
	b = append(b, t.Giver[len(ownerMarker):len(t.Giver)-1]...)
	b = binary.AppendUvarint(b, t.Token)
	b = binary.AppendUvarint(b, uint64(t.For.Milliseconds()))
	b = binary.AppendUvarint(b, uint64(t.Permits))
	b = binary.AppendUvarint(b, uint64(len(t.Key)))
	b = append(b, t.Key...)
	if t.Name != t.Key {
		b = append(b, t.Name...)
	}
	return b
}

// errTicket says as little as can be: an error may be logged, and a ticket is secret.
var errTicket = errors.New("the text is no ticket, or not all of one")

// ParseTicket reads what String has written.
func ParseTicket(text string) (*Ticket, error) {
	coded, ours := strings.CutPrefix(text, ticketPrefix)
	all, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if !ours || len(text) > maxTicket || err != nil || len(all) < ticketContent+ticketSum {
		return nil, errTicket
	}
	b, check := all[:len(all)-ticketSum], all[len(all)-ticketSum:]
	if sum := sha256.Sum256(b); !bytes.Equal(sum[:ticketSum], check) {
		return nil, errTicket
	}
	t := &Ticket{Kind: b[0], Giver: ownerMarker + string(b[17:ticketContent]) + ":"}
	copy(t.secret[:], b[1:])
	b = b[ticketContent:]
	var n [4]uint64 // token, milliseconds, permits, length of the key
	for i := range n {
		v, read := binary.Uvarint(b)
		if read <= 0 {
			return nil, errTicket
		}
		n[i], b = v, b[read:]
	}
	if n[3] > uint64(len(b)) || n[2] > permitsFrom/2 || n[1] > uint64(maxTicketFor) {
		return nil, errTicket
	}
	t.Token, t.For, t.Permits = n[0], time.Duration(n[1])*time.Millisecond, int(n[2])
	t.Key, t.Name = string(b[:n[3]]), string(b[n[3]:])
	if t.Name == "" {
		t.Name = t.Key
	}
	if CheckName(t.Key) != nil || CheckLength(t.Name) != nil {
		return nil, errTicket
	}
	return t, nil
}

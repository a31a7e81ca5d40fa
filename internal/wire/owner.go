package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// ownerMarker begins every owner id of Holdfast, so that its entries are told
// from Redisson's in a queue. Redisson treats owner ids as opaque.
const ownerMarker = "hf-"

// NewOwnerPrefix returns what the owner ids of all holds of one manager begin with:
// the marker, a random UUIDv4 in lower case, and a colon. It comes from the system's
// random source, so cloned processes with the same clock and seed still differ.
func NewOwnerPrefix() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return ownerPrefix([PermitManager]byte(b[:]))
}

// ownerPrefix writes the UUID that begins with these bytes. The rest is a digest of them, so that a permit, whose id has no room for
// more, leads to its manager.
func ownerPrefix(b [PermitManager]byte) string {
	digest := sha256.Sum256(b[:])
	x := hex.EncodeToString(b[:]) + hex.EncodeToString(digest[:16-PermitManager])
	return ownerMarker + x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:] + ":"
}

// Marks are what an owner id says of its hold.
type Marks struct {
	Lingers bool // its process may keep the lock after Unlock, and hears that another one wants it
	Wanted  bool // its process hears that
	Writes  bool
	Value   string // of WithValue, as EncodeValue has written it; empty: none
}

// OwnerID returns the owner id of a manager's n-th hold: <prefix><n>, the shape of
// Redisson's <client>:<thread>, and behind that the value, and what Redisson puts there for a writer. One that lingers has a 0 before the
// number, and one whose process only wants to hear of others has 00: versions that do not know of that read the same number.
func OwnerID(prefix string, n uint64, as Marks) string {
	buf := make([]byte, 0, 72)
	buf = append(buf, prefix...)
	switch {
	case as.Lingers:
		buf = append(buf, '0')
	case as.Wanted:
		buf = append(buf, '0', '0')
	}
	buf = strconv.AppendUint(buf, n, 10)
	if as.Value != "" {
		buf = append(append(buf, ':'), as.Value...)
	}
	if as.Writes {
		buf = append(buf, writeSuffix...)
	}
	return string(buf)
}

const writeSuffix = ":write"

// EncodeValue writes a value so that it can be in an owner id, which is in names of keys: no brace moves one to another slot of a cluster,
// and no value is what a writer has there.
func EncodeValue(v string) string {
	var b strings.Builder
	for i := range len(v) {
		switch c := v[i]; {
		case i == 0 && strings.HasPrefix(v, writeSuffix[1:]), c != '.' && c != '_' && c != '-' && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'):
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// ValueOf returns the value in an owner id of Holdfast, without what a writer has behind it; empty: there is none.
func ValueOf(owner string) string {
	_, rest, _ := strings.Cut(owner, ":")
	_, coded, _ := strings.Cut(rest, ":")
	v, err := url.PathUnescape(coded)
	if !IsOurs(owner) || err != nil {
		return ""
	}
	return v
}

// processPrefix begins the key in which a manager says what process it is of.
const processPrefix = reservedOurs + "process:"

// ProcessKey names that key of the manager whose owner ids begin with a prefix, or which has made an owner id, or the id of a
// permit. It is empty if no Holdfast manager has.
func ProcessKey(owner string) string {
	if prefix, ours := PermitOwner(owner); ours {
		owner = prefix
	}
	id, ok := strings.CutPrefix(owner, ownerMarker)
	if !ok {
		return ""
	}
	id, _, _ = strings.Cut(id, ":")
	return processPrefix + id
}

// LingersPattern is Lua's pattern for the owner ids that Lingers reports true for, and HearsPattern for those of processes that hear
// that the lock is wanted.
const (
	LingersPattern = `'^hf%-[%x%-]+:0[1-9]'`
	HearsPattern   = `'^hf%-[%x%-]+:0'`
)

// Lingers reports whether an owner id is Holdfast's, and of a process that may keep the lock after Unlock.
func Lingers(owner string) bool {
	_, number, _ := strings.Cut(strings.TrimPrefix(owner, ownerMarker), ":")
	return IsOurs(owner) && strings.HasPrefix(number, "0") && !strings.HasPrefix(number, "00")
}

// IsOurs reports whether an owner id was made by a Holdfast manager.
func IsOurs(owner string) bool { return strings.HasPrefix(owner, ownerMarker) }

// PermitManager is how many bytes of its manager's UUID a permit id of Holdfast begins with. Its number follows, in six bytes, of which
// the first is 0, or 1 if the permit is left to a ticket.
const PermitManager = 10

// PermitBytes is how long a permit id is.
const PermitBytes = 16

// PermitsID returns the id by which a claim of n permits, of the numbers from first on, stands in a queue.
func PermitsID(prefix string, first uint64, n int) string {
	return prefix + strconv.FormatUint(first, 10) + ":" + strconv.Itoa(n)
}

// Permits returns the ids of n permits of a manager, of the numbers from first on, one behind the other.
func Permits(prefix string, first uint64, n int) string {
	digits := strings.ReplaceAll(strings.TrimPrefix(prefix, ownerMarker), "-", "")
	ids := make([]byte, 0, n*PermitBytes)
	for number := first; number < first+uint64(n); number++ {
		ids, _ = hex.AppendDecode(ids, []byte(digits[:2*PermitManager])) // ownerPrefix has encoded them
		ids = append(ids, byte(number>>40), byte(number>>32), byte(number>>24), byte(number>>16), byte(number>>8), byte(number))
	}
	return string(ids)
}

// PermitOwner returns what the owner ids of the manager begin with that a permit, in hexadecimal digits, is of. It reports false if
// none of Holdfast's has made it: Redisson's ids are random, and one of 8,192 looks like Holdfast's.
func PermitOwner(permit string) (prefix string, ours bool) {
	b, err := hex.DecodeString(permit)
	if err != nil || len(b) != PermitBytes || b[6]>>4 != 4 || b[8]>>6 != 2 || b[PermitManager] > 1 {
		return "", false
	}
	return ownerPrefix([PermitManager]byte(b[:PermitManager])), true
}

// PermitPattern is Lua's pattern for the bytes of the permits that PermitOwner reports true for.
const PermitPattern = `'^......[@-O].[\128-\191].[%z\1].....$'`

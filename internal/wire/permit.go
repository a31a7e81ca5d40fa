package wire

import (
	"encoding/hex"
	"strconv"
	"strings"
)

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

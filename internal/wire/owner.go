package wire

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// ownerMarker begins every owner id of ours, so that entries of ours are told
// from Redisson's in a queue. Redisson treats owner ids as opaque.
const ownerMarker = "hf-"

// ManagerID returns the part of an owner id that all holds of one manager share:
// the marker and a random UUIDv4, lower case. It comes from the system's random
// source, so cloned processes with the same clock and seed still differ.
func ManagerID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	x := hex.EncodeToString(b[:])
	return ownerMarker + x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// OwnerID returns the owner id of the manager's n-th hold: <manager>:<n>, the
// shape of Redisson's <client>:<thread>.
func OwnerID(manager string, n uint64) string {
	buf := make([]byte, 0, 64)
	buf = append(buf, OwnerPrefix(manager)...)
	return string(strconv.AppendUint(buf, n, 10))
}

// OwnerPrefix is what all owner ids of a manager begin with; their number follows.
func OwnerPrefix(manager string) string { return manager + ":" }

// IsOurs reports whether an owner id was made by a Holdfast manager.
func IsOurs(owner string) bool { return strings.HasPrefix(owner, ownerMarker) }

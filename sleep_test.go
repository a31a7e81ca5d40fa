package holdfast

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The host has slept beyond the deadline, and the connection has died meanwhile: that the repeated release finds
// nothing says that the lease was lost, and not that the first copy of it ran.
func TestUnlock_AfterASleepOfTheHost(t *testing.T) {
	_, p, srv, lease := heldFor(t, WithLease(time.Minute))
	// The wall clock has gone on for an hour, and the monotonic one has not: a Time begins with the seconds of the
	// first, above 30 bits of nanoseconds.
	lease.inner().Inside().EditDeadline(func(d *time.Time) { *(*uint64)(unsafe.Pointer(d)) -= 3600 << 30 })
	if lease.Valid() {
		t.Fatal("valid after a sleep")
	}
	srv.Admin().Del(t.Context(), "a") // it has expired
	p.LoseReply(redistest.Containing("redisson_lock__channel:{a}"), 1)
	if err := lease.Unlock(t.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("%v, want ErrLeaseLost", err)
	}
}

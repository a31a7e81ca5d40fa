package chaos

import (
	"testing"
	"time"
)

func TestWakes(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(h *handmade)
		want []string
	}{
		{"woken at once", func(h *handmade) {
			h.lease(0, busyMutex, 1, 999)
			h.hold(0, busyMutex, 0, 1000)
			h.op(1, Lock, busyMutex, OK, 10, 1001)
			h.hold(1, busyMutex, 1001, 1100)
		}, nil},
		{"found it by polling", func(h *handmade) {
			h.lease(0, busyMutex, 1, 999)
			h.hold(0, busyMutex, 0, 1000)
			h.op(1, Lock, busyMutex, OK, 10, 1900)
			h.hold(1, busyMutex, 1900, 2000)
		}, []string{"lost wake-up"}},
		{"found it by polling, amid faults", func(h *handmade) {
			h.Faulty = 0
			h.lease(0, busyMutex, 1, 999)
			h.hold(0, busyMutex, 0, 1000)
			h.op(1, Lock, busyMutex, OK, 10, 1900)
			h.hold(1, busyMutex, 1900, 2000)
		}, nil},
		{"not even by polling", func(h *handmade) {
			h.Faulty = 0
			h.lease(0, busyMutex, 1, 999)
			h.hold(0, busyMutex, 0, 1000)
			h.op(1, Lock, busyMutex, Ended, 10, 8000)
		}, []string{"stuck waiter"}},
		{"the machine stood still", func(h *handmade) {
			h.Stalls = []Fault{{Proc: -1, Start: 900 * ms, End: 1200 * ms}}
			h.lease(0, busyMutex, 1, 999)
			h.hold(0, busyMutex, 0, 1000)
			h.op(1, Lock, busyMutex, OK, 10, 1900)
			h.hold(1, busyMutex, 1900, 2000)
		}, nil},
		{"granted, and told", func(h *handmade) {
			h.op(1, Lock, busyMutex, OK, 10, 1000)
			h.lease(0, busyMutex, 11, 900)
			h.hold(0, busyMutex, 0, 901)
			h.hold(1, busyMutex, 901, 1100)
		}, nil},
		{"granted, and not told", func(h *handmade) {
			h.op(1, Lock, busyMutex, OK, 10, 1900)
			h.hold(1, busyMutex, 900, 2000)
		}, []string{"lost wake-up"}},
		{"granted to another who was not told", func(h *handmade) {
			h.op(1, Lock, busyMutex, OK, 10, 1000)
			h.hold(0, busyMutex, 20, 900)
			h.hold(1, busyMutex, 900, 1100)
		}, []string{"lost wake-up"}},
		{"granted to another who takes a second one", func(h *handmade) {
			h.op(1, Lock, busyMutex, OK, 10, 1000)
			h.op(0, Several, busyMutex, Ended, 15, 890)
			h.hold(0, busyMutex, 20, 900)
			h.hold(1, busyMutex, 900, 1100)
		}, nil},
		{"a process keeps it from one that waits", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900)
			h.op(1, Lock, busyMutex, OK, 100, 901)
			h.hold(1, busyMutex, 900, 1000)
		}, []string{"lost wake-up"}},
		{"and gives it up", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900)
			h.op(1, Lock, busyMutex, OK, 890, 901)
			h.hold(1, busyMutex, 900, 1000)
		}, nil},
		{"lost for no reason", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 500)
			h.hold(0, busyMutex, 9, 600)
		}, []string{"lost without cause"}},
		{"lost amid faults", func(h *handmade) {
			h.Faulty = 0
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 500)
			h.hold(0, busyMutex, 9, 600)
		}, nil},
		{"a fixed lease has an end", func(h *handmade) {
			l := h.lease(0, busyMutex, 10, 0)
			l.Fixed = true
			h.unlock(l, Lost, 1500)
			h.hold(0, busyMutex, 9, 1010)
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := byHand()
			tc.make(h)
			violations, _ := Wakes(h.History)
			want(t, violations, tc.want...)
		})
	}
}

func TestTold(t *testing.T) {
	h := byHand()
	h.op(0, told, busyMutex, "", 100, 110)
	violations, longest := Told(h.History)
	want(t, violations)
	if longest != 10*time.Millisecond {
		t.Errorf("longest %v, want 10 ms", longest)
	}
	h.op(0, told, busyMutex, "", 500, 900)
	violations, _ = Told(h.History)
	want(t, violations, "told late")
	h.Stalls = []Fault{{Kind: "stall", Proc: 0, Start: 600 * ms, End: 800 * ms}} // it did not run
	violations, _ = Told(h.History)
	want(t, violations)
	h.Stalls[0].Proc = -1 // Redis did not, which is no excuse
	violations, _ = Told(h.History)
	want(t, violations, "told late")
}

package chaos

import (
	"testing"
)

func TestTruths(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(h *handmade)
		want []string
	}{
		{"a hold under each claim", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 21)
		}, nil},
		{"two leases on one hold", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.lease(0, busyMutex, 21, 30)
			h.hold(0, busyMutex, 9, 31)
		}, nil},
		{"nothing in Redis", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
		}, []string{"claim without hold"}},
		{"another's hold", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(1, busyMutex, 9, 21)
		}, []string{"claim without hold"}},
		{"the hold ends before the claim", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 15)
		}, []string{"claim without hold"}},
		{"a writer stands on a reader's hold", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 21).Write = false
		}, []string{"claim without hold"}},
		{"told of a loss that did not happen", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 20).Detail = "stolen"
			h.hold(0, busyMutex, 9, 900)
		}, []string{"false loss"}},
		{"a deadline while something was wrong is reason enough", func(h *handmade) {
			h.Faults = append(h.Faults, Fault{Proc: 0, Kind: "stop a client", Start: 100 * ms, End: 900 * ms})
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 1020).Detail = "deadline"
			h.hold(0, busyMutex, 9, 1030)
		}, nil},
		{"a deadline that nobody has delayed a renewal for", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 1020).Detail = "deadline"
			h.hold(0, busyMutex, 9, 1030)
		}, []string{"lost without cause"}},
		{"a fixed lease ends with its deadline", func(h *handmade) {
			l := h.lease(0, busyMutex, 10, 0)
			l.Fixed = true
			h.unlock(l, Lost, 1020).Detail = "deadline"
			h.hold(0, busyMutex, 9, 1030)
		}, nil},
		{"and not before it", func(h *handmade) {
			l := h.lease(0, busyMutex, 10, 0)
			l.Fixed = true
			h.unlock(l, Lost, 110).Detail = "deadline"
			h.hold(0, busyMutex, 9, 1030)
		}, []string{"false loss"}},
		{"ended by its limit", func(h *handmade) {
			l := h.lease(0, busyMutex, 10, 0)
			l.Limit = 500 * ms
			h.unlock(l, Lost, 600).Detail = maxHold
			h.hold(0, busyMutex, 9, 601)
		}, nil},
		{"before its limit", func(h *handmade) {
			l := h.lease(0, busyMutex, 10, 0)
			l.Limit = 500 * ms
			h.unlock(l, Lost, 400).Detail = maxHold
			h.hold(0, busyMutex, 9, 401)
		}, []string{"false loss"}},
		{"ended by a limit that it has not", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 600).Detail = maxHold
			h.hold(0, busyMutex, 9, 601)
		}, []string{"false loss"}},
		{"lost with another of several locks", func(h *handmade) {
			l := h.lease(0, busyMutex, 10, 0)
			l.Do = Several
			h.unlock(l, Lost, 600).Detail = otherPart
			h.hold(0, busyMutex, 9, 590)
		}, nil},
		{"a hold that nobody has a lease of", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 21)
			h.hold(0, busyMutex, 30, 4000)
		}, []string{"forsaken hold"}},
		{"an Unlock that did not", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 4000)
		}, []string{"forsaken hold"}},
		{"a process keeps it for its time", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 4000)
		}, nil},
		{"and for longer", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 4100)
		}, []string{"forsaken hold"}},
		{"given up while no caller had it", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900).EndedBy = "del"
		}, nil},
		{"kept, and deleted while a caller had it", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.lease(0, busyMutex, 800, 950)
			h.idle(0, busyMutex, 9, 900).EndedBy = "del"
		}, []string{"hold deleted", "claim without hold"}},
		{"tidied up late, because the network was away", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 4000)
			h.Faults = []Fault{{Proc: 0, Start: 15 * ms, End: 3000 * ms}}
		}, nil},
		{"deleted, and nobody knows by whom", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 15).EndedBy = "del"
			h.op(1, Unlock, busyMutex, OK, 14, 16)
		}, []string{"hold deleted", "claim without hold"}},
		{"deleted when its time may be over", func(h *handmade) { // a dead reader's right, by the next that leaves
			h.lease(0, busyMutex, 10, 20)
			o := h.hold(0, busyMutex, 9, 15)
			o.EndedBy, o.End.Hi, o.Expires = "del", 17*ms, 16*ms
			h.op(1, Unlock, busyMutex, OK, 14, 16)
		}, []string{"claim without hold"}},
		{"deleted by its own release", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 21).EndedBy = "del"
		}, nil},
		{"an owner comes back", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			first := h.hold(0, busyMutex, 9, 21)
			h.hold(0, busyMutex, 30, 31).Owner = first.Owner
		}, []string{"resurrection"}},
		{"a grant that was not heard is made again, beside another reader", func(h *handmade) {
			h.lease(0, busyRW, 10, 40).Shared = true
			h.hold(0, busyRW, 9, 41).Write = false
			unheard := h.hold(0, busyRW, 20, 30)
			again := h.hold(0, busyRW, 50, 60)
			unheard.Write, again.Write, again.Owner = false, false, unheard.Owner
		}, nil},
		{"a grant that was not heard is made again", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			unheard := h.hold(0, busyMutex, 5, 6)
			h.hold(0, busyMutex, 9, 21).Owner = unheard.Owner
		}, nil},
		{"a dead reader's field stays", func(h *handmade) {
			h.Processes[0].Died = 15 * ms
			h.lease(0, busyMutex, 10, 0).Shared = true
			h.hold(0, busyMutex, 9, 9000).Write = false
		}, nil},
		{"a dead writer's does not", func(h *handmade) {
			h.Processes[0].Died = 15 * ms
			h.lease(0, busyMutex, 10, 0)
			h.hold(0, busyMutex, 9, 9000)
		}, []string{"forsaken hold"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := byHand()
			tc.make(h)
			want(t, Truths(h.History), tc.want...)
		})
	}
}

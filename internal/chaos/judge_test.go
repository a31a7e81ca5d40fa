package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// handmade is a history made by hand, in milliseconds.
type handmade struct {
	*History
	next int64
}

const ms = int64(time.Millisecond)

// byHand returns an empty history of two processes, "a" and "b", calm throughout.
func byHand() *handmade {
	h := &handmade{History: &History{TTL: time.Second, Faulty: 1 << 60, Healed: never, Quiesced: 1 << 60, End: 1 << 60}}
	h.Truth = &Truth{Holds: make(map[string][]*Hold)}
	for i, prefix := range []string{"hf-a", "hf-b"} {
		h.Processes = append(h.Processes, &Process{ID: i, Prefix: prefix, Died: never})
	}
	return h
}

// op adds an operation of process p.
func (h *handmade) op(p int, do Action, name string, result Result, call, ret int64) *Op {
	h.next++
	o := &Op{ID: h.next, Proc: p, Worker: 1, Do: do, Name: name, Result: result, Call: call * ms, Return: ret * ms}
	if o.acquires() {
		o.Chain = o.ID
	}
	h.Ops = append(h.Ops, o)
	sortByCall(h.Ops)
	return o
}

// lease adds a grant at from and, if to is not 0, its Unlock, each taking a
// millisecond; the lease is good for a second.
func (h *handmade) lease(p int, name string, from, to int64) *Op {
	o := h.op(p, Lock, name, OK, from-1, from)
	o.Deadline = (from + 1000) * ms
	if to != 0 {
		h.unlock(o, OK, to)
	}
	return o
}

func (h *handmade) unlock(l *Op, result Result, at int64) *Op {
	u := h.op(l.Proc, Unlock, l.Name, result, at, at+1)
	u.Lease, u.Chain, u.Shared, u.Deadline = l.ID, l.Chain, l.Shared, l.Deadline
	return u
}

// hold adds what Redis had: an owner of process p from one time to another.
func (h *handmade) hold(p int, name string, from, to int64) *Hold {
	h.next++
	o := &Hold{
		Name: name, Owner: fmt.Sprintf("%s:%d", h.Processes[p].Prefix, h.next), Write: true,
		Start: Span{from * ms, from * ms}, End: Span{to * ms, to * ms}, EndedBy: "hdel", Expires: (to + 1000) * ms,
	}
	h.Truth.Holds[name] = append(h.Truth.Holds[name], o)
	return o
}

// idle adds what Redis had for process p, which keeps locks.
func (h *handmade) idle(p int, name string, from, to int64) *Hold {
	h.Processes[p].Linger = time.Second
	o := h.hold(p, name, from, to)
	o.Owner = strings.Replace(o.Owner, ":", ":0", 1)
	return o
}

// want fails unless the rules found are exactly these.
func want(t *testing.T, violations []Violation, rules ...string) {
	t.Helper()
	var found []string
	for _, v := range violations {
		found = append(found, v.Rule)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	slices.Sort(rules)
	if !slices.Equal(found, rules) {
		t.Errorf("found %q, want %q:\n%v", found, rules, violations)
	}
}

const busyMutex, busyFenced, busyRW = "chaos:mutex", "chaos:fenced", "chaos:rw"

func TestClaims(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(h *handmade)
		want []string
	}{
		{"one after the other", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.lease(1, busyMutex, 21, 30)
		}, nil},
		{"two at a time", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.lease(1, busyMutex, 19, 30)
		}, []string{"overlap"}},
		{"the deadline ends a claim", func(h *handmade) {
			h.lease(0, busyMutex, 10, 2000)
			h.lease(1, busyMutex, 1011, 1030)
		}, nil},
		{"a claim lasts until its deadline if nobody unlocks", func(h *handmade) {
			h.lease(0, busyMutex, 10, 0)
			h.lease(1, busyMutex, 1009, 1030)
		}, []string{"overlap"}},
		{"death ends a claim", func(h *handmade) {
			h.Processes[0].Died = 500 * ms
			h.lease(0, busyMutex, 10, 0)
			h.lease(1, busyMutex, 600, 700)
		}, nil},
		{"an owner does not exclude itself", func(h *handmade) {
			a := h.lease(0, busyMutex, 10, 30)
			h.lease(0, busyMutex, 15, 20).Chain = a.ID
			h.Ops[slices.IndexFunc(h.Ops, func(o *Op) bool { return o.Do == Unlock && o.Call == 20*ms })].Chain = a.ID
		}, nil},
		{"readers share", func(h *handmade) {
			h.lease(0, busyMutex, 10, 30).Shared = true
			h.lease(1, busyMutex, 15, 20).Shared = true
		}, nil},
		{"a process gives a caller what it kept, and an administrator has deleted", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 25)
			h.Faults = []Fault{{Proc: -1, Name: busyMutex, Start: 24 * ms, End: 26 * ms}}
			h.lease(0, busyMutex, 30, 40).Deadline = 1010 * ms
			h.lease(1, busyMutex, 35, 45)
		}, nil},
		{"and for longer than until its renewal", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 25)
			h.Faults = []Fault{{Proc: -1, Name: busyMutex, Start: 24 * ms, End: 26 * ms}}
			h.lease(0, busyMutex, 30, 40).Deadline = 1100 * ms
			h.lease(1, busyMutex, 35, 45)
		}, []string{"overlap"}},
		{"a writer beside a reader", func(h *handmade) {
			h.lease(0, busyMutex, 10, 30).Shared = true
			h.lease(1, busyMutex, 15, 20)
		}, []string{"overlap"}},
		{"deleted by hand", func(h *handmade) {
			h.Faults = []Fault{{Proc: -1, Name: busyMutex, Start: 12 * ms, End: 13 * ms}}
			h.lease(0, busyMutex, 10, 30)
			h.lease(1, busyMutex, 15, 20)
		}, nil},
		{"another lock was deleted by hand", func(h *handmade) {
			h.Faults = []Fault{{Proc: -1, Name: busyFenced, Start: 12 * ms, End: 13 * ms}}
			h.lease(0, busyMutex, 10, 30)
			h.lease(1, busyMutex, 15, 20)
		}, []string{"overlap"}},
		{"tokens grow", func(h *handmade) {
			h.lease(0, busyFenced, 10, 20).Token = 4
			h.lease(1, busyFenced, 22, 30).Token = 7
		}, nil},
		{"tokens fall", func(h *handmade) {
			h.lease(0, busyFenced, 10, 20).Token = 7
			h.lease(1, busyFenced, 22, 30).Token = 4
		}, []string{"token"}},
		{"a token twice", func(h *handmade) {
			h.lease(0, busyFenced, 10, 20).Token = 7
			h.lease(1, busyFenced, 22, 30).Token = 7
		}, []string{"token"}},
		{"no token", func(h *handmade) { h.lease(0, busyFenced, 10, 20) }, []string{"token"}},
		{"readers share a token", func(h *handmade) {
			for p, token := range []uint64{7, 7} {
				r := h.lease(p, busyRW, 10+int64(p), 20)
				r.Shared, r.Token = true, token
			}
		}, nil},
		{"a reader with a smaller token than the writer before", func(h *handmade) {
			h.lease(0, busyRW, 10, 20).Token = 7
			r := h.lease(1, busyRW, 22, 30)
			r.Shared, r.Token = true, 4
		}, []string{"token"}},
		{"a writer with a smaller token than a reader before", func(h *handmade) {
			r := h.lease(0, busyRW, 10, 20)
			r.Shared, r.Token = true, 7
			h.lease(1, busyRW, 22, 30).Token = 4
		}, []string{"token"}},
		{"one of several locks has no token", func(h *handmade) {
			h.lease(0, busyFenced, 10, 20).Token = 7
			h.lease(1, busyFenced, 22, 30).Do = Several
			h.lease(0, busyFenced, 40, 50).Token = 8
		}, nil},
		{"one of several locks excludes like any", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.lease(1, busyMutex, 15, 30).Do = Several
		}, []string{"overlap"}},
		{"which ended when another of them was lost", func(h *handmade) {
			several := h.lease(0, busyMutex, 10, 0)
			several.Do = Several
			h.unlock(several, Lost, 20).Detail = otherPart
			h.lease(1, busyMutex, 15, 30)
		}, nil},
		{"re-entry with a token of its own", func(h *handmade) {
			a := h.lease(0, busyFenced, 10, 40)
			a.Token = 7
			b := h.lease(0, busyFenced, 15, 20)
			b.Token, b.Chain = 8, a.ID
		}, []string{"token"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := byHand()
			tc.make(h)
			want(t, Claims(h.History), tc.want...)
		})
	}
}

func TestBypasses(t *testing.T) {
	h := byHand()
	h.op(0, Lock, busyMutex, OK, 0, 500)    // waits for long
	h.op(1, Lock, busyMutex, OK, 200, 300)  // overtakes it
	h.op(1, Lock, busyMutex, OK, 100, 200)  // came too soon after it to say
	h.op(1, Lock, busyMutex, Ended, 0, 900) // gave up
	got := Bypasses(h.History, busyMutex)
	if len(got) != 1 || got[0].Waiter.Return != 500*ms || got[0].Other.Return != 300*ms {
		t.Errorf("bypasses: %v", got)
	}
}

func TestCalm(t *testing.T) {
	h := byHand().History
	h.Faulty, h.Healed = 1000*ms, 2000*ms // and two seconds to recover
	h.Stalls = []Fault{{Start: 5000 * ms, End: 5100 * ms}}
	for _, tc := range []struct{ from, to, want int64 }{
		{0, 500, 500}, {0, 1500, 1000}, {1500, 3000, 0}, {1500, 4500, 500}, {0, 4500, 1500}, {4000, 8000, 1900}, {7200, 7300, 100},
	} {
		if got := h.calm("", Span{tc.from * ms, tc.to * ms}); got != time.Duration(tc.want*ms) {
			t.Errorf("calm from %d to %d = %v, want %d ms", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestReport_ShowsWhatWasFound(t *testing.T) {
	h := byHand()
	h.End = 5000 * ms
	h.lease(0, busyMutex, 10, 20)
	h.lease(1, busyMutex, 15, 30)
	r := Judge(h.History, Residue{Keys: []string{"stray"}, Goroutines: []string{"goroutine 7"}, Locks: 2, Subscriptions: []string{"c"}, ProbeFailed: []string{busyMutex}, Probe: time.Minute}, patience)
	want(t, r.Violations, "overlap", "claim without hold", "impossible answers", "keys", "goroutines", "locks", "subscriptions", "recovery")
	var page strings.Builder
	if err := r.Timeline(&page, r.Violations[0].At); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"overlap", "client 0/1", "class=\"bar claim\"", "stray"} {
		if !strings.Contains(page.String(), s) {
			t.Errorf("the timeline has no %q", s)
		}
	}
}

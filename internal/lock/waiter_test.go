package lock

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestQueue_IsFIFO(t *testing.T) {
	var q queue
	ws := make([]*Waiter, 5)
	for i := range ws {
		ws[i] = new(Waiter)
		ws[i].after = uint64(i)
		q.push(ws[i])
	}
	if !q.remove(ws[0]) || !q.remove(ws[2]) || !q.remove(ws[4]) {
		t.Fatal("Remove of a parked waiter reports false")
	}
	for _, want := range []uint64{1, 3} {
		w := q.head
		if w == nil || w.after != want {
			t.Fatalf("front is %v, want %d", w, want)
		}
		if !q.remove(w) {
			t.Fatal("Remove of the front reports false")
		}
	}
	if q.len != 0 || q.head != nil {
		t.Errorf("%d left", q.len)
	}
}

func TestWaiter_IsRemovedOnce(t *testing.T) {
	var q queue
	w := new(Waiter)
	for range 2 { // a waiter can be parked again
		q.push(w)
		if !q.remove(w) || q.remove(w) || w.parked {
			t.Error("a waiter that was removed can be removed again")
		}
	}
}

// Grant and cancel race under the owner's mutex: exactly one of them wins, so of n
// waiters that all cancel, each is either delivered to or has left, never both.
func TestQueue_GrantVersusCancel(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var q queue
			const n = 8
			left, granted := make([]bool, n), make([]bool, n)
			var wg sync.WaitGroup
			for i := range n {
				w := &Waiter{after: uint64(i)}
				mu.Lock()
				q.push(w)
				mu.Unlock()
				wg.Go(func() {
					mu.Lock()
					defer mu.Unlock()
					left[i] = q.remove(w)
				})
			}
			wg.Go(func() {
				for range n / 2 {
					mu.Lock()
					if w := q.head; w != nil {
						granted[w.after] = q.remove(w)
					}
					mu.Unlock()
				}
			})
			wg.Wait()
			for i := range n {
				if left[i] == granted[i] {
					t.Fatalf("waiter %d: left %v, granted %v", i, left[i], granted[i])
				}
			}
		})
	}
}

// FuzzQueue compares the queue with a slice under any sequence of operations.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 1, 0, 2})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var q queue
		var model []*Waiter
		for i, op := range ops {
			switch op % 3 {
			case 0:
				w := &Waiter{after: uint64(i)}
				q.push(w)
				model = append(model, w)
			case 1: // cancel somewhere
				if len(model) > 0 {
					k := int(op/3) % len(model)
					if !q.remove(model[k]) {
						t.Fatal("Remove of a parked waiter reports false")
					}
					model = append(model[:k], model[k+1:]...)
				}
			case 2: // grant the front
				if w := q.head; w != nil {
					if !q.remove(w) {
						t.Fatal("Remove of the front reports false")
					}
					model = model[1:]
				}
			}
			w := q.head
			for _, want := range model {
				if w != want {
					t.Fatalf("after op %d the order differs", i)
				}
				w = w.next
			}
			if w != nil || q.len != len(model) {
				t.Fatalf("after op %d: %d waiters, want %d", i, q.len, len(model))
			}
		}
	})
}

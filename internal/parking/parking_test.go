package parking

import (
	"sync"
	"testing"
	"testing/synctest"
)

type waiterT = Waiter[int, string]

func TestQueue_IsFIFO(t *testing.T) {
	var q Queue[int, string]
	ws := make([]*waiterT, 5)
	for i := range ws {
		ws[i] = New[int, string]()
		ws[i].Value = i
		q.Push(ws[i])
	}
	if !q.Remove(ws[0]) || !q.Remove(ws[2]) || !q.Remove(ws[4]) {
		t.Fatal("Remove of a parked waiter reports false")
	}
	for _, want := range []int{1, 3} {
		w := q.Front()
		if w == nil || w.Value != want {
			t.Fatalf("front is %v, want %d", w, want)
		}
		if !q.Remove(w) {
			t.Fatal("Remove of the front reports false")
		}
		w.Tell("yours")
		<-w.Ready()
		if got := w.Take(); got != "yours" {
			t.Errorf("told %q", got)
		}
	}
	if q.Len() != 0 || q.Front() != nil {
		t.Errorf("%d left", q.Len())
	}
}

func TestWaiter_IsRemovedOnce(t *testing.T) {
	var q, other Queue[int, string]
	w := New[int, string]()
	for _, told := range []string{"first", "second"} { // a waiter can be parked again
		q.Push(w)
		if other.Remove(w) {
			t.Error("a queue removed another queue's waiter")
		}
		if !q.Remove(w) || q.Remove(w) || w.Parked() {
			t.Error("a waiter that was removed can be removed again")
		}
		w.Tell(told)
		<-w.Ready()
		if got := w.Take(); got != told {
			t.Errorf("told %q, want %q", got, told)
		}
		if left := w.Take(); left != "" {
			t.Errorf("%q is kept", left)
		}
	}
}

// Grant and cancel race under the owner's mutex: exactly one of them wins, so of n
// waiters that all cancel, each is either delivered to or has left, never both.
func TestQueue_GrantVersusCancel(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var q Queue[int, string]
			const n = 8
			left, granted := make([]bool, n), make([]bool, n)
			var wg sync.WaitGroup
			for i := range n {
				w := &waiterT{Value: i}
				mu.Lock()
				q.Push(w)
				mu.Unlock()
				wg.Go(func() {
					mu.Lock()
					defer mu.Unlock()
					left[i] = q.Remove(w)
				})
			}
			wg.Go(func() {
				for range n / 2 {
					mu.Lock()
					if w := q.Front(); w != nil {
						granted[w.Value] = q.Remove(w)
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
		var q Queue[int, string]
		var model []*waiterT
		for i, op := range ops {
			switch op % 3 {
			case 0:
				w := &waiterT{Value: i}
				q.Push(w)
				model = append(model, w)
			case 1: // cancel somewhere
				if len(model) > 0 {
					k := int(op/3) % len(model)
					if !q.Remove(model[k]) {
						t.Fatal("Remove of a parked waiter reports false")
					}
					model = append(model[:k], model[k+1:]...)
				}
			case 2: // grant the front
				if w := q.Front(); w != nil {
					if !q.Remove(w) {
						t.Fatal("Remove of the front reports false")
					}
					model = model[1:]
				}
			}
			w := q.Front()
			for _, want := range model {
				if w != want {
					t.Fatalf("after op %d the order differs", i)
				}
				w = w.Next()
			}
			if w != nil || q.Len() != len(model) {
				t.Fatalf("after op %d: %d waiters, want %d", i, q.Len(), len(model))
			}
		}
	})
}

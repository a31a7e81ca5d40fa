package chaos

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// several takes two or three locks at once, all or none. Each of them has an operation of its own
// in the history.
func (w *worker) several() {
	// Beside the busy locks a quiet one, of the kind that one script can take together.
	targets := []target{{name: Kinds[0].quiet(), make: Kinds[0].Exclusive}}
	for i := range Kinds {
		targets = append(targets, w.side(&Kinds[i], Kinds[i].busy()))
	}
	w.rng.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	targets = targets[:2+w.rng.IntN(2)]

	var locks []holdfast.Locker
	for _, t := range targets {
		locks = append(locks, t.make(w.m, t.name))
	}
	all, err := holdfast.NewMulti(locks...)
	if err != nil {
		panic(err)
	}
	ask := all.Lock
	if w.rng.IntN(2) == 0 {
		ask = all.TryLock
	}
	var ops []*Op
	for _, t := range targets {
		o := &Op{Proc: w.Proc, Worker: w.n, Do: Several, Name: t.name, Shared: t.shared}
		w.rec.begin(o)
		ops = append(ops, o)
	}
	ctx, cancel := context.WithTimeout(w.stop, 300*time.Millisecond)
	defer cancel()
	lease, err := ask(ctx)
	returned := time.Now()
	for _, o := range ops {
		if o.Result, o.Detail = resultOf(err); o.Result == Refused {
			o.Result = Ended // which of them is held by another one is not said
		}
		if err == nil {
			o.Deadline = at(lease.Deadline())
		}
		w.rec.end(o, returned)
	}
	if err == nil {
		w.pause(15 * time.Millisecond)
		w.release(&held{lease: lease, op: ops[0], more: ops[1:]})
	}
}

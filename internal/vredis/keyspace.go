package vredis

import (
	"container/heap"
	"maps"
	"slices"
)

// entry is what a key holds; which of the fields counts, kind says.
type entry struct {
	kind    string // string, hash, list, set or zset
	str     string
	hash    *fields
	list    []string
	zset    *ranking
	expires int64 // server milliseconds; 0: never
}

func (e *entry) clone() *entry {
	c := *e
	c.list = slices.Clone(e.list)
	if e.hash != nil {
		c.hash = &fields{order: slices.Clone(e.hash.order), at: maps.Clone(e.hash.at)}
	}
	if e.zset != nil {
		c.zset = &ranking{order: slices.Clone(e.zset.order), scores: maps.Clone(e.zset.scores)}
	}
	return &c
}

// keyspace is the database. A key is gone once its time is over, but for one thing: nothing expires while a command
// or a script runs, whose time stands still.
type keyspace struct {
	keys   map[string]*entry
	due    dueHeap // of keys with a TTL, some of them outdated
	millis int64   // the time of the command that runs
	dirty  int64   // changes so far
}

type due struct {
	at  int64
	key string
}

type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// advance sets the time and removes the keys whose time is over.
func (k *keyspace) advance(millis int64) {
	k.millis = millis
	for len(k.due) > 0 && k.due[0].at <= millis {
		d := heap.Pop(&k.due).(due)
		if e := k.keys[d.key]; e != nil && e.expires != 0 && e.expires <= millis {
			delete(k.keys, d.key)
		}
	}
	if len(k.due) > 64 && len(k.due) > 4*len(k.keys) { // mostly outdated: renewals of few keys
		k.rebuild()
	}
}

func (k *keyspace) rebuild() {
	k.due = k.due[:0]
	for key, e := range k.keys {
		if e.expires != 0 {
			k.due = append(k.due, due{e.expires, key})
		}
	}
	heap.Init(&k.due)
}

// expireAt sets until when a key lives; 0: forever.
func (k *keyspace) expireAt(key string, e *entry, at int64) {
	e.expires = at
	if at != 0 {
		heap.Push(&k.due, due{at, key})
	}
}

func (k *keyspace) get(key string) *entry { return k.keys[key] }

// typed returns the entry of a key if it is of a kind; nil if there is no key.
func (k *keyspace) typed(key, kind string) (*entry, any) {
	e := k.keys[key]
	if e != nil && e.kind != kind {
		return nil, wrongType
	}
	return e, nil
}

// made is typed, but makes the key.
func (k *keyspace) made(key, kind string) (*entry, any) {
	e, wrong := k.typed(key, kind)
	if e == nil && wrong == nil {
		e = &entry{kind: kind}
		switch kind {
		case "hash", "set":
			e.hash = newFields()
		case "zset":
			e.zset = &ranking{scores: map[string]float64{}}
		}
		k.keys[key] = e
	}
	return e, wrong
}

func (k *keyspace) set(key string, e *entry) {
	k.keys[key] = e
	if e.expires != 0 {
		heap.Push(&k.due, due{e.expires, key})
	}
}

func (k *keyspace) del(key string) bool {
	_, had := k.keys[key]
	delete(k.keys, key)
	return had
}

// fields are those of a hash, or the members of a set, in the order of their coming.
type fields struct {
	order []pair // with holes: at says what counts
	at    map[string]int
}

type pair struct {
	name, value string
	gone        bool
}

func newFields() *fields { return &fields{at: map[string]int{}} }

func (f *fields) len() int { return len(f.at) }

func (f *fields) get(name string) (string, bool) {
	i, ok := f.at[name]
	if !ok {
		return "", false
	}
	return f.order[i].value, true
}

func (f *fields) set(name, value string) (added bool) {
	if i, ok := f.at[name]; ok {
		f.order[i].value = value
		return false
	}
	f.at[name] = len(f.order)
	f.order = append(f.order, pair{name: name, value: value})
	return true
}

func (f *fields) del(name string) bool {
	i, ok := f.at[name]
	if !ok {
		return false
	}
	delete(f.at, name)
	f.order[i] = pair{gone: true}
	if len(f.order) > 16 && len(f.order) > 2*len(f.at) {
		live := f.order[:0]
		for _, p := range f.order {
			if !p.gone {
				f.at[p.name] = len(live)
				live = append(live, p)
			}
		}
		f.order = live
	}
	return true
}

func (f *fields) all(yield func(name, value string) bool) {
	for _, p := range f.order {
		if !p.gone && !yield(p.name, p.value) {
			return
		}
	}
}

package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Two states of a world are the same if all that is reachable from them is, but for what has no meaning beyond its order: the
// numbers of owner ids are ranked, times are counted from now, and requests from the latest. What is reachable is found by
// reflection, so that no variable of a lock is forgotten: one that is not known here keeps apart what need not be.

type fingerprint [16]byte

// printer writes what a state consists of.
type printer struct {
	w       *World
	b       []byte
	known   map[unsafe.Pointer]int // objects that have been written
	numbers []written              // where the number of an owner id stands
	tries   uint64                 // requests of the lock that is written
}

// written is the number of an owner id of a process.
type written struct {
	at, process int
	number      uint64
}

func (w *World) fingerprint() fingerprint {
	f := &printer{w: w, known: make(map[unsafe.Pointer]int, 64), b: make([]byte, 0, 2048)}
	f.int(int64(w.faults))
	f.int(int64(w.late))
	f.len(w.sets)
	f.time(w.cut)
	for _, p := range w.procs {
		f.process(p)
	}
	for _, c := range w.callers {
		f.caller(c)
	}
	f.len(len(w.flights))
	for _, x := range w.flights {
		f.flight(x)
	}
	f.database()
	w.judge.memory(f)
	f.rank()
	sum := sha256.Sum256(f.b)
	return fingerprint(sum[:16])
}

// rank replaces numbers by their order.
func (f *printer) rank() {
	for p := range f.w.procs {
		var all []uint64
		for _, n := range f.numbers {
			if n.process == p {
				all = append(all, n.number)
			}
		}
		slices.Sort(all)
		all = slices.Compact(all)
		for _, n := range f.numbers {
			if n.process == p {
				i, _ := slices.BinarySearch(all, n.number)
				binary.LittleEndian.PutUint64(f.b[n.at:], uint64(i))
			}
		}
	}
}

func (f *printer) int(n int64) { f.b = binary.AppendVarint(f.b, n) }
func (f *printer) len(n int)   { f.int(int64(n)) }
func (f *printer) bool(x bool) {
	if x {
		f.b = append(f.b, 1)
	} else {
		f.b = append(f.b, 0)
	}
}

func (f *printer) text(s string) {
	f.int(int64(len(s)))
	f.b = append(f.b, s...)
}

func (f *printer) number(process int, n uint64) {
	f.numbers = append(f.numbers, written{len(f.b), process, n})
	f.b = append(f.b, 0, 0, 0, 0, 0, 0, 0, 0)
}

// age writes a time. What is long over is over.
func (f *printer) age(d time.Duration) { f.int(int64(max(d, -10*time.Minute))) }

func (f *printer) time(t time.Time) {
	if f.bool(t.IsZero()); !t.IsZero() {
		f.age(t.Sub(f.w.now))
	}
}

// since writes a time after Settings.Epoch.
func (f *printer) since(p *process, d time.Duration) {
	if f.bool(d == 0); d != 0 {
		f.age(d - p.Roughly())
	}
}

// clock writes a time of the server, milliseconds.
func (f *printer) clock(ms int64) {
	if f.bool(ms == 0); ms != 0 {
		f.age(time.Duration(ms-f.w.now.UnixMilli()) * time.Millisecond)
	}
}

// ids writes a text with owner ids in it, or of permits.
func (f *printer) ids(s string) {
	const prefix, rest = "hf-0000000", len("-0000-4000-8000-000000000000")
	for ; strings.HasPrefix(s, "\x00\x00\x00"); s = s[wire.PermitBytes:] {
		f.ids(judge.PermitID(s[:wire.PermitBytes]))
	}
	for {
		before, after, found := strings.Cut(s, prefix)
		f.text(before)
		if f.bool(found); !found {
			return
		}
		process := int(after[0] - '0')
		s = strings.TrimPrefix(after[1+rest:], ":")
		digits := 0
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		f.int(int64(process))
		if f.bool(digits > 0); digits > 0 {
			f.bool(s[0] == '0') // it may linger
			n, _ := strconv.ParseUint(s[:digits], 10, 64)
			f.number(process, n)
		}
		s = s[digits:]
	}
}

func (f *printer) process(p *process) {
	f.b = append(f.b, byte(p.state))
	f.bool(p.closed)
	f.bool(p.listening)
	f.bool(p.uncounted)
	f.int(int64(p.session))
	f.int(int64(p.relying))
	f.int(int64(p.pending))
	for n, l := range p.locks {
		f.bool(p.hears[n])
		f.bool(p.turn[n])
		if l == nil {
			f.b = append(f.b, 'n')
			continue
		}
		f.value(p, reflect.ValueOf(l))
	}
	f.len(len(p.limits))
	for _, l := range p.limits {
		f.value(p, reflect.ValueOf(l))
	}
	f.len(len(p.pauses))
	for _, r := range p.pauses {
		f.value(p, reflect.ValueOf(r))
	}
	f.value(p, reflect.ValueOf(&p.expected).Elem())
	for n := range p.locks {
		f.int(int64(p.seen[p.w.plan.Locks[n].Name]))
	}
	f.len(len(p.mail))
	for _, m := range p.mail {
		f.int(int64(m.lock))
		f.message(p, m.payload)
	}
}

func (f *printer) message(p *process, payload string) {
	n, ok := wire.ParseNotice(payload)
	if f.bool(ok); !ok {
		f.ids(payload)
		return
	}
	f.value(p, reflect.ValueOf(&n).Elem())
}

func (f *printer) caller(c *caller) {
	f.b = append(f.b, byte(c.phase))
	f.int(int64(c.then))
	f.int(int64(c.began))
	f.bool(c.heard)
	if c.phase == gone || c.Java {
		return
	}
	if f.bool(c.why != nil); c.why != nil {
		f.bool(c.why.Is(lock.NotAcquired))
	}
	f.len(len(c.waiters))
	for _, w := range c.waiters {
		f.value(c.p(), reflect.ValueOf(w))
	}
	f.len(len(c.leases))
	for _, l := range c.leases {
		f.value(c.p(), reflect.ValueOf(l))
	}
}

func (f *printer) flight(x *flight) {
	f.int(int64(x.p.id))
	f.text(x.script.Name())
	f.bool(x.ran)
	f.bool(x.overdue)
	f.bool(x.stranded)
	f.bool(x.ghost)
	f.bool(x.extends != nil)
	f.int(int64(x.outcome))
	f.int(int64(x.acked))
	f.int(int64(x.ttl))
	f.time(x.sent)
	f.int(int64(x.patience))
	f.int(int64(x.copy.Generation))
	tails := false
	f.len(len(x.args))
	for _, a := range x.args[3:] {
		s := argument(a)
		if digits, side, _ := strings.Cut(s, ":"); tails {
			n, err := strconv.ParseUint(digits, 10, 64)
			tail := err == nil && n > firstNumber && n < firstNumber+900
			if f.bool(tail); tail {
				f.number(x.p.id, n)
				f.bool(digits[0] == '0')
				f.text(side)
				continue
			}
		}
		tails = tails || s == x.p.says.Owners
		f.ids(s)
	}
	if x.ran {
		f.answer(x)
	}
	if x.ghost {
		return
	}
	switch {
	case x.of != nil:
		f.value(x.p, reflect.ValueOf(x.of))
	case x.renews != nil:
		f.value(x.p, reflect.ValueOf(x.renews))
	case x.extends != nil:
		f.value(x.p, reflect.ValueOf(x.extends))
	}
	f.len(len(x.tries))
	for _, t := range x.tries {
		f.value(x.p, reflect.ValueOf(t))
	}
	f.value(x.p, reflect.ValueOf(&x.copy).Elem())
}

func (f *printer) answer(x *flight) {
	switch r := x.reply.(type) {
	case nil:
		f.b = append(f.b, 'n')
	case int64:
		f.b = append(f.b, 'i')
		f.int(r)
	case string:
		f.b = append(f.b, 's')
		f.message(x.p, r)
	case []any:
		f.b = append(f.b, 'a')
		f.len(len(r))
		for i, a := range r {
			if len(r) >= 5 && i == 3 {
				f.clock(a.(int64))
			} else {
				f.int(a.(int64))
			}
		}
	default:
		panic(fmt.Sprintf("explore: no fingerprint of a reply like %v", r))
	}
}

func (f *printer) database() {
	now := f.w.now.UnixMilli()
	keys := f.w.db.Keys(f.w.now)
	f.len(len(keys))
	for _, k := range keys {
		f.ids(k.Name)
		f.text(k.Kind)
		f.ids(k.Text)
		f.len(len(k.List))
		for i, s := range k.List {
			f.ids(s)
			if k.Scores != nil {
				at := k.Scores[i] - float64(now)
				if at <= 0 { // it is over, however long
					at = -1 + math.Mod(k.Scores[i], 1)
				}
				f.int(int64(at * 2))
			}
		}
		if f.bool(k.Expires == 0); k.Expires != 0 && k.Kind != "list" && !strings.Contains(k.Name, "timeout:{") {
			f.int(k.Expires - now)
		}
	}
}

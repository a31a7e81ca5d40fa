package explore

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// How a field is written.
const (
	asItIs = iota
	notAtAll
	asAge     // a time after Settings.Epoch
	asClock   // milliseconds of the server
	asRequest // a number of requests, counted back from the latest
	asNumber  // of an owner id
	asIDs     // a text with owner ids in it
)

// plans say of a type how its fields are written. Searches share them.
var plans sync.Map

var (
	typeLock   = reflect.TypeFor[lock.Lock]()
	typeTime   = reflect.TypeFor[time.Time]()
	typeTerms  = reflect.TypeFor[*lock.Terms]()
	typeOwn    = reflect.TypeFor[*protocol.Terms]()
	typeBy     = reflect.TypeFor[lock.By]()
	typeCaller = reflect.TypeFor[*caller]()
	typeItem   = reflect.TypeFor[renewal.Item[*lock.Hold]]()
)

// value writes v, which belongs to a process, and all that is reachable from it.
func (f *printer) value(p *process, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		f.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		f.int(int64(v.Uint()))
	case reflect.String:
		f.text(v.String())
	case reflect.Pointer:
		f.pointer(p, v)
	case reflect.Interface:
		if v.IsNil() {
			f.text("")
			return
		}
		f.text(v.Elem().Type().String())
		f.value(p, v.Elem())
	case reflect.Slice:
		f.int(int64(v.Len()))
		for i := range v.Len() {
			f.value(p, v.Index(i))
		}
	case reflect.Map: // by the numbers of owner ids
		v = exported(v)
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return int(a.Uint()) - int(b.Uint()) })
		f.int(int64(len(keys)))
		for _, k := range keys {
			f.number(p.id, k.Uint())
			at := reflect.New(v.Type().Elem()).Elem()
			at.Set(v.MapIndex(k))
			f.value(p, at)
		}
	case reflect.Struct:
		f.structure(p, v)
	default:
		panic("explore: no fingerprint of a " + v.Type().String())
	}
}

// exported is v as if it were no field that is not exported.
func exported(v reflect.Value) reflect.Value {
	if !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

func (f *printer) pointer(p *process, v reflect.Value) {
	if v.IsNil() {
		f.b = append(f.b, 'n')
		return
	}
	switch v.Type() {
	case typeTerms:
		f.b = append(f.b, 'p')
		f.value(p, v.Elem().Field(0))
		return
	case typeOwn:
		return
	case typeCaller:
		f.int(int64((*caller)(v.UnsafePointer()).id))
		return
	}
	if i, ok := f.known[v.UnsafePointer()]; ok {
		f.b = append(f.b, 'k')
		f.int(int64(i))
		return
	}
	f.known[v.UnsafePointer()] = len(f.known)
	f.b = append(f.b, 'p')
	f.value(p, v.Elem())
}

func (f *printer) structure(p *process, v reflect.Value) {
	t := v.Type()
	switch t {
	case typeTime:
		f.time(*(*time.Time)(v.Addr().UnsafePointer()))
		return
	case typeBy:
		f.value(p, v.Field(1))
		f.value(p, v.Field(0).Elem().FieldByName("Terms"))
		return
	case typeItem:
		f.item(p, v)
		return
	}
	if t == typeLock {
		f.tries = v.FieldByName("tries").Uint()
	}
	for i, how := range planOf(t) {
		x := v.Field(i)
		switch how {
		case asItIs:
			f.value(p, x)
		case asAge:
			f.since(p, time.Duration(x.Int()))
		case asClock:
			f.clock(x.Int())
		case asIDs:
			f.ids(x.String())
		case asNumber:
			f.number(p.id, x.Uint())
		case asRequest:
			f.int(int64(x.Uint()) - int64(f.requestsOf(v)))
		}
	}
}

// requestsOf is how many requests the lock of a try, or of a waiter, has sent. A waiter is written with its lock.
func (f *printer) requestsOf(v reflect.Value) uint64 {
	if h := v.FieldByName("Hold"); h.IsValid() && !h.IsNil() {
		return h.Elem().FieldByName("Lock").Elem().FieldByName("tries").Uint()
	}
	return f.tries
}

// item writes where a hold stands in the schedule.
func (f *printer) item(p *process, v reflect.Value) {
	f.bool(v.FieldByName("index").Int() != 0)
	f.bool(v.FieldByName("renewed").Bool())
	f.bool(v.FieldByName("asked").Bool())
	f.int(v.FieldByName("ttl").Int())
	if v.FieldByName("index").Int() != 0 {
		f.age(time.Duration(v.FieldByName("next").Int()) - p.Roughly())
		f.age(time.Duration(v.FieldByName("deadline").Int()) - p.Roughly())
	}
}

func planOf(t reflect.Type) []int {
	if p, ok := plans.Load(t); ok {
		return p.([]int)
	}
	p := make([]int, t.NumField())
	for i := range p {
		p[i] = fields[t.String()+"."+t.Field(i).Name]
	}
	plans.Store(t, p)
	return p
}

// fields are those that are not written as they are.
var fields = map[string]int{
	"lock.Lock.Shell": notAtAll, "lock.Lock.Keys": notAtAll, "lock.Lock.tries": notAtAll, "lock.Lock.Rings": asAge, "lock.Hold.Lingers": asAge,
	"lock.latest.since": asAge, "lock.Bid.stranded": asAge, "lock.Bid.clock": asClock, "lock.Bid.asks": asAge, "lock.Busy.Asker": asIDs, "wire.Notice.Asker": asIDs,
	"lock.Hold.Number": asNumber, "lock.Hold.tenure": asAge, "lock.Hold.renewed": asAge,
	"lock.Lease.since": notAtAll, "lock.Lease.class": notAtAll, "lock.Lease.shell": notAtAll, "lock.Lease.mode": notAtAll,
	"lock.Waiter.Shell": notAtAll, "lock.Waiter.Came": notAtAll, "lock.Waiter.Trace": notAtAll, "lock.Waiter.after": asRequest,
	"lock.Try.n": asRequest, "lock.Stay.Number": asNumber,
	"lock.Repeated.barred": asAge, "lock.Repeated.resumes": asAge, "lock.Repeated.trouble": notAtAll, "lock.Limit.Timer": notAtAll,
	"lock.trouble.cause": notAtAll, "lock.Verdict.Causes": notAtAll,
	"wire.Notice.Number": asNumber, "wire.Notice.Clock": asClock,
}

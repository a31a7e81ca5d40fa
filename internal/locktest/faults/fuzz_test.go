package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// FuzzLock runs programs of callers with several options: they come, leave, unlock, extend, re-enter and ask
// once, while another manager waits for, takes and releases the lock, messages come for nothing, the lock is
// deleted under its holder or its queue under the waiters, scripts are forgotten, and the manager is closed.
// Whatever the order, no two leases that exclude each other are valid, everybody returns, and nothing is left.
func FuzzLock(f *testing.F) {
	for kind := range uint8(3) {
		f.Add(kind, []byte{0, 0, 1, 4, 4, 4})                           // in turn
		f.Add(kind, []byte{5, 0, 1, 0, 5, 4, 4})                        // woken by another process
		f.Add(kind, []byte{0, 1, 2, 0, 16 + 3, 3, 4, 32 + 3, 4})        // cancelled in the queue
		f.Add(kind, []byte{0, 0, 1, 7, 9 + 16, 4, 4})                   // lost under waiters
		f.Add(kind, []byte{5, 0, 1, 0, 6, 16 + 6, 9})                   // closed under waiters
		f.Add(kind, []byte{1, 8, 16 + 8, 1, 0, 4, 16 + 4, 4, 4})        // re-entry, both sides
		f.Add(kind, []byte{5, 1, 1, 0, 1, 5, 3, 5, 4, 4, 4, 16})        // everything
		f.Add(kind, []byte{10, 26, 0, 42, 12, 4, 4, 58, 28, 4, 4})      // options differ
		f.Add(kind, []byte{5, 0, 10, 1, 25, 13, 5, 0, 11, 14, 0, 4, 4}) // taken away
		f.Add(kind, []byte{0, 165, 0, 181, 41, 4, 25, 5, 25, 4, 5})     // between two processes
	}
	client := redistest.Start(f).Client(f)
	f.Fuzz(func(t *testing.T, kind uint8, program []byte) {
		p := newProgram(t, client, kind)
		for _, b := range program[:min(len(program), 40)] {
			p.step(b)
		}
		p.end()
	})
}

// program is one run of FuzzLock.
type program struct {
	*testing.T
	client   *redis.Client
	m, rival *holdfast.Manager
	name     string
	lock     holdfast.Locker // the exclusive side
	read     holdfast.Locker // the other; nil if there is none
	theirs   holdfast.Locker
	others   []variant // with other options
	closed   bool

	calls   sync.WaitGroup
	cancels []context.CancelFunc

	mu      sync.Mutex
	held    []got // guarded by mu; by the program, in the order of the grants
	deleted bool  // guarded by mu; exclusion is not promised any more
}

// inTime is less than the 10 s after which the fuzzing engine ends an input without a word.
const inTime = 8 * time.Second

// variant is a side of the lock with options of its own.
type variant struct {
	holdfast.Locker
	shared bool
}

// got is a lease that the program has.
type got struct {
	*holdfast.Lease
	owner  int64 // the call that it began with
	shared bool
}

var programs, owners atomic.Int64

func newProgram(t *testing.T, client *redis.Client, kind uint8) *program {
	p := &program{T: t, client: client, name: fmt.Sprintf("fuzz:%d", programs.Add(1))}
	for _, m := range []**holdfast.Manager{&p.m, &p.rival} {
		var err error
		if *m, err = holdfast.New(client, holdfast.WithLease(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	p.lock, p.read = sidesOf(p.m, kind, p.name)
	p.theirs, _ = sidesOf(p.rival, kind, p.name)
	for _, o := range []holdfast.LockOption{holdfast.WithFencing(), holdfast.WithFixedLease(time.Minute), holdfast.WithMaxHold(time.Hour)} {
		lock, read := sidesOf(p.m, kind, p.name, o)
		p.others = append(p.others, variant{lock, false})
		if read != nil {
			p.others = append(p.others, variant{read, true})
		}
	}
	return p
}

// sidesOf returns the exclusive side of a lock and the other; nil if there is none.
func sidesOf(m *holdfast.Manager, kind uint8, name string, opts ...holdfast.LockOption) (lock, read holdfast.Locker) {
	switch kind % 3 {
	case 0:
		return m.Mutex(name, opts...), nil
	case 1:
		return m.FairMutex(name, opts...), nil
	default:
		rw := m.RWMutex(name, opts...)
		return rw, rw.RLocker()
	}
}

func (p *program) step(b byte) {
	n := int(b / 16)
	switch b % 16 {
	case 0:
		p.call(context.Background(), p.lock.Lock, owners.Add(1), false)
	case 1:
		if p.read != nil {
			p.call(context.Background(), p.read.Lock, owners.Add(1), true)
		} else {
			p.call(context.Background(), p.lock.Lock, owners.Add(1), false)
		}
	case 2:
		p.call(context.Background(), p.lock.TryLock, owners.Add(1), false)
	case 3:
		if len(p.cancels) > 0 {
			p.cancels[n%len(p.cancels)]()
		}
	case 4:
		p.unlock(n)
	case 5:
		if n >= 10 {
			p.call(context.Background(), p.theirs.Lock, -owners.Add(1), false)
		} else if lease := p.take(func(g got) bool { return g.owner < 0 }); lease != nil {
			p.give(lease)
		} else if lease, err := p.theirs.TryLock(context.Background()); err == nil {
			p.keep(got{lease, -owners.Add(1), false})
		}
	case 6: // for nothing
		p.client.Publish(context.Background(), "redisson_lock__channel:{"+p.name+"}", "0")
		p.client.Publish(context.Background(), "redisson_rwlock:{"+p.name+"}", "1")
	case 7:
		p.spoil()
		p.client.Del(context.Background(), p.name)
	case 8:
		if outer, ok := p.pick(n); ok && outer.owner > 0 {
			side, shared := p.lock, false
			if p.read != nil && n%2 == 0 {
				side, shared = p.read, true
			}
			p.call(outer.Context(context.Background()), side.Lock, outer.owner, shared)
		}
	case 9:
		if n == 0 {
			p.close()
		}
		time.Sleep(time.Duration(n) * time.Millisecond / 4) // let some of it happen
	case 10:
		other := p.others[n%len(p.others)]
		p.call(context.Background(), other.Lock, owners.Add(1), other.shared)
	case 11:
		p.spoil()
		if _, err := p.rival.ForceUnlock(context.Background(), p.name); err != nil {
			p.Errorf("ForceUnlock: %v", err)
		}
	case 12:
		if g, ok := p.pick(n); ok {
			_ = g.Extend(context.Background(), time.Minute)
		}
	case 13: // waiters find out when they keep their places
		p.client.Del(context.Background(), "redisson_lock_queue:{"+p.name+"}", "holdfast_rw_queue:{"+p.name+"}")
	case 14:
		p.client.Del(context.Background(), "redisson_lock_timeout:{"+p.name+"}", "holdfast_rw_timeout:{"+p.name+"}")
	case 15:
		p.client.ScriptFlush(context.Background())
	}
}

// spoil is called before something ends the lock that does not hold it.
func (p *program) spoil() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted = true
}

// pick returns one of the leases that are held.
func (p *program) pick(n int) (got, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.held) == 0 {
		return got{}, false
	}
	return p.held[n%len(p.held)], true
}

// call calls in a goroutine of its own, and keeps what comes of it.
func (p *program) call(ctx context.Context, ask func(context.Context) (*holdfast.Lease, error), owner int64, shared bool) {
	ctx, cancel := context.WithCancel(ctx)
	p.cancels = append(p.cancels, cancel)
	p.calls.Go(func() {
		lease, err := ask(ctx)
		switch {
		case err == nil:
			p.keep(got{lease, owner, shared})
		case !errors.Is(err, holdfast.ErrNotAcquired) && !errors.Is(err, holdfast.ErrClosed) &&
			!errors.Is(err, holdfast.ErrWouldDeadlock) && !errors.Is(err, holdfast.ErrUnavailable):
			p.Error(err)
		}
	})
}

// keep adds a lease, and fails if another one that excludes it is valid.
func (p *program) keep(g got) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.held {
		if !p.deleted && o.owner != g.owner && !(o.shared && g.shared) && o.Valid() && g.Valid() {
			p.Errorf("owner %d (shared %v) was let in beside %d (shared %v)", g.owner, g.shared, o.owner, o.shared)
		}
	}
	p.held = append(p.held, g)
}

// take removes the first lease that matches; nil if there is none.
func (p *program) take(match func(got) bool) *holdfast.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, g := range p.held {
		if match(g) {
			p.held = append(p.held[:i:i], p.held[i+1:]...)
			return g.Lease
		}
	}
	return nil
}

// unlock gives the n-th lease back.
func (p *program) unlock(n int) {
	if lease := p.take(func(g got) bool { n--; return g.owner > 0 && n < 0 }); lease != nil {
		p.give(lease)
	}
}

func (p *program) give(lease *holdfast.Lease) {
	p.mu.Lock()
	deleted := p.deleted
	p.mu.Unlock()
	err := lease.Unlock(context.Background())
	lost := deleted && errors.Is(err, holdfast.ErrLeaseLost)
	if err != nil && !lost && !errors.Is(err, holdfast.ErrClosed) {
		p.Errorf("Unlock: %v", err)
	}
}

func (p *program) close() {
	if !p.closed {
		p.closed = true
		if err := p.m.Close(context.Background()); err != nil {
			p.Errorf("Close: %v", err)
		}
	}
}

// end cancels and gives back everything, and looks for what is left.
func (p *program) end() {
	for _, cancel := range p.cancels {
		cancel()
	}
	returned := make(chan struct{})
	go func() { defer close(returned); p.calls.Wait() }()
	select {
	case <-returned:
	case <-time.After(inTime):
		p.Fatal("a call does not return")
	}
	for {
		lease := p.take(func(got) bool { return true })
		if lease == nil {
			break
		}
		p.give(lease)
	}
	redistest.Eventually(p.T, inTime, "nothing known of the lock", func() bool {
		s := p.m.Stats()
		return s.Locks+s.Held+s.Waiting == 0
	})
	redistest.Eventually(p.T, inTime, "the lock is free", func() bool {
		lease, err := p.theirs.TryLock(context.Background())
		return err == nil && lease.Unlock(context.Background()) == nil
	})
	p.close()
	if err := p.rival.Close(context.Background()); err != nil {
		p.Errorf("Close: %v", err)
	}
	for _, key := range p.client.Keys(context.Background(), "*"+p.name+"*").Val() {
		if ttl := p.client.PTTL(context.Background(), key).Val(); ttl == -1 && !strings.HasPrefix(key, "redisson_lock_token:") {
			p.Errorf("%s has no TTL", key)
		} else if key == p.name {
			p.Error("the lock is still there")
		}
	}
}

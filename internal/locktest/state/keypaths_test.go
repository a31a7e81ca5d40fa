package state

import (
	"context"
	"crypto/sha1" // what EVALSHA is defined with
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// keyPaths are the paths through the scripts.
var keyPaths = map[string]func(p *keyPath){
	"uncontended": func(p *keyPath) {
		for _, lock := range p.kinds(locktest.ManagerOn(p.T, p.srv)) {
			l, _ := lock()
			locktest.MustUnlock(p.T, locktest.MustLock(p.T, l))
			lease, err := l.TryLock(p.Context())
			if err != nil {
				p.Fatal(err)
			}
			locktest.MustUnlock(p.T, lease)
		}
	},

	"handed over": func(p *keyPath) {
		a, b, c := locktest.ManagerOn(p.T, p.srv), locktest.ManagerOn(p.T, p.srv, locktest.Unasked...), locktest.ManagerOn(p.T, p.srv, locktest.Unasked...)
		blocks := p.kinds(a)
		first, second := p.kinds(b), p.kinds(c)
		for kind := range blocks {
			l, queue := blocks[strings.Replace(kind, "read", "write", 1)]()
			held := locktest.MustLock(p.T, l)
			one, _ := first[kind]()
			other, _ := second[kind]()
			got := []func() *holdfast.Lease{locktest.Waits(p.T, one)}
			locktest.Queued(p.T, p.srv, queue, 1)
			got = append(got, locktest.Waits(p.T, other))
			locktest.Queued(p.T, p.srv, queue, 2)
			_, err := other.TryLock(p.Context())
			locktest.WantErr(p.T, err, holdfast.ErrNotAcquired, nil)
			locktest.MustUnlock(p.T, held)
			for _, get := range got {
				locktest.MustUnlock(p.T, get())
			}
		}
	},

	"readers and writers": func(p *keyPath) {
		a, b, c := locktest.ManagerOn(p.T, p.srv), locktest.ManagerOn(p.T, p.srv, locktest.Unasked...), locktest.ManagerOn(p.T, p.srv, locktest.Unasked...)
		for _, opts := range [][]holdfast.LockOption{nil, {holdfast.WithFencing()}} {
			queue := "holdfast_rw_queue:{" + p.name + "}"
			one, two := locktest.MustLock(p.T, a.RWMutex(p.name, opts...).RLocker()), locktest.MustLock(p.T, b.RWMutex(p.name, opts...).RLocker())
			writer := locktest.Waits(p.T, c.RWMutex(p.name, opts...))
			locktest.Queued(p.T, p.srv, queue, 1)
			locktest.MustUnlock(p.T, one)
			reader := locktest.Waits(p.T, a.RWMutex(p.name, opts...).RLocker())
			locktest.Queued(p.T, p.srv, queue, 2)
			locktest.MustUnlock(p.T, two)
			write := writer()
			read, err := c.RWMutex(p.name, opts...).RLock(write.Context(p.Context()))
			if err != nil {
				p.Fatal(err)
			}
			locktest.MustUnlock(p.T, write) // a downgrade, which lets the reader in
			locktest.MustUnlock(p.T, reader())
			locktest.MustUnlock(p.T, read)
		}
	},

	"given up while waiting": func(p *keyPath) {
		a, b := p.kinds(locktest.ManagerOn(p.T, p.srv)), p.kinds(locktest.ManagerOn(p.T, p.srv, locktest.Unasked...))
		for kind := range a {
			l, queue := a[strings.Replace(kind, "read", "write", 1)]()
			held := locktest.MustLock(p.T, l)
			other, _ := b[kind]()
			ctx, cancel := context.WithCancel(p.Context())
			got := locktest.Calls(other.Lock, ctx)
			locktest.Queued(p.T, p.srv, queue, 1)
			cancel()
			locktest.WantErr(p.T, (<-got).Err, context.Canceled, nil) // after 50 ms without an answer it is ErrUnavailable
			locktest.Queued(p.T, p.srv, queue, 0)
			locktest.MustUnlock(p.T, held)
		}
	},

	"many leave": func(p *keyPath) {
		a, m := p.kinds(locktest.ManagerOn(p.T, p.srv)), locktest.ManagerOn(p.T, p.srv, locktest.Unasked...)
		b := p.kinds(m)
		var all []*holdfast.Lease
		for _, kind := range []string{"fair", "fair fenced"} {
			l, queue := a[kind]()
			all = append(all, locktest.MustLock(p.T, l))
			other, _ := b[kind]()
			for range 50 {
				locktest.Calls(other.Lock, p.Context())
			}
			locktest.Queued(p.T, p.srv, queue, 50)
		}
		if err := m.Close(p.Context()); err != nil {
			p.Error(err)
		}
		for _, held := range all {
			locktest.MustUnlock(p.T, held)
		}
	},

	"join and keep": func(p *keyPath) {
		held := locktest.MustLock(p.T, locktest.ManagerOn(p.T, p.srv).FairMutex(p.name))
		m := locktest.ManagerOn(p.T, p.srv, holdfast.WithFairPatience(600*time.Millisecond), holdfast.WithPollInterval(100*time.Millisecond))
		var got []func() *holdfast.Lease
		for i := range 3 {
			got = append(got, locktest.Waits(p.T, m.FairMutex(p.name)))
			locktest.Queued(p.T, p.srv, p.queue, int64(i+1))
		}
		p.srv.Admin().Del(p.Context(), p.times) // their places are made again
		redistest.Eventually(p.T, locktest.Patience, "they have places", func() bool { return p.srv.Admin().ZCard(p.Context(), p.times).Val() == 3 })
		keep := fmt.Sprintf("%x", sha1.Sum([]byte(protocol.Text("keep"))))
		p.mon.Wait(p.T, keep, locktest.Patience)
		locktest.MustUnlock(p.T, held)
		for _, get := range got {
			locktest.MustUnlock(p.T, get())
		}
	},

	"renewed and extended": func(p *keyPath) {
		m := locktest.ManagerOn(p.T, p.srv, holdfast.WithLease(2*time.Second))
		mutex, write, read := locktest.MustLock(p.T, m.Mutex(p.name)), locktest.MustLock(p.T, m.RWMutex(p.name+" w")), locktest.MustLock(p.T, m.RWMutex(p.name+" r").RLocker())
		other := locktest.MustLock(p.T, locktest.ManagerOn(p.T, p.srv, holdfast.WithLease(time.Hour)).RWMutex(p.name+" r").RLocker())
		before := m.Stats().Renewals
		redistest.Eventually(p.T, locktest.Patience, "renewed", func() bool { return m.Stats().Renewals > before+9 })
		p.srv.Admin().Persist(p.Context(), p.name+" r")
		redistest.Eventually(p.T, locktest.Patience, "a TTL again", func() bool { return p.srv.Admin().PTTL(p.Context(), p.name+" r").Val() > 0 })
		for _, l := range []*holdfast.Lease{mutex, write, read} {
			locktest.MustExtend(p.T, l, time.Minute)
			locktest.MustUnlock(p.T, l)
		}
		locktest.MustUnlock(p.T, other)
	},

	"several": func(p *keyPath) {
		m := locktest.ManagerOn(p.T, p.srv)
		l := several.Multi(p.T, m.Mutex(p.name), m.FairMutex(p.name+"2"))
		locktest.MustUnlock(p.T, locktest.MustLock(p.T, l))
		p.puts("hf-0a:1", -time.Minute) // its time is over
		p.puts("hf-0a:2", -time.Minute)
		locktest.MustUnlock(p.T, locktest.MustLock(p.T, l))
		held := locktest.MustLock(p.T, locktest.ManagerOn(p.T, p.srv).Mutex(p.name+"2"))
		_, err := l.TryLock(p.Context())
		locktest.WantErr(p.T, err, holdfast.ErrNotAcquired, nil)
		locktest.MustUnlock(p.T, held)
	},

	"inspected and forced": func(p *keyPath) {
		a, b := locktest.ManagerOn(p.T, p.srv), locktest.ManagerOn(p.T, p.srv)
		first, second := p.kinds(a), p.kinds(b)
		for kind := range first {
			l, queue := first[strings.Replace(kind, "read", "write", 1)]()
			held := locktest.MustLock(p.T, l)
			other, _ := second[kind]()
			got := locktest.Waits(p.T, other)
			locktest.Queued(p.T, p.srv, queue, 1)
			locktest.Inspected(p.T, b, held.Name())
			if freed, err := b.ForceUnlock(p.Context(), held.Name()); !freed || err != nil {
				p.Error(freed, err)
			}
			locktest.MustUnlock(p.T, got())
			locktest.WantErr(p.T, held.Unlock(p.Context()), holdfast.ErrLeaseLost, nil)
		}
	},

	"locks that stay taken": func(p *keyPath) {
		m := locktest.ManagerOn(p.T, p.srv, holdfast.WithHoldAtLeast(time.Hour))
		for kind, l := range map[string]holdfast.Locker{"mutex": m.Mutex(p.name), "write": m.RWMutex(p.name + " w"), "read": m.RWMutex(p.name + " r").RLocker()} {
			held := locktest.MustLock(p.T, l)
			waits := locktest.ManagerOn(p.T, p.srv).Mutex(p.name).LockAsync
			if kind != "mutex" {
				waits = locktest.ManagerOn(p.T, p.srv).RWMutex(held.Name()).LockAsync
			}
			ctx, cancel := context.WithCancel(p.Context())
			other := waits(ctx)
			p.Cleanup(func() { cancel(); <-other })
			locktest.MustUnlock(p.T, held)
		}
	},

	"locks that linger": func(p *keyPath) {
		m, other := locktest.ManagerOn(p.T, p.srv, holdfast.WithLinger(time.Hour)), locktest.ManagerOn(p.T, p.srv)
		mine, theirs := p.kinds(m), p.kinds(other)
		for kind, lock := range mine {
			if strings.HasPrefix(kind, "fair") {
				continue // refuses the option
			}
			l, _ := lock()
			locktest.MustUnlock(p.T, locktest.MustLock(p.T, l))
			asks, _ := theirs[kind]()
			locktest.MustUnlock(p.T, locktest.MustLock(p.T, asks))
			held := locktest.MustLock(p.T, l)
			if !strings.HasPrefix(kind, "read") {
				_, err := asks.TryLock(p.Context())
				locktest.WantErr(p.T, err, holdfast.ErrNotAcquired, nil)
			}
			locktest.MustUnlock(p.T, held)
		}
	},

	"an identity": func(p *keyPath) {
		m := locktest.ManagerOn(p.T, p.srv, holdfast.WithIdentity("keys"))
		lease := locktest.MustLock(p.T, m.Mutex(p.name))
		redistest.Eventually(p.T, locktest.Patience, "the identity", func() bool { return locktest.Inspected(p.T, m, p.name).Holders[0].Identity != nil })
		locktest.MustUnlock(p.T, lease)
	},

	"asked for demand": func(p *keyPath) {
		m := locktest.ManagerOn(p.T, p.srv)
		ctx, cancel := context.WithCancel(p.Context())
		defer cancel()
		for range 2 {
			go func() {
				for ctx.Err() == nil {
					if lease, err := m.Mutex(p.name).Lock(ctx); err == nil {
						_ = lease.Unlock(context.Background())
					}
				}
			}()
		}
		p.sees(`"pubsub" "numsub" "redisson_lock__channel:{` + p.name + `}"`)
	},

	"a request that was given up": func(p *keyPath) {
		m, proxy := locktest.ManagerVia(p.T, p.srv)
		for kind, lock := range p.kinds(m) {
			l, _ := lock()
			name := p.name + " " + strings.Replace(strings.Replace(kind, "read", "rw", 1), "write", "rw", 1)
			gate := proxy.HoldRequest(locktest.ScriptOn(name, "lock_acquire", "rw_acquire"))
			ctx, cancel := context.WithCancel(p.Context())
			got := locktest.Calls(l.Lock, ctx)
			gate.Wait(p.T)
			cancel()
			locktest.WantErr(p.T, (<-got).Err, context.Canceled, nil)
			redistest.Eventually(p.T, locktest.Patience, "a tombstone", func() bool {
				return p.srv.Admin().Exists(p.Context(), "holdfast_tombstones:{"+name+"}").Val() == 1
			})
			gate.Release()
			redistest.Eventually(p.T, locktest.Patience, "its end", func() bool { return locktest.Pending(m) == 0 })
			locktest.MustUnlock(p.T, locktest.MustLock(p.T, l))
		}
	},

	"Redisson's waiters": func(p *keyPath) {
		m := locktest.ManagerOn(p.T, p.srv)
		held := locktest.MustLock(p.T, m.Mutex(p.name))
		p.puts(redissons, -time.Minute) // evicted
		p.puts(redissons+"1", time.Minute)
		p.puts("hf-0a:1", time.Minute)
		locktest.MustUnlock(p.T, held) // offered to the second
		_, err := locktest.ManagerOn(p.T, p.srv).Mutex(p.name).TryLock(p.Context())
		locktest.WantErr(p.T, err, holdfast.ErrNotAcquired, nil)
		p.srv.Admin().Del(p.Context(), p.queue, p.times)
		held = locktest.MustLock(p.T, m.FairMutex(p.name))
		p.puts("hf-0a:1", time.Minute) // no process hears it
		locktest.MustUnlock(p.T, held)
		p.srv.Admin().HSet(p.Context(), p.name, redissons, 1)
		p.srv.Admin().PExpire(p.Context(), p.name, 50*time.Millisecond)
		p.puts(redissons, time.Millisecond)
		locktest.MustUnlock(p.T, locktest.MustLock(p.T, m.FairMutex(p.name)))
	},

	"Redisson's turn": func(p *keyPath) {
		m, other := locktest.ManagerOn(p.T, p.srv, locktest.Unasked...), locktest.ManagerOn(p.T, p.srv, locktest.Unasked...)
		sub := p.srv.Admin().Subscribe(p.Context(), "redisson_lock__channel:{"+p.name+"}", "redisson_rwlock:{"+p.name+" rw}")
		defer sub.Close()
		for range 2 {
			if _, err := sub.Receive(p.Context()); err != nil {
				p.Fatal(err)
			}
		}
		for name, of := range map[string]func(*holdfast.Manager) holdfast.Locker{
			p.name:         func(m *holdfast.Manager) holdfast.Locker { return m.Mutex(p.name) },
			p.name + " rw": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex(p.name + " rw") },
		} {
			queue := "redisson_lock_queue:{" + name + "}"
			if strings.HasSuffix(name, " rw") {
				queue = "holdfast_rw_queue:{" + name + "}"
			}
			held, a, b := locktest.MustLock(p.T, of(m)), m, other
			for range 18 {
				got := locktest.Waits(p.T, of(b))
				locktest.Queued(p.T, p.srv, queue, 1)
				locktest.MustUnlock(p.T, held)
				held, a, b = got(), b, a
			}
			locktest.MustUnlock(p.T, held)
		}
		p.sees(`"publish" "holdfast_inbox:`)
	},

	"dead readers and strangers": func(p *keyPath) {
		ctx, admin := p.Context(), p.srv.Admin()
		m := locktest.ManagerOn(p.T, p.srv)
		read := locktest.MustLock(p.T, m.RWMutex(p.name).RLocker())
		admin.HSet(ctx, p.name, "hf-0a:1", 1, redissons, 2)
		admin.RPush(ctx, "holdfast_rw_queue:{"+p.name+"}", "hf-0a:2", "hf-0a:3:write", "junk")
		locktest.MustUnlock(p.T, read)
		admin.Del(ctx, p.name)
		locktest.MustUnlock(p.T, locktest.MustLock(p.T, m.RWMutex(p.name)))
	},
}

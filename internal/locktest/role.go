package locktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// HolderRole is the role of a process that takes a lock and reports what becomes of it.
const HolderRole = "locktest-holder"

// WaiterRole is the role of a process whose callers wait when they are told to.
const WaiterRole = "locktest-waiter"

// SpinnerRole is the role of a process that has one thread and does not give it up while
// it holds a lock.
const SpinnerRole = "locktest-spinner"

// RefuserRole is the role of a process that has a lease and asks for its lock all the
// time, to tell if it is refused when the lease is over.
const RefuserRole = "locktest-refuser"

// processName is what Redis knows the connections of all these processes by.
const processName = "locktest-process"

// Roles returns the roles that the suite's helper processes play, for redistest.
func Roles(kinds ...Kind) map[string]func(args []string) {
	return map[string]func(args []string){
		HolderRole:  func(args []string) { holder(kinds, args) },
		SpinnerRole: func(args []string) { spinner(kinds, args) },
		RefuserRole: func(args []string) { refuser(kinds, args) },
		WaiterRole:  func(args []string) { waiter(kinds, args) },
	}
}

// StartWaiter starts a process that plays WaiterRole for the scenario's lock.
func (e *Env) StartWaiter(ttl, patience time.Duration) *redistest.Process {
	e.Helper()
	p := redistest.StartProcess(e, WaiterRole, e.kind.Name, e.Server().Addr(), e.srv.Password(), e.Key, ttl.String(), patience.String())
	p.Expect(e, "ready")
	return p
}

// KillHolder kills the scenario's only process and returns when its TTL ends in Redis, which
// has read the last of it: a renewal that was on its way would have moved that end.
func (e *Env) KillHolder(p *redistest.Process) time.Time {
	e.Helper()
	p.Kill()
	e.Eventually("Redis knows that the holder is dead", func() bool {
		list, err := e.srv.Admin().ClientList(bg).Result()
		return err == nil && !strings.Contains(list, " name="+processName+" ")
	})
	return time.Now().Add(e.PTTL())
}

// open is called with what these roles begin with: the kind, the server's address and
// password, the lock's name and the lease. It returns what makes the lock.
func open(kinds []Kind, args []string, opts ...holdfast.Option) (m *holdfast.Manager, lock func(...holdfast.LockOption) holdfast.Locker, ttl time.Duration) {
	ttl = must(time.ParseDuration(args[4]))
	client := redis.NewClient(&redis.Options{Addr: args[1], Password: args[2], ClientName: processName})
	m = must(holdfast.New(client, append(opts, Unlogged, holdfast.WithLease(ttl))...))
	kind := kinds[slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == args[0] })]
	return m, func(opts ...holdfast.LockOption) holdfast.Locker { return kind.Lock(m, args[3], opts...) }, ttl
}

// ManagerOfRole returns the manager of a process that plays a role, on a server without a password. Its leases are of a second.
func ManagerOfRole(addr string) *holdfast.Manager {
	return must(holdfast.New(redis.NewClient(&redis.Options{Addr: addr}), holdfast.WithLease(time.Second)))
}

// waiter is called with what open takes, and the patience. For each "take <x>" that it reads, a caller of its own
// takes the lock, reports "took <x>" and gives it back; the callers begin in that
// order. "lock <x>" keeps it, reporting "got <x>", until "unlock <x>".
func waiter(kinds []Kind, args []string) {
	m, lock, _ := open(kinds, args, holdfast.WithFairPatience(must(time.ParseDuration(args[5]))))
	l := lock()
	var leases sync.Map
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		do, x, _ := strings.Cut(in.Text(), " ")
		if do == "unlock" {
			lease, _ := leases.Load(x)
			fmt.Println("unlocked", x, lease.(*holdfast.Lease).Unlock(context.Background()))
			continue
		}
		before := m.Stats().Waiting
		go func() {
			lease, err := l.Lock(context.Background())
			switch {
			case err != nil:
				fmt.Println("failed", x, err)
			case do == "lock":
				leases.Store(x, lease)
				fmt.Println("got", x)
			default:
				fmt.Println("took", x)
				_ = lease.Unlock(context.Background())
			}
		}()
		for m.Stats().Waiting == before && m.Stats().Held == 0 { // so that the next one comes behind it
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// holder is called with what open takes. It prints "held", then watches its lease; it unlocks when told to.
func holder(kinds []Kind, args []string) {
	_, lock, ttl := open(kinds, args)
	lease := must(lock().Lock(context.Background()))
	go func() {
		// A pause of the whole process shows as a gap between two looks.
		for last := time.Now(); lease.Err() == nil && time.Since(last) < ttl; {
			last = time.Now()
			time.Sleep(time.Millisecond)
		}
		fmt.Println("valid", lease.Valid())
		<-lease.Done()
		var lost *holdfast.LostError
		if errors.As(lease.Err(), &lost) {
			fmt.Println("lost", lost.Reason)
		}
	}()
	fmt.Println("held")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "unlock" {
			switch err := lease.Unlock(context.Background()); {
			case errors.Is(err, holdfast.ErrLeaseLost):
				fmt.Println("unlock lost")
			default:
				fmt.Println("unlock", err)
			}
		}
	}
}

// spinner is called as holder is. It computes for three leases while it has the lock,
// and reports whether it still has it then.
func spinner(kinds []Kind, args []string) {
	runtime.GOMAXPROCS(1)
	_, lock, ttl := open(kinds, args)
	lease := must(lock().Lock(context.Background()))
	x := uint64(1)
	for end := time.Now().Add(3 * ttl); time.Now().Before(end); {
		for range 10_000_000 { // some milliseconds without a call
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
	valid := lease.Valid() && x != 0
	fmt.Printf("spun, valid %v, unlock %v\n", valid, lease.Unlock(context.Background()))
}

// refuser is called as holder is. No other caller asks for the lock.
func refuser(kinds []Kind, args []string) {
	_, lock, ttl := open(kinds, args)
	l := lock()
	lease := must(lock(holdfast.WithFixedLease(ttl)).Lock(context.Background()))
	expired := time.Now().Add(ttl) // in Redis, too: it was asked before, however long that took
	fmt.Println("held")
	for {
		asked := time.Now()
		_, err := l.TryLock(context.Background())
		switch {
		case err == nil:
			fmt.Println("granted")
			return
		case asked.After(expired) && errors.Is(err, holdfast.ErrNotAcquired):
			fmt.Printf("refused %v after the lease's end\n", asked.Sub(lease.Deadline()))
			return
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// peerRole is the process on our side: it takes the flags and the commands of the Java
// program, and a few of its own.
const peerRole = "interop-peer"

func rolePeer(args []string) {
	flags := flag.NewFlagSet(peerRole, flag.ExitOnError)
	address := flags.String("address", "", "")
	password := flags.String("password", "", "")
	cluster := flags.Bool("cluster", false, "")
	messages := flags.String("messages", "auto", "")
	prefix := flags.String("prefix", "", "")
	slice := flags.Duration("slice", holdfast.DefaultHandoffSlice, "") // this and the next two are Holdfast's alone
	linger := flags.Duration("linger", 0, "")
	poll := flags.Duration("poll", patience, "") // by default, a lost message must show
	watchdog := flags.Int64("watchdog", 30_000, "")
	_ = flags.Parse(args)

	modes := map[string]holdfast.PublishMode{
		"auto": holdfast.PublishAuto, "classic": holdfast.PublishClassic, "sharded": holdfast.PublishSharded,
	}
	var client redis.UniversalClient
	if *cluster {
		client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{*address}, Password: *password})
	} else {
		client = redis.NewClient(&redis.Options{Addr: *address, Password: *password})
	}
	manager, err := holdfast.New(client,
		holdfast.WithLease(time.Duration(*watchdog)*time.Millisecond),
		holdfast.WithNameMapper(func(name string) string { return *prefix + name }),
		holdfast.WithPublishMode(modes[*messages]),
		holdfast.WithHandoffSlice(*slice),
		holdfast.WithLinger(*linger),
		holdfast.WithPollInterval(*poll),
		holdfast.WithFairPatience(max(holdfast.DefaultFairPatience, 3**poll)), // of which a third is the longest between two polls
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	(&goPeer{manager: manager, threads: make(map[string]chan<- []string)}).run()
}

// goPeer carries out commands. Its threads are goroutines, and owners: a thread that
// holds a lock takes it again under the context of its lease.
type goPeer struct {
	manager *holdfast.Manager
	threads map[string]chan<- []string
	out     sync.Mutex // held to write an answer
}

func (p *goPeer) run() {
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Split(in.Text(), " ")
		thread, ok := p.threads[words[1]]
		if !ok {
			requests := make(chan []string, 1000)
			p.threads[words[1]], thread = requests, requests
			go p.serve(requests) // ends with the process, as in the Java program
		}
		thread <- words
	}
}

func (p *goPeer) serve(requests <-chan []string) {
	held := leases{}
	for words := range requests {
		began := time.Now()
		value, err := p.execute(held, words)
		ended := time.Now()
		if err != nil {
			value = "!" + err.Error()
		}
		p.out.Lock()
		fmt.Println(words[0], began.UnixNano(), ended.UnixNano(), value)
		p.out.Unlock()
	}
}

// leases are what a thread holds, by kind and name; the latest last.
type leases map[string][]*holdfast.Lease

func (l leases) last(key string) *holdfast.Lease {
	if n := len(l[key]); n > 0 {
		return l[key][n-1]
	}
	return nil
}

func (p *goPeer) execute(held leases, words []string) (string, error) {
	verb, name := words[2], words[4]
	k, err := kindNamed(words[3])
	if err != nil {
		return "", err
	}
	number := func(i int) time.Duration {
		n, convErr := strconv.ParseInt(words[5+i], 10, 64)
		err = errors.Join(err, convErr)
		return time.Duration(n)
	}
	owner := owner{p.manager, k, name, held, k.name + " " + name}
	ctx := context.Background()
	switch verb {
	case "lock":
		_, err := owner.lock(-1, number(0)*time.Millisecond)
		return "ok", err
	case "tryLock":
		granted, err := owner.lock(max(0, number(0)*time.Millisecond), number(1)*time.Millisecond)
		return strconv.FormatBool(granted), err
	case "unlock":
		return "ok", owner.unlock()
	case "token":
		return strconv.FormatUint(held.last(owner.key).Token(), 10), nil
	case "loss": // waits for it
		<-held.last(owner.key).Done()
		return held.last(owner.key).Err().Error(), nil
	case "forceUnlock":
		before, err := p.inspect(name)
		if err != nil {
			return "", err
		}
		var freed, unheard bool
		err = patiently(func() (err error) {
			freed, err = p.manager.ForceUnlock(ctx, name)
			unheard = unheard || err != nil
			return err
		})
		return strconv.FormatBool(freed || unheard && before.Held), err // an answer that was lost may have been the one that says so
	case "isLocked":
		info, err := p.inspect(name)
		return strconv.FormatBool(info.Held), err
	case "remainTimeToLive":
		info, err := p.inspect(name)
		if info.Kind == holdfast.KindFree {
			return "-2", err
		}
		return strconv.FormatInt(info.TTL.Milliseconds(), 10), err
	case "set":
		return "ok", patiently(func() error { return p.manager.Semaphore(name, 1).SetPermits(ctx, int(number(0))) })
	case "counts":
		info, err := p.inspect(name)
		return fmt.Sprint(info.Available, " ", info.Permits-info.Available), err
	case "inspect":
		info, err := p.inspect(name)
		text, _ := json.Marshal(info)
		return string(text), err
	case "waiting": // whether a caller sleeps: Go has no threads to ask for one
		s := p.manager.Stats()
		return strconv.FormatBool(s.Waiting > 0 && s.Subscriptions > 0), nil
	case "keeps": // without a caller
		for l := range p.manager.Locks() {
			if l.Name == name && l.State == holdfast.LocalIdle {
				return "true", nil
			}
		}
		return "false", nil
	case "work", "hammer":
		amount, seed := number(0), int64(number(1))
		s, err := openSection(words[7])
		if err != nil {
			return "", err
		}
		defer s.Close()
		if verb == "work" {
			return newWorker(owner, s, seed).work(int(amount))
		}
		return newWorker(owner, s, seed).hammer(int(amount), words[7]+overSuffix)
	}
	return "", fmt.Errorf("no command %q", verb)
}

func (p *goPeer) inspect(name string) (info holdfast.Info, err error) {
	err = patiently(func() error {
		info, err = p.manager.Inspect(context.Background(), name)
		return err
	})
	return info, err
}

// patiently asks again while Redis has not answered in the second that the library gives it: a
// machine that stands still for longer is no failure.
func patiently(ask func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if err := ask(); !errors.Is(err, holdfast.ErrUnavailable) || time.Now().After(end) {
			return err
		}
	}
}

// owner is a thread's view of one lock.
type owner struct {
	manager *holdfast.Manager
	kind    kind
	name    string
	held    leases
	key     string
}

// lock takes the lock. It waits for at most wait, forever if that is negative. A
// positive ttl is a lease that is not renewed.
func (o owner) lock(wait, ttl time.Duration) (granted bool, err error) {
	var opts []holdfast.LockOption
	if ttl > 0 {
		opts = append(opts, holdfast.WithFixedLease(ttl), holdfast.WithLinger(0))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if wait > 0 {
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	if outer := o.held.last(o.key); outer != nil && outer.Err() == nil {
		ctx = outer.Context(ctx)
	}
	lock := o.kind.lock(o.manager, o.name, opts...)
	var lease *holdfast.Lease
	if wait == 0 {
		err = patiently(func() (err error) {
			lease, err = lock.TryLock(ctx)
			return err
		})
	} else {
		lease, err = lock.Lock(ctx)
	}
	if errors.Is(err, holdfast.ErrNotAcquired) && wait >= 0 {
		return false, nil
	}
	if errors.Is(err, holdfast.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded) {
		return false, nil // the wait was shorter than the server's pause
	}
	if err != nil {
		return false, err
	}
	o.held[o.key] = append(o.held[o.key], lease)
	return true, nil
}

// unlock gives back the latest.
func (o owner) unlock() error {
	lease := o.held.last(o.key)
	if lease == nil {
		return errors.New("this thread does not hold it")
	}
	o.held[o.key] = o.held[o.key][:len(o.held[o.key])-1]
	return patiently(func() error { return lease.Unlock(context.Background()) })
}

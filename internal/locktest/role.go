package locktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// HolderRole is the role of a process that takes a lock and reports what becomes of it.
const HolderRole = "locktest-holder"

// Roles returns the roles that the suite's helper processes play, for redistest.
func Roles(kinds ...Kind) map[string]func(args []string) {
	return map[string]func(args []string){
		HolderRole: func(args []string) { holder(kinds, args) },
	}
}

// holder is called with the kind, the server's address and password, the lock's name
// and the lease. It prints "held", then watches its lease; it unlocks when told to.
func holder(kinds []Kind, args []string) {
	kind, addr, password, name := args[0], args[1], args[2], args[3]
	ttl, err := time.ParseDuration(args[4])
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr, Password: password})
	m, err := holdfast.New(client, holdfast.WithLease(ttl))
	if err != nil {
		panic(err)
	}
	var lease *holdfast.Lease
	for _, k := range kinds {
		if k.Name == kind {
			if lease, err = k.Lock(m, name).Lock(context.Background()); err != nil {
				panic(err)
			}
		}
	}
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

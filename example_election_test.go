package holdfast_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// Of all replicas one does the work. Each of them runs this.
func ExampleElection_Lead() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx, address := context.Background(), "10.0.0.7:8080"
	schedule := func(_ context.Context, term uint64) error {
		fmt.Println("leads in term", term)
		return nil
	}

	scheduler := locks.Election("scheduler")
	err := scheduler.Lead(ctx, address, func(ctx context.Context, term *holdfast.Term) error {
		return schedule(ctx, term.Number()) // until ctx ends: then another process may lead
	})
	fmt.Println(err)
	// Output:
	// leads in term 1
	// <nil>
}

// A leader says where it is, and others ask.
func ExampleElection_Campaign() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	leads, follows := server.NewManager().Election("writer"), server.NewManager().Election("writer")
	ctx := context.Background()

	term, err := leads.Campaign(ctx, "10.0.0.7:8080")
	if err != nil {
		log.Fatal(err)
	}
	seen, err := follows.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the leader is at", seen.Value, "in term", seen.Term, "and here:", seen.Self)
	fmt.Println("this process leads:", leads.Term() == term, follows.Term() != nil)

	if err := term.Proclaim(ctx, "10.0.0.8:8080"); err != nil {
		log.Fatal(err)
	}
	seen, err = follows.Leader(ctx)
	fmt.Println("the leader is at", seen.Value, err)

	fmt.Println(term.Resign(ctx))
	_, err = follows.Leader(ctx)
	fmt.Println(err)
	// Output:
	// the leader is at 10.0.0.7:8080 in term 1 and here: false
	// this process leads: true false
	// the leader is at 10.0.0.8:8080 <nil>
	// <nil>
	// holdfast: no leader: "writer"
}

// A follower sees each change.
func ExampleElection_Observe() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	leads, follows := server.NewManager().Election("writer"), server.NewManager().Election("writer")
	ctx := context.Background()

	term, err := leads.Campaign(ctx, "10.0.0.7:8080")
	if err != nil {
		log.Fatal(err)
	}
	for leader, err := range follows.Observe(ctx) {
		if err != nil {
			log.Print(err) // Redis does not answer; the loop goes on
			continue
		}
		if leader.Term == 0 {
			fmt.Println("none leads")
			break
		}
		fmt.Println("the leader is at", leader.Value)
		if err := term.Resign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// the leader is at 10.0.0.7:8080
	// none leads
}

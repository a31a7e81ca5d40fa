package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
)

const buyersName = "demo-buyers"

// buyersCommand is what the demo's processes run. It speaks with its parent over its
// standard streams.
func buyersCommand() *cli.Command {
	return &cli.Command{
		Name:   buyersName,
		Usage:  "one of the demo's processes",
		Hidden: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "sale", Required: true},
			&cli.IntFlag{Name: "process", Required: true},
			&cli.IntFlag{Name: "first", Required: true},
			&cli.IntFlag{Name: "count", Required: true},
			&cli.IntFlag{Name: "stock", Required: true},
			&cli.DurationFlag{Name: "hold", Required: true},
			&cli.BoolFlag{Name: "unsafe"},
			redisFlag(),
		},
		Action:       runBuyers,
		OnUsageError: usageError,
	}
}

// buyersArgs are the arguments of which runBuyers makes s again.
func buyersArgs(s demo.Shift) []string {
	return []string{
		buyersName,
		"--sale=" + s.Sale,
		fmt.Sprintf("--process=%d", s.Process),
		fmt.Sprintf("--first=%d", s.First),
		fmt.Sprintf("--count=%d", s.Count),
		fmt.Sprintf("--stock=%d", s.Stock),
		fmt.Sprintf("--hold=%v", s.Hold),
		fmt.Sprintf("--unsafe=%t", s.Unsafe),
	}
}

func runBuyers(ctx context.Context, c *cli.Command) error {
	// Ctrl-C reaches every process of the terminal. The parent is the one to decide: it
	// ends our input, and then we still give the lock back.
	signal.Ignore(os.Interrupt)
	s := demo.Shift{
		Sale:    c.String("sale"),
		Process: c.Int("process"),
		First:   c.Int("first"),
		Count:   c.Int("count"),
		Stock:   c.Int("stock"),
		Hold:    c.Duration("hold"),
		Unsafe:  c.Bool("unsafe"),
	}
	return demo.Work(ctx, c.String("redis"), s, c.Root().Reader, c.Root().Writer)
}

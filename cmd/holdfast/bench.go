package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"
)

const (
	benchName    = "holdfast-bench:" // begins the names of the locks
	mostClients  = 1000              // of a server that is measured without --force
	mostProcs    = 64
	tripPings    = 21               // of which the median is the round trip
	shortestHold = time.Millisecond // long enough for the other process to queue on a near server
	holdTrips    = 4                // and on a far one: so many round trips
)

func benchCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:  "bench",
		Usage: "measure what locks cost on a Redis",
		Description: "It measures uncontended pairs of Lock and Unlock, the time from an Unlock of one process to the grant of another, and the\n" +
			"commands per pair. The locks have holdfast-bench: in their names, after --prefix, and are released. A server with more than\n" +
			"1000 clients is refused without --force.\n\n" +
			"Exit status: 0 done, 1 failed, 2 usage, 4 refused, 5 Redis cannot be reached.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Value: 3 * time.Second, Usage: "measure each of the two loads for `TIME`"},
			&cli.IntFlag{Name: "procs", Value: 4, Usage: "start `N` processes for uncontended pairs"},
			&cli.BoolFlag{Name: "force", Usage: "measure a server with many clients"},
			outputFlag("a table, json, or jsonl", reportFormats),
		},
	}, errand{check: checkBench, do: runBench, coded: failure})
}

func checkBench(c *cli.Command) error {
	switch n := c.Int("procs"); {
	case c.Args().Present():
		return noNames(c)
	case c.Duration("for") < 100*time.Millisecond:
		return errors.New("--for must be at least 100ms")
	case n < 1 || n > mostProcs:
		return fmt.Errorf("--procs must be between 1 and %d", mostProcs)
	}
	return nil
}

// measured is the result of bench, for people and as JSON. Times are in µs.
type measured struct {
	Server           string  `json:"server"`
	Processes        int     `json:"processes"`
	Millis           int64   `json:"measuredFor"` // ms, of each load
	RoundTrip        float64 `json:"roundTripMicros"`
	Pairs            uint64  `json:"pairs"`
	PairsPerSecond   float64 `json:"pairsPerSecond"`
	CommandsPerPair  float64 `json:"commandsPerPair"`
	Handoffs         int     `json:"handoffs"`
	HandoffP50       float64 `json:"handoffP50Micros"`
	HandoffP99       float64 `json:"handoffP99Micros"`
	CommandsPerGrant float64 `json:"commandsPerHandoff"`

	handoffs []time.Duration // sorted
}

func runBench(ctx context.Context, c *cli.Command, sites []*site) error {
	if len(sites) == 2 {
		return &badUsage{errors.New("a Redlock has three servers or more, and --redis names 2")}
	}
	server, trip := "", time.Duration(0) // of a Redlock the slowest round trip
	for _, at := range sites {
		if at.down != nil {
			return &unavailable{fmt.Errorf("%s: %w", at.name, at.down)} // a Redlock with a server less is not what is to be measured
		}
		what, err := admit(ctx, c, at.client)
		if err != nil {
			return err
		}
		took, err := pings(ctx, at.client, tripPings)
		if err != nil {
			return &unavailable{err}
		}
		server, trip = cmp.Or(server, what), max(trip, took[tripPings/2])
	}
	if len(sites) > 1 {
		server = fmt.Sprintf("a Redlock of %d servers, the first %s", len(sites), server)
	}
	b := &benchmark{
		urls: strings.Join(redisURLs(c), " "), prefix: c.String("prefix"), encryption: encryptionOf(c), name: benchName + randomName(), duration: c.Duration("for"),
		tell: newTeller(c),
	}
	m := measured{Server: server, Processes: c.Int("procs"), Millis: b.duration.Milliseconds(), RoundTrip: micros(trip)}

	pairs, err := b.run(ctx, "uncontended pairs", m.Processes, 0)
	if err != nil {
		return err
	}
	var commands uint64
	for _, r := range pairs {
		m.Pairs += r.Pairs
		commands += r.Commands
		m.PairsPerSecond += float64(r.Pairs) / r.Elapsed.Seconds()
	}
	m.CommandsPerPair = float64(commands) / float64(max(m.Pairs, 1))

	turns, err := b.run(ctx, "remote hand-offs", 2, max(shortestHold, holdTrips*trip))
	if err != nil {
		return err
	}
	m.handoffs = handoffs(turns[0].Turns, turns[1].Turns)
	m.Handoffs = len(m.handoffs)
	m.CommandsPerGrant = float64(turns[0].Commands+turns[1].Commands) / float64(max(turns[0].Pairs+turns[1].Pairs, 1))
	if m.Handoffs > 0 {
		m.HandoffP50, m.HandoffP99 = micros(m.handoffs[m.Handoffs/2]), micros(m.handoffs[m.Handoffs*99/100])
	}
	for _, f := range []*float64{&m.PairsPerSecond, &m.CommandsPerPair, &m.CommandsPerGrant} {
		*f = math.Round(*f*100) / 100
	}
	if err := m.print(c.Root().Writer, c.String("output")); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// admit returns what the server is, or the error with which a busy one is refused.
func admit(ctx context.Context, c *cli.Command, client redis.UniversalClient) (string, error) {
	nodes, err := masters(ctx, client)
	if err != nil {
		return "", &unavailable{err}
	}
	server := "redis"
	for _, node := range nodes {
		text, err := node.Info(ctx).Result()
		switch {
		case denied(err) && c.Bool("force"):
			continue
		case denied(err):
			return "", &coded{errors.New("not measured: the user may not use INFO, so the number of clients is not known; --force measures anyway"), exitRefused}
		case err != nil:
			return "", &unavailable{err}
		}
		info := readFacts(text)
		if n := info.number("connected_clients"); n > mostClients && !c.Bool("force") {
			return "", &coded{fmt.Errorf("not measured: the server has %d clients, and the load would slow them down; --force measures anyway", n), exitRefused}
		}
		name, version := info.server()
		server = name + " " + printable(version)
	}
	return server, nil
}

// pings returns how long so many PINGs take, sorted.
func pings(ctx context.Context, client redis.UniversalClient, n int) (took []time.Duration, err error) {
	for range n {
		begin := time.Now()
		if err := client.Ping(ctx).Err(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took, nil
}

// handoffs returns the times from one process's Unlock to the other's grant, sorted. The turns of each are in their order.
func handoffs(a, b []turn) (took []time.Duration) {
	for len(a) > 0 && len(b) > 0 {
		if b[0].Granted < a[0].Granted {
			a, b = b, a
		}
		// The other's next turn follows this one, unless this process has one more before.
		last := a[0]
		if len(a) == 1 || b[0].Granted < a[1].Granted {
			if d := time.Duration(b[0].Granted - last.Unlocked); d > 0 { // a clock that is set back spoils one
				took = append(took, d)
			}
		}
		a = a[1:]
	}
	slices.Sort(took)
	return took
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }

func (m measured) print(w io.Writer, format string) error {
	if format != formatTable {
		encoder := json.NewEncoder(w)
		if format == formatJSON {
			encoder.SetIndent("", "  ")
		}
		return encoder.Encode(m)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, round trip %.0f µs\n\n", m.Server, m.RoundTrip)
	fmt.Fprintf(&text, "%-18s %10.0f pairs/s   %d processes with a lock each, %d pairs in %v\n", "uncontended", m.PairsPerSecond, m.Processes, m.Pairs, time.Duration(m.Millis)*time.Millisecond)
	fmt.Fprintf(&text, "%-18s %10.0f µs        p50 of %d between two processes; p99 %.0f µs\n", "remote hand-off", m.HandoffP50, m.Handoffs, m.HandoffP99)
	fmt.Fprintf(&text, "%-18s %10.2f           per uncontended pair; %.2f per pair with a remote hand-off\n", "commands", m.CommandsPerPair, m.CommandsPerGrant)
	if m.Handoffs > 0 {
		fmt.Fprintf(&text, "\n%-18s\n", "remote hand-offs")
		drawTimes(&text, m.handoffs)
	}
	_, err := text.WriteTo(w)
	return err
}

// drawTimes draws a bar for each doubling of the time. The times are sorted.
func drawTimes(w io.Writer, times []time.Duration) {
	const width = 40
	limit := 50 * time.Microsecond
	type bucket struct {
		from, to time.Duration
		n        int
	}
	var buckets []bucket
	most := 0
	for from := time.Duration(0); len(times) > 0; from, limit = limit, limit*2 {
		b := bucket{from: from, to: limit}
		for len(times) > 0 && times[0] < limit {
			b.n++
			times = times[1:]
		}
		if b.n > 0 || len(buckets) > 0 {
			buckets = append(buckets, b)
		}
		most = max(most, b.n)
	}
	for _, b := range buckets {
		bar := strings.Repeat("█", (b.n*width+most-1)/most)
		fmt.Fprintf(w, "%9s - %-9s  %-*s %d\n", b.from, b.to, width, bar, b.n)
	}
}

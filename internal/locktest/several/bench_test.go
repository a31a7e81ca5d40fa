package several

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// BenchmarkRedlock shows AC-81: what a dead server of three costs Lock. Three electorates
// take turns, so that they are compared under the same load of the machine: all servers
// well; one refuses connections; one takes everything and says nothing.
func BenchmarkRedlock(b *testing.B) {
	const warmUp, turn = 100, 100
	type condition struct {
		name   string
		down   func(p *redistest.Proxy)
		client Candidate
		took   []time.Duration
	}
	conditions := []*condition{
		{name: "healthy", down: func(*redistest.Proxy) {}},
		{name: "refusing", down: func(p *redistest.Proxy) { p.Refuse(true); p.Cut() }},
		{name: "silent", down: func(p *redistest.Proxy) { p.BlackHole(true) }},
	}
	for _, c := range conditions {
		var clients []*redis.Client
		var first *redistest.Proxy // before every server, so that the way is equally long
		for i, srv := range Servers(b, 3) {
			p := srv.Proxy(b)
			clients = append(clients, p.Client(b))
			if i == 0 {
				first = p
			}
		}
		c.client = CandidateOn(b, clients, Mutexes)
		for range warmUp {
			pair(b, c.client)
		}
		c.client.idle(b) // a vote that is passed on inside the process could be one of a bare majority, whose holder could not give it back
		c.down(first)
		for range warmUp {
			pair(b, c.client)
		}
	}
	for i := 0; b.Loop(); i++ {
		c := conditions[i/turn%len(conditions)]
		c.took = append(c.took, pair(b, c.client))
	}
	healthy := quantile(conditions[0].took, .99)
	for _, c := range conditions {
		if len(c.took) == 0 {
			continue // a short run
		}
		p99 := quantile(c.took, .99)
		b.ReportMetric(quantile(c.took, .5)*1e6, c.name+"-p50-µs")
		b.ReportMetric(p99*1e6, c.name+"-p99-µs")
		if c != conditions[0] {
			b.ReportMetric(p99/healthy, c.name+"-p99/healthy")
		}
	}
}

// pair locks and unlocks and returns how long Lock took.
func pair(b *testing.B, c Candidate) time.Duration {
	begun := time.Now()
	lease, err := c.Lock(b.Context())
	took := time.Since(begun)
	if err != nil {
		b.Fatal(err)
	}
	locktest.MustUnlock(b, lease)
	return took
}

// quantile is in seconds.
func quantile(all []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds()
}

// brief is how long a benchmark watches for d: a moment where its figures are not read, as in make bench-once.
func brief(d time.Duration) time.Duration {
	if redistest.Quick() {
		return d / 20
	}
	return d
}

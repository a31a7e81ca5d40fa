package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

var (
	testServer *load.Server
	// window is how long a benchmark watches a steady state, whatever -benchtime says:
	// what thousands of goroutines do in b.N operations is mostly their start and end.
	window = 700 * time.Millisecond
)

const windowVariable = "HOLDFAST_BENCH_WINDOW"

func TestMain(m *testing.M) {
	if load.Work() {
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	pinning, err := load.Pin()
	if err == nil {
		err = setWindow()
	}
	if err == nil {
		testServer, err = load.StartServer(pinning)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer testServer.Stop()
	// As benchstat configuration lines, next to goos, goarch and cpu.
	fmt.Printf("placement: %s\nredis: %s\nwindow: %s\n", pinning, testServer.Version(), window)
	if err := contender.Pick("redisson")[0].Ready(); err != nil {
		fmt.Println("redisson: skipped:", err)
	}
	return m.Run()
}

func setWindow() (err error) {
	if s := os.Getenv(windowVariable); s != "" {
		window, err = time.ParseDuration(s)
	}
	return err
}

// runnable skips what needs tools that this machine does not have.
func runnable(tb testing.TB, l contender.Library) {
	err := l.Ready()
	if errors.As(err, new(contender.Missing)) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// quickVariable is set where benchmarks only have to run: of each scenario, that is its first row.
const quickVariable = "HOLDFAST_TEST_QUICK"

// BenchmarkScenario is each scenario, for every library and row, watched for a window. ns/op would be the length of that. A rival that gives
// up, as some do when the machine is busy, has no metrics. Two holders at once fail any of them.
func BenchmarkScenario(b *testing.B) {
	for _, s := range scenarios {
		rows := s.rows
		if os.Getenv(quickVariable) != "" {
			rows = rows[:1]
		}
		for _, r := range rows {
			for _, l := range s.libraries {
				b.Run(s.name+"/impl="+l.Name+"/"+r.name, func(b *testing.B) { benchmark(b, s, trial{testServer, l, r, window}) })
			}
		}
	}
}

func benchmark(b *testing.B, s scenario, t trial) {
	runnable(b, t.library)
	if !t.fits() {
		b.Skip("for one caller in each process")
	}
	if t.tooDear() {
		b.Skip("too dear for a short " + windowVariable)
	}
	for b.Loop() {
		m, err := s.measure(context.Background(), t)
		if err != nil && !grave(t.library, err) {
			b.Skip("it failed: ", err)
		}
		if err != nil {
			b.Fatal(err)
		}
		for unit, v := range m {
			b.ReportMetric(v, unit)
		}
	}
	b.ReportMetric(0, "ns/op")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

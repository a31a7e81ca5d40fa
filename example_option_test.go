package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
)

// What New is given becomes the default of all its locks. It does no I/O.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(10*time.Second), holdfast.WithMaxHold(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	_, err = holdfast.New(client, holdfast.WithLease(0))
	var bad *holdfast.OptionError
	fmt.Println(errors.Is(err, holdfast.ErrInvalidOption), errors.As(err, &bad), bad.Option)
	// Output: true true WithLease
}

// The lease is how long the lock outlives a process that died; a living one renews it.
func ExampleWithLease() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("short", holdfast.WithLease(3*time.Second)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	first := lease.Deadline()
	for time.Now().Before(first) {
		time.Sleep(time.Millisecond) // work
	}
	fmt.Println(lease.Valid())
	lease.Unlock(ctx)
	// Output: true
}

// A fixed lease ends by itself.
func ExampleWithFixedLease() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("fixed", holdfast.WithFixedLease(100*time.Millisecond)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	<-lease.Done()
	fmt.Println(errors.Is(lease.Unlock(ctx), holdfast.ErrLeaseLost))
	// Output: true
}

// A holder that hangs is alive, so its lease is renewed: WithMaxHold ends that.
func ExampleWithMaxHold() {
	m, done := newManager()
	defer done()
	job := m.Mutex("job", holdfast.WithLease(3*time.Second), holdfast.WithMaxHold(3*time.Second))

	err := holdfast.Do(context.Background(), job, func(ctx context.Context, _ *holdfast.Lease) error {
		<-ctx.Done() // a service that does not answer
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, holdfast.ErrMaxHold))
	// Output: true
}

func ExampleWithFencing() {
	m, done := newManager(holdfast.WithFencing())
	defer done()
	ctx := context.Background()
	var last uint64
	for range 3 {
		lease, err := m.Mutex("fenced:tokens").Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Token() > last)
		last = lease.Token()
		lease.Unlock(ctx)
	}
	// Output:
	// true
	// true
	// true
}

// Names are mapped on their way to Redis and stay as they are in the program.
func ExampleWithNameMapper() {
	m, done := newManager(holdfast.WithNameMapper(func(name string) string { return "shop:" + name }))
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("stock:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	fmt.Println(lease.Name(), client.Exists(ctx, "stock:42").Val(), client.Exists(ctx, "shop:stock:42").Val())
	// Output: stock:42 0 1
}

// Losses and trouble with Redis are logged, nothing else.
func ExampleWithLogger() {
	var out bytes.Buffer
	m, done := newManager(holdfast.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	ctx := context.Background()
	lease, err := m.Mutex("taken-away").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	m.ForceUnlock(ctx, "taken-away")
	<-lease.Done()
	done()
	fmt.Println(strings.Count(out.String(), "taken-away"))
	// Output: 1
}

func ExampleWithTracerProvider() {
	spans := tracetest.NewSpanRecorder()
	m, done := newManager(holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("traced").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lease.Unlock(ctx)
	for _, s := range spans.Ended() {
		fmt.Println(s.Name())
	}
	// Output:
	// lock.acquire
	// lock.release
}

func ExampleWithMeterProvider() {
	reader := sdkmetric.NewManualReader()
	m, done := newManager(holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("metered").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lease.Unlock(ctx)
	var got metricdata.ResourceMetrics
	fmt.Println(reader.Collect(ctx, &got), len(got.ScopeMetrics))
	// Output: <nil> 1
}

// The rest is seldom changed.
func ExampleOption() {
	m, done := newManager(
		holdfast.WithPollInterval(250*time.Millisecond),   // a lost message costs less
		holdfast.WithHandoffSlice(0),                      // never pass a lock on inside the process
		holdfast.WithFairPatience(2*time.Second),          // silent waiters lose their place sooner
		holdfast.WithPublishMode(holdfast.PublishClassic), // PUBLISH, whatever the server has
		holdfast.WithReplicas(0, 0),                       // do not wait for replicas
	)
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("tuned").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Unlock(ctx), m.Close(ctx))
	// Output: <nil> <nil>
}

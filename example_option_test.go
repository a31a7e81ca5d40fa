package holdfast_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
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

// A fixed lease ends by itself.
func ExampleWithFixedLease() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	lease, err := locks.Mutex("fixed", holdfast.WithFixedLease(100*time.Millisecond)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	<-lease.Done()
	fmt.Println(errors.Is(lease.Unlock(ctx), holdfast.ErrLeaseLost))
	// Output: true
}

// A holder that hangs is alive, so its lease is renewed: WithMaxHold ends that.
func ExampleWithMaxHold() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	job := locks.Mutex("job", holdfast.WithLease(3*time.Second), holdfast.WithMaxHold(3*time.Second))

	err := holdfast.Do(context.Background(), job, func(ctx context.Context, _ *holdfast.Lease) error {
		<-ctx.Done() // a service that does not answer
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, holdfast.ErrMaxHold))
	// Output: true
}

// A process that takes a lock again and again keeps the lock between its calls. Another process that wants the lock gets it at once.
func ExampleWithLinger() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	here, _ := holdfast.New(client, holdfast.WithLinger(time.Minute))
	defer here.Close(ctx)
	there, _ := holdfast.New(client)
	defer there.Close(ctx)

	for range 3 { // only the first call waits for Redis
		lease, err := here.Mutex("linger:42").Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		_ = lease.Unlock(ctx)
	}
	for l := range here.Locks() {
		fmt.Println(l.Name, "is", l.State)
	}
	lease, err := there.Mutex("linger:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("another process has it")
	_ = lease.Unlock(ctx)
	// Output:
	// linger:42 is idle
	// another process has it
}

// What a lock is held for, as every process sees it.
func ExampleWithValue() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()

	lease, err := locks.Mutex("deploy", holdfast.WithValue("build 42")).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	info, err := locks.Inspect(ctx, "deploy")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Holders[0].Value)
	_ = lease.Unlock(ctx)
	// Output: build 42
}

// Long work lets another owner in between.
func ExampleLease_Wanted() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	here, there := server.NewManager(holdfast.WithWanted()), server.NewManager()
	ctx := context.Background()

	lease, err := here.Mutex("index").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	other := there.Mutex("index").LockAsync(ctx) // another process
	<-lease.Wanted()
	fmt.Println("another owner waits")
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	next := <-other
	fmt.Println("it has", next.Lease.Name(), next.Err)
	_ = next.Lease.Unlock(ctx)
	// Output:
	// another owner waits
	// it has index <nil>
}

// WithWait bounds the wait, and not the work.
func ExampleWithWait() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	here, there := server.NewManager(), server.NewManager() // there is what another process has
	ctx := context.Background()

	lease, err := there.Mutex("user:10").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	user := here.Mutex("user:10", holdfast.WithWait(10*time.Millisecond))
	work := func(context.Context, *holdfast.Lease) error { fmt.Println("works"); return nil }
	fmt.Println(errors.Is(holdfast.Do(ctx, user, work), holdfast.ErrNotAcquired))
	_ = lease.Unlock(ctx)
	for err = holdfast.Do(ctx, user, work); errors.Is(err, holdfast.ErrNotAcquired); {
		err = holdfast.Do(ctx, user, work)
	}
	fmt.Println(err)
	// Output:
	// true
	// works
	// <nil>
}

func ExampleWithFencing() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(holdfast.WithFencing())
	ctx := context.Background()
	var last uint64
	for range 3 {
		lease, err := locks.Mutex("fenced:tokens").Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		token, err := lease.FencingToken()
		fmt.Println(token > last, err)
		last = token
		lease.Unlock(ctx)
	}
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
}

// Names are mapped on their way to Redis and stay as they are in the program.
func ExampleWithNameMapper() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(holdfast.WithNameMapper(func(name string) string { return "shop:" + name }))
	ctx := context.Background()
	lease, err := locks.Mutex("stock:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	client := server.Client() // to look at the keys
	fmt.Println(lease.Name(), client.Exists(ctx, "stock:42").Val(), client.Exists(ctx, "shop:stock:42").Val())
	// Output: stock:42 0 1
}

// Losses and trouble with Redis are logged, nothing else.
func ExampleWithLogger() {
	var out bytes.Buffer
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(holdfast.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	ctx := context.Background()
	lease, err := locks.Mutex("taken-away").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	locks.ForceUnlock(ctx, "taken-away")
	<-lease.Done()
	locks.Close(ctx)
	fmt.Println(strings.Count(out.String(), "taken-away"))
	// Output: 1
}

func ExampleWithTracerProvider() {
	spans := tracetest.NewSpanRecorder()
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	ctx := context.Background()
	lease, err := locks.Mutex("traced").Lock(ctx)
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

// The rest is seldom changed.
func ExampleOption() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(
		holdfast.WithPollInterval(250*time.Millisecond),   // a lost message costs less
		holdfast.WithHandoffSlice(0),                      // never pass a lock on inside the process
		holdfast.WithFairPatience(2*time.Second),          // silent waiters lose their place sooner
		holdfast.WithPublishMode(holdfast.PublishClassic), // PUBLISH, whatever the server has
		holdfast.WithReplicas(0, 0),                       // do not wait for replicas
	)
	ctx := context.Background()
	lease, err := locks.Mutex("tuned").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Unlock(ctx), locks.Close(ctx))
	// Output: <nil> <nil>
}

// Metrics tell classes of locks apart, and not each lock.
func ExampleWithMetricName() {
	reader := sdkmetric.NewManualReader()
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		holdfast.WithMetricName(func(name string) string {
			class, _, _ := strings.Cut(name, ":")
			return class
		}),
	)
	ctx := context.Background()
	for _, name := range []string{"stock:1", "stock:2"} {
		lease, err := locks.Mutex(name).Lock(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if err := lease.Unlock(ctx); err != nil {
			log.Fatal(err)
		}
	}

	var data metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &data); err != nil {
		log.Fatal(err)
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if grants, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "holdfast.grants" {
			class, _ := grants.DataPoints[0].Attributes.Value("holdfast.class")
			fmt.Println(class.AsString(), grants.DataPoints[0].Value)
		}
	}
	// Output: stock 2
}

// A server with TLS that asks for a client certificate, as Redis does by default. New does no I/O.
func ExampleNew_tls() {
	ca, own := x509.NewCertPool(), tls.Certificate{} // AppendCertsFromPEM and tls.LoadX509KeyPair fill them
	client := redis.NewClient(&redis.Options{
		Addr:            "redis.internal:6380",
		Username:        "locks",
		Password:        os.Getenv("REDIS_PASSWORD"),
		TLSConfig:       &tls.Config{RootCAs: ca, Certificates: []tls.Certificate{own}},
		ConnMaxIdleTime: 3 * time.Minute, // less than the network's limit
	})
	defer client.Close()
	_, err := holdfast.New(client)
	fmt.Println(err)
	// Output: <nil>
}

// Sentinels tell the client where the master is, after a fail-over as well.
func ExampleNew_sentinel() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:      "mymaster",
		SentinelAddrs:   []string{"sentinel-0:26379", "sentinel-1:26379", "sentinel-2:26379"},
		Password:        os.Getenv("REDIS_PASSWORD"),
		ConnMaxIdleTime: 3 * time.Minute,
	})
	defer client.Close()
	_, err := holdfast.New(client)
	fmt.Println(err)
	// Output: <nil>
}

// Some nodes of a cluster are enough: the client asks them for the others.
func ExampleNew_cluster() {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:           []string{"node-0:6379", "node-1:6379", "node-2:6379"},
		Password:        os.Getenv("REDIS_PASSWORD"),
		ConnMaxIdleTime: 3 * time.Minute,
	})
	defer client.Close()
	_, err := holdfast.New(client)
	fmt.Println(err)
	// Output: <nil>
}

package holdfast_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
)

// offline returns a client that no test here may use: New and option checks do no I/O.
func offline(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestNew_RefusesBadOptions(t *testing.T) {
	for _, tc := range []struct {
		option string
		opt    holdfast.Option
	}{
		{"WithLease", holdfast.WithLease(0)},
		{"WithLease", holdfast.WithLease(-time.Second)},
		{"WithLease", holdfast.WithLease(9 * time.Millisecond)},
		{"WithLease", holdfast.WithLease(math.MaxInt64)},
		{"WithFixedLease", holdfast.WithFixedLease(time.Nanosecond)},
		{"WithMaxHold", holdfast.WithMaxHold(0)},
		{"WithMaxHold", holdfast.WithMaxHold(29 * time.Second)}, // shorter than the default lease
		{"WithPollInterval", holdfast.WithPollInterval(0)},
		{"WithHandoffSlice", holdfast.WithHandoffSlice(-1)},
		{"WithFairPatience", holdfast.WithFairPatience(0)},
		{"WithPublishMode", holdfast.WithPublishMode(holdfast.PublishMode(9))},
		{"WithPublishMode", holdfast.WithPublishMode(holdfast.PublishSharded)}, // not with this client
		{"WithReplicas", holdfast.WithReplicas(-1, time.Second)},
		{"WithReplicas", holdfast.WithReplicas(1, 0)},
		{"WithReplicas", holdfast.WithReplicas(1, 20*time.Second)}, // more than half of the lease
		{"WithReplicas", holdfast.WithReplicas(1, 6*time.Second)},  // above the client's read time-out
		{"WithNameMapper", holdfast.WithNameMapper(nil)},
		{"WithLogger", holdfast.WithLogger(nil)},
		{"WithTracerProvider", holdfast.WithTracerProvider(nil)},
		{"WithMeterProvider", holdfast.WithMeterProvider(nil)},
		{"Option", nil},
	} {
		_, err := holdfast.New(offline(t), tc.opt)
		var bad *holdfast.OptionError
		if !errors.Is(err, holdfast.ErrInvalidOption) || !errors.As(err, &bad) {
			t.Errorf("%s: error %v", tc.option, err)
			continue
		}
		if bad.Option != tc.option || bad.Reason == "" {
			t.Errorf("%s: %+v", tc.option, bad)
		}
	}
}

func TestNew_TakesGoodOptions(t *testing.T) {
	_, err := holdfast.New(offline(t),
		holdfast.WithLease(10*time.Millisecond), holdfast.WithMaxHold(10*time.Millisecond),
		holdfast.WithFixedLease(time.Hour), holdfast.WithMaxHold(time.Hour),
		holdfast.WithFencing(), holdfast.WithHandoffSlice(0), holdfast.WithPollInterval(10*time.Millisecond),
		holdfast.WithPublishMode(holdfast.PublishClassic), holdfast.WithReplicas(0, 0), holdfast.WithReplicas(2, 5*time.Millisecond),
		holdfast.WithTracerProvider(noop.NewTracerProvider()))
	if err != nil {
		t.Error(err)
	}
}

func TestNew_RefusesClientsItCannotServe(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"nil":         nil,
		"nil client":  (*redis.Client)(nil),
		"nil cluster": (*redis.ClusterClient)(nil),
		"ring":        redis.NewRing(&redis.RingOptions{}),
	} {
		_, err := holdfast.New(client)
		if !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: error %v", name, err)
		}
		if ring, ok := client.(*redis.Ring); ok {
			ring.Close()
			const why = "processes may disagree about which shards are up"
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%v does not say that %s", err, why)
			}
		}
	}
}

func TestPublishMode_String(t *testing.T) {
	got := fmt.Sprint(holdfast.PublishAuto, holdfast.PublishClassic, holdfast.PublishSharded, holdfast.PublishMode(7))
	if want := "PublishAuto PublishClassic PublishSharded PublishMode(7)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzLease: whatever the value, New takes it or says why not.
func FuzzLease(f *testing.F) {
	for _, d := range []int64{0, -1, 1, int64(10 * time.Millisecond), math.MaxInt64, math.MinInt64} {
		f.Add(d, d)
	}
	client := offline(f)
	f.Fuzz(func(t *testing.T, lease, hold int64) {
		_, err := holdfast.New(client, holdfast.WithLease(time.Duration(lease)), holdfast.WithMaxHold(time.Duration(hold)))
		valid := lease >= int64(10*time.Millisecond) && hold >= lease &&
			lease <= int64(100*365*24*time.Hour) && hold <= int64(100*365*24*time.Hour)
		if (err == nil) != valid || err != nil && !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("WithLease(%v), WithMaxHold(%v): %v", time.Duration(lease), time.Duration(hold), err)
		}
	})
}

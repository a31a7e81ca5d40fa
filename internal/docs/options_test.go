package docs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// docs/OPTIONS.md is the reference of options, errors and bounds. Here it is compared with the code.

// optionRow is a row of the table of options.
type optionRow struct{ of, byDefault, allowed string }

func optionRows(t *testing.T) map[string]optionRow {
	t.Helper()
	rows := make(map[string]optionRow)
	for _, m := range regexp.MustCompile("(?m)^\\| `(With\\w+)` \\| a (\\w+) \\| ([^|]*) \\| ([^|]*)\\|$").FindAllStringSubmatch(read(t, "docs/OPTIONS.md"), -1) {
		rows[m[1]] = optionRow{m[2], strings.TrimSpace(m[3]), strings.TrimSpace(m[4])}
	}
	return rows
}

// durationOptions are the options that take a duration.
var durationOptions = map[string]func(time.Duration) holdfast.Option{
	"WithLease":        func(d time.Duration) holdfast.Option { return holdfast.WithLease(d) },
	"WithFixedLease":   func(d time.Duration) holdfast.Option { return holdfast.WithFixedLease(d) },
	"WithWait":         func(d time.Duration) holdfast.Option { return holdfast.WithWait(d) },
	"WithHoldAtLeast":  func(d time.Duration) holdfast.Option { return holdfast.WithHoldAtLeast(d) },
	"WithIdleTTL":      func(d time.Duration) holdfast.Option { return holdfast.WithIdleTTL(d) },
	"WithLinger":       func(d time.Duration) holdfast.Option { return holdfast.WithLinger(d) },
	"WithMaxHold":      func(d time.Duration) holdfast.Option { return holdfast.WithMaxHold(d) },
	"WithPollInterval": holdfast.WithPollInterval,
	"WithHandoffSlice": holdfast.WithHandoffSlice,
	"WithFairPatience": holdfast.WithFairPatience,
}

// Each option has a row, which says what it is passed to, and a heading of its own.
func TestDocs_OptionsAreThoseOfTheCode(t *testing.T) {
	text, rows, n := read(t, "docs/OPTIONS.md"), optionRows(t), 0
	for _, m := range regexp.MustCompile(`(?m)^func (With\w+)\(.*\) (\w+) \{$`).FindAllStringSubmatch(read(t, "options.go")+read(t, "identity.go")+read(t, "semaphore.go")+read(t, "wanted.go"), -1) {
		n++
		of := map[string]string{"LockOption": "lock", "Option": "Manager"}[m[2]]
		if m[1] == "WithIdleTTL" {
			of = "Semaphore"
		}
		if rows[m[1]].of != of {
			t.Errorf("%s is an option of a %q, the page says %q", m[1], of, rows[m[1]].of)
		}
		if !regexp.MustCompile("(?m)^### .*`" + m[1] + `\(`).MatchString(text) {
			t.Errorf("%s has no heading", m[1])
		}
	}
	redistest.Want(t, n, len(rows), "%d options, %d rows")
}

// The defaults are those of the code, and New takes the bounds and nothing beyond them.
func TestDocs_OptionsHaveTheirDefaultsAndBounds(t *testing.T) {
	rows := optionRows(t)
	for option, value := range map[string]any{
		"WithLease":        holdfast.DefaultLease,
		"WithPollInterval": holdfast.DefaultPollInterval,
		"WithHandoffSlice": holdfast.DefaultHandoffSlice,
		"WithFairPatience": holdfast.DefaultFairPatience,
		"WithPublishMode":  holdfast.PublishAuto,
	} {
		if rows[option].byDefault != fmt.Sprint(value) {
			t.Errorf("the default of %s is %v, the page says %q", option, value, rows[option].byDefault)
		}
	}
	takes := func(o holdfast.Option) error { _, err := holdfast.New(locktest.Offline(t), o); return err }
	const years = 100 * 365 * 24 * time.Hour
	for option, with := range durationOptions {
		least, ok := strings.CutSuffix(rows[option].allowed, " to 100 years")
		bound, err := time.ParseDuration(least)
		if least == "the lease" {
			bound, err = holdfast.DefaultLease, nil
		}
		if err != nil || !ok {
			t.Errorf("%s: %q, %v", option, rows[option].allowed, err)
			continue
		}
		if err := errors.Join(takes(with(bound)), takes(with(years))); err != nil {
			t.Errorf("%s: %v", option, err)
		}
		for _, d := range []time.Duration{bound - 1, years + 1} {
			if err := takes(with(d)); !errors.Is(err, holdfast.ErrInvalidOption) {
				t.Errorf("%s takes %v: %v", option, d, err)
			}
		}
	}
	if row := rows["WithDebugPage"].allowed; row != "an http or https URL of at most 500 bytes, with `WithIdentity`" { // TestIdentity_DebugPageIsChecked
		t.Errorf("WithDebugPage: the page says %q", row)
	}
	for option, o := range map[string]holdfast.Option{
		"WithNameMapper": holdfast.WithNameMapper(nil), "WithLogger": holdfast.WithLogger(nil), "WithMetricName": holdfast.WithMetricName(nil),
		"WithTracerProvider": holdfast.WithTracerProvider(trace.TracerProvider(nil)), "WithMeterProvider": holdfast.WithMeterProvider(metric.MeterProvider(nil)),
	} {
		if err := takes(o); !errors.Is(err, holdfast.ErrInvalidOption) || !strings.HasSuffix(rows[option].allowed, " but nil") {
			t.Errorf("%s: %v, the page says %q", option, err, rows[option].allowed)
		}
	}
}

// Every error of the package has a paragraph; the README has those that it explains from there.
func TestDocs_OptionsHaveEveryError(t *testing.T) {
	page, readme, n := read(t, "docs/OPTIONS.md"), read(t, "README.md"), 0
	known := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^\t(Err\w+) +=`).FindAllStringSubmatch(read(t, "errors.go"), -1) {
		known[m[1]] = true
		if !strings.Contains(page, "\n- `"+m[1]+"`: ") {
			t.Errorf("%s is not in docs/OPTIONS.md", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`\b(Err[A-Z]\w+)`).FindAllStringSubmatch(readme+page, -1) {
		n++
		if !known[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	if len(known) < 12 || n < 20 {
		t.Errorf("only %d errors and %d mentions", len(known), n)
	}
}

// The names that the page calls invalid are, and no others like them.
func TestDocs_OptionsNames(t *testing.T) {
	m := locktest.ManagerAsIs(t, locktest.Offline(t))
	page := read(t, "docs/OPTIONS.md")
	for _, name := range []string{"a{b", "a}b", "a{}b", "{a}", "holdfast_"} {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%q is not on the page", name)
		}
		if _, err := m.Mutex(name).TryLock(t.Context()); !errors.Is(err, holdfast.ErrInvalidName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, valid := range map[string]bool{
		"": false, strings.Repeat("x", 1<<10+1): false, "redisson_lock_queue:{a}": false,
		strings.Repeat("x", 1<<10): true, "a{b}c": true, "shop:{eu}:42": true,
	} {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := m.Mutex(name).TryLock(ended)
		if errors.Is(err, holdfast.ErrInvalidName) == valid {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// The constants on the pages are those of the source.
func TestDocs_TimeConstants(t *testing.T) {
	page := read(t, "docs/OPTIONS.md") + read(t, "docs/GUIDE.md") + read(t, "docs/SETUP.md") + strings.ReplaceAll(read(t, "doc.go"), "\n// ", " ")
	for _, c := range []struct{ said, file, is string }{
		{"| 25 ms or a fiftieth of the TTL", "internal/validity/validity.go", "minMargin   = 25 * time.Millisecond"},
		{"a fiftieth of the TTL, the larger, at most half of the TTL", "internal/validity/validity.go", "min(max(minMargin, ttl/50), ttl/2)"},
		{"| every third of the TTL |", "internal/renewal/schedule.go", "return ttl / 3"},
		{"| 2 s, or the releaser's lease if that is shorter |", "internal/lock/kind.go", "const MaxClaim = 2 * time.Second"},
		{"| 2 s, or the releaser's lease if that is shorter |", "internal/protocol/requests.go", "min(lock.MaxClaim, c.TTL)"},
		{"| 25 ms later |", "internal/renewal/schedule.go", "const Soon = 25 * time.Millisecond"},
		{"gets its turn | 16 |", "internal/protocol/scripts.go", "const TurnsInARow = 16"},
		{"remote hand-off | 128 |", "internal/wire/inbox.go", "const TokensPerGrant = 128"},
		{"that linger | 10,000 |", "internal/engine/linger.go", "const mostLingering = 10_000"},
		{"tell it | 1 s |", "internal/lock/linger.go", "const lingerLook = time.Second"},
		{"waits for that answer for 100 ms, or eight round trips", "internal/lock/linger.go", "answerTrips = 8\n\tleastAnswer = 100 * time.Millisecond"},
		{"was lost | 1 minute |", "internal/lock/release.go", "const Burial = time.Minute"},
		{"| half a day to a day |", "internal/protocol/scripts.go", "queueTTLLeft = queueTTL / 2"},
		{"| half a day to a day |", "internal/protocol/scripts.go", "queueTTL     = 24 * time.Hour"},
		{"after it was admitted | 30 s |", "internal/lock/trouble.go", "const Readmission = 30 * time.Second"},
		{"a quarter of the lease, at least 100 ms and at most 1 s", "internal/validity/validity.go", "min(max(ttl/4, minPatience), maxPatience)"},
		{"| 1 s, and until ctx ends but at least 100 ms |", "internal/engine/close.go", "const closeGrace = 100 * time.Millisecond"},
		{"The margin (25 ms or a fiftieth of the TTL, the larger)", "internal/validity/validity.go", "min(max(minMargin, ttl/50), ttl/2)"},
		{"margin = max(25 ms, TTL/50), at most TTL/2", "internal/validity/validity.go", "min(max(minMargin, ttl/50), ttl/2)"},
		{"`sent + TTL - max(25 ms, TTL/50)`", "internal/validity/validity.go", "min(max(minMargin, ttl/50), ttl/2)"},
		{"│───── TTL/3 ─────│───── TTL/3 ─────│", "internal/renewal/schedule.go", "return ttl / 3"},
		{"Holds are renewed every TTL/3", "internal/renewal/schedule.go", "return ttl / 3"},
		{"next owner: B, TTL 2 s ", "internal/lock/kind.go", "const MaxClaim = 2 * time.Second"},
		{"A grant ends after 2 s, so the waiter polls at least every", "internal/lock/kind.go", "const MaxClaim = 2 * time.Second"},
		{"a TTL of two seconds", "internal/lock/kind.go", "const MaxClaim = 2 * time.Second"},
		{"renewal, 25 ms later ────│ TTL 30 s", "internal/renewal/schedule.go", "const Soon = 25 * time.Millisecond"},
		{"The first renewal, 25 ms later, raises", "internal/renewal/schedule.go", "const Soon = 25 * time.Millisecond"},
		{"after at most 16 grants in a row", "internal/protocol/scripts.go", "const TurnsInARow = 16"},
		{"once in two minutes", "internal/lock/poll.go", "2*time.Minute"},
	} {
		if !strings.Contains(page, c.said) {
			t.Errorf("no page says %q", c.said)
		}
		if !strings.Contains(read(t, c.file), c.is) {
			t.Errorf("%s has no %q, of which a page says %q", c.file, c.is, c.said)
		}
	}
}

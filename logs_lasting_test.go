package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// An outage has a line at its beginning and one at its end, and so has the loss of the pub/sub connection, however long
// it lasts and however often the connection is tried again. Renewals that fail meanwhile have none.
func TestLogs_LinesOfAnOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	log, option := logged()
	m := managerOn(t, srv, option)
	mustLock(t, m.Mutex("renewed", holdfast.WithLease(4*time.Second))) // tried again six times a second
	holder := managerOn(t, srv)
	mustLock(t, holder.Mutex("taken"))
	first := m.Mutex("taken").LockAsync(t.Context())
	redistest.Eventually(t, patience, "the inbox is heard", func() bool {
		return len(srv.Admin().PubSubChannels(t.Context(), "holdfast_inbox:*").Val()) == 1
	})
	const lost = "holdfast: pub/sub connection lost"
	srv.Kill()
	redistest.Eventually(t, patience, "several attempts fail", func() bool {
		return len(log.with("DEBUG "+lost)) >= 3 && m.Stats().RenewalFailures >= 3 && len(log.with("redis does not answer")) > 0
	})
	srv.Restart()
	if r := <-first; r.Err != nil { // the data is lost
		t.Error(r.Err)
	}
	held := mustLock(t, holder.Mutex("other"))
	second := m.Mutex("other").LockAsync(t.Context()) // or nothing is to be heard
	redistest.Eventually(t, patience, "the end is told", func() bool {
		return len(log.with("INFO holdfast: redis answers again")) > 0 && len(log.with("INFO holdfast: pub/sub connection restored")) > 0
	})
	_ = held.Unlock(context.Background())
	if r := <-second; r.Err != nil {
		t.Error(r.Err)
	}
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	var got []string
	for _, line := range log.with("holdfast: ") {
		if !strings.HasPrefix(line, "DEBUG") && !strings.Contains(line, "lease lost") {
			got = append(got, line)
		}
	}
	for _, want := range []string{
		"WARN holdfast: redis does not answer error=dial tcp", "INFO holdfast: redis answers again",
		"WARN " + lost, "INFO holdfast: pub/sub connection restored",
	} {
		if n := len(log.with(want)); n != 1 {
			t.Errorf("%d lines of %q", n, want)
		}
	}
	if len(got) != 4 {
		t.Errorf("lines: %q", got)
	}
}

// Renewals fail while other requests are answered: that has a line at its beginning and one at its end.
func TestLogs_LinesOfFailingRenewals(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		log, option := logged()
		m, err := holdfast.New(p.Client(t), option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		lease := mustLock(t, m.Mutex("a", holdfast.WithLease(10*time.Second)))
		p.AnswerError(scriptOn("a", "renew"), 1000, "OOM command not allowed when used memory > 'maxmemory'.")
		const begun = "WARN holdfast: renewal failed, trying again"
		redistest.Eventually(t, patience, "several attempts fail", func() bool {
			_ = inspected(t, m, "b") // is answered
			return len(log.with(begun)) > 0 && m.Stats().RenewalFailures >= 4
		})
		p.Heal()
		redistest.Eventually(t, patience, "its end is told", func() bool { return len(log.with("INFO holdfast: no renewal fails any more", "lasted=")) > 0 })
		if n := len(log.with("renewal", "OOM")); n != 1 {
			t.Errorf("%d lines: %q", n, log.with("renewal"))
		}
		_ = lease.Unlock(context.Background())
	})
}

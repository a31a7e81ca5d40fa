package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/debug"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// shop is a process with 200 locks and trouble, and what other processes do. It returns the address of its page, to which
// clients have looked for most of ten minutes: the page's clock is set for each look.
func shop(t *testing.T) string {
	t.Helper()
	const later = 45 * time.Second // than the locks' own clock, at the end
	ahead := later - 10*time.Minute
	seam.Now = func() time.Time { return time.Now().Add(ahead) }
	server := holdfasttest.NewServer(t)
	lease := holdfast.WithLease(10 * time.Minute)
	m := server.NewManager(holdfast.WithIdentity("shop"))
	billing := server.NewManager(holdfast.WithIdentity("billing"), holdfast.WithDebugPage("http://billing-2:6060/debug/holdfast/"))
	page := debug.WithUnlock(func(*http.Request) bool { return true }).Handler(m)
	site := httptest.NewServer(page)
	t.Cleanup(site.Close)
	look := func() { page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) }
	hold := func(m *holdfast.Manager, name, label string) *holdfast.Lease {
		l, err := m.Mutex(name, lease).Lock(holdfast.WithLabel(t.Context(), label))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	wait := func(m *holdfast.Manager, name, label string, callers int) {
		for range callers {
			m.Mutex(name, lease).LockAsync(holdfast.WithLabel(t.Context(), label)) // until the server ends
		}
	}
	var busy []*holdfast.Lease
	for i := range 120 { // looks, five seconds apart by the page's clock
		if n := 30 + i + 40*(i%30)/29; n > len(busy) {
			busy = append(busy, hold(m, fmt.Sprintf("order:%04d", len(busy)), []string{"checkout", "refund", "nightly report"}[len(busy)%3]))
		} else {
			last := busy[len(busy)-1]
			busy = busy[:len(busy)-1]
			if err := last.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if 40 < i && i < 70 { // no client looks
			ahead += 5 * time.Second
			continue
		}
		switch i {
		case 10, 20, 75:
			first := hold(billing, "stock:42", "")
			var waits []<-chan holdfast.Result
			for range i {
				waits = append(waits, m.Mutex("stock:42").LockAsync(t.Context()))
			}
			server.AwaitWaiters("stock:42", 1)
			look()
			if err := first.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, granted := range waits {
				r := <-granted
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				if err := r.Lease.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		look()
		ahead += 5 * time.Second
	}
	for len(busy) < 200 {
		busy = append(busy, hold(m, fmt.Sprintf("order:%04d", len(busy)), "checkout"))
	}
	hold(billing, "invoice:2026-11", "")
	hold(billing, "export", "")
	wait(m, "invoice:2026-11", "checkout", 3)
	m.Mutex("export", lease).LockAsync(holdfast.WithLabel(busy[3].Context(t.Context()), "nightly report")) // while it holds order:0003
	server.AwaitWaiters("invoice:2026-11", 1)
	server.AwaitWaiters("export", 1)
	wait(m, "order:0007", "refund", 12)
	wait(billing, "order:0007", "collect", 2)
	server.AwaitWaiters("order:0007", 1)
	for _, name := range []string{"order:0151", "order:0152"} {
		server.Lose(name)
	}
	look()
	return site.URL
}

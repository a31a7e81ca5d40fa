package debug_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/debug"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func read(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("%s: %v, %s", url, err, r.Status)
	}
	return string(text)
}

// A real manager's page: holders, waiters, a lost lease, and the lock in Redis.
func TestHandler_OfAManager(t *testing.T) {
	server := holdfasttest.NewServer(t)
	m, other := server.NewManager(), server.NewManager()
	site := httptest.NewServer(debug.Handler(m, nil))
	defer site.Close()
	if page := read(t, site.URL); !strings.Contains(page, "Nothing goes wrong") {
		t.Error("an idle process has trouble")
	}
	lease, err := m.Mutex("mine").Lock(holdfast.WithLabel(t.Context(), "checkout"))
	if err != nil {
		t.Fatal(err)
	}
	server.Hold(other.Mutex("theirs"))
	waiting := m.Mutex("theirs").LockAsync(holdfast.WithLabel(t.Context(), "import"))
	server.AwaitWaiters("theirs", 1)
	page := read(t, site.URL)
	for _, want := range []string{`<td class="name">checkout</td>`, `<td class="name">import</td>`, ">mine</a>", ">theirs</a>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if lock := read(t, site.URL+"/lock?name=theirs"); !strings.Contains(lock, ">Holdfast</td>") || !strings.Contains(lock, "<td>waiting</td>") {
		t.Error("the lock's page does not say who holds it, and that this process waits")
	}
	server.Lose("mine")
	<-lease.Done()
	for _, target := range []string{"/", "/lock?name=mine"} {
		if page := read(t, site.URL+target); !strings.Contains(page, "lease lost") || !strings.Contains(page, "reason: deleted") {
			t.Errorf("%s does not tell of the lost lease", target)
		}
	}
	server.Lose("theirs")
	if r := <-waiting; r.Err != nil {
		t.Error(r.Err)
	}
}

// The page is read while locks come and go.
func TestHandler_WhileLocksChurn(t *testing.T) {
	server := holdfasttest.NewServer(t)
	m := server.NewManager()
	site := httptest.NewServer(debug.WithUnlock(func(*http.Request) bool { return true }).Handler(m))
	defer site.Close()
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := string(rune('a' + n%5))
				lease, err := m.Mutex(name).Lock(holdfast.WithLabel(ctx, name))
				if err != nil {
					continue
				}
				if n%7 == 0 {
					_, _ = m.ForceUnlock(ctx, name)
				}
				_ = lease.Unlock(ctx)
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				read(t, site.URL)
				read(t, site.URL+"/lock?name=a&format=json")
			}
		})
	}
	wg.Wait()
}

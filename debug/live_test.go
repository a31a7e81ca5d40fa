package debug_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/debug"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/redistest"
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

// shows reads a page until it has the texts: requests share a look for a quarter of a second.
func shows(t *testing.T, url string, texts ...string) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, fmt.Sprintf("%s has %q", url, texts), func() bool {
		page := read(t, url)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(page, text) })
	})
}

// A real manager's page: holders, waiters, a lost lease, and the lock in Redis.
func TestHandler_OfAManager(t *testing.T) {
	server := holdfasttest.NewServer(t)
	m, other := server.NewManager(holdfast.WithIdentity("shop")), server.NewManager(holdfast.WithIdentity("billing"))
	site := httptest.NewServer(debug.Handler(m, nil))
	defer site.Close()
	if page := read(t, site.URL); !strings.Contains(page, "Nothing goes wrong") {
		t.Error("an idle process has trouble")
	}
	lease, err := m.Mutex("mine").Lock(holdfast.WithLabel(t.Context(), "checkout"))
	redistest.Must(t, err)
	server.Hold(other.Mutex("theirs"))
	waiting := m.Mutex("theirs").LockAsync(holdfast.WithLabel(t.Context(), "import"))
	server.AwaitWaiters("theirs", 1)
	shows(t, site.URL, `data-l="by">checkout</td>`, `data-l="label">import</td>`, ">mine</a>", ">theirs</a>", `data-l="for">billing@`, "Locks of <span>shop on ", "<title>shop@")
	shows(t, site.URL+"/lock?name=theirs", ">Holdfast</td>", "<td>waiting</td>") // who holds it, and that this process waits
	server.Lose("mine")
	<-lease.Done()
	for _, target := range []string{"/", "/lock?name=mine"} {
		shows(t, site.URL+target, "lease lost", "key deleted")
	}
	shows(t, site.URL, "<title>1 problem: ", ` ago: <span class="why">key deleted</span>`)
	server.Lose("theirs")
	if r := <-waiting; r.Err != nil {
		t.Error(r.Err)
	}
	shows(t, site.URL, "Of 1 waits, half")
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

// A page of managers that New has not made is empty.
func TestHandler_OfNoManager(t *testing.T) {
	w := httptest.NewRecorder()
	debug.Handler(nil, new(holdfast.Manager)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

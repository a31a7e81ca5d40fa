package debug

import (
	"fmt"
	"html"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// many is a manager with n locks, half of them waited for.
func many(n int) *fake {
	f := &fake{}
	for i := range n {
		l := holdfast.LocalLock{Name: fmt.Sprintf("lock:%05d", i), Kind: holdfast.KindMutex, State: holdfast.LocalHeld, Since: noon.Add(-time.Duration(i) * time.Second), Deadline: noon.Add(time.Second), Leases: 1}
		if i%2 == 1 {
			l.State, l.WaitingSince, l.Waiters = holdfast.LocalWaiting, l.Since, 1
		}
		f.locks = append(f.locks, l)
	}
	return f
}

// Thousands of locks are shown on pages that link to each other; each lock is on one.
func TestPage_Paged(t *testing.T) {
	const n = 2000
	handler := newPage(many(n)).protected()
	for _, param := range []string{"held", "waiting"} {
		seen := make(map[string]bool)
		for target := "/?" + param + "=1&q=lock"; target != ""; {
			page := body(t, handler, target)
			if len(page) > 150<<10 {
				t.Fatalf("%s has %d KiB", target, len(page)>>10)
			}
			_, list, _ := strings.Cut(page, `id="`+param+`"`)
			list, _, _ = strings.Cut(list, "</section>")
			rows := 0
			for _, to := range hrefs(list) {
				if strings.HasPrefix(to, "lock?") {
					rows++
					seen[to] = true
				}
			}
			if rows != rowsPerPage {
				t.Fatalf("%s: %d rows", target, rows)
			}
			target = ""
			if m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(list); m != nil {
				target = "/" + html.UnescapeString(m[1])
			}
		}
		if len(seen) != n/2 {
			t.Errorf("%s: %d locks on all pages, want %d", param, len(seen), n/2)
		}
	}
	handler = newPage(many(10_000)).protected()
	for _, target := range []string{"/", "/?held=0", "/?held=-1", "/?held=999999999999999999999", "/?held=x", "/?q=none"} {
		body(t, handler, target)
	}
}

// All links lead somewhere wherever the page is mounted, and nothing is fetched from elsewhere.
func TestPage_UnderAPrefix(t *testing.T) {
	h := newPage(busy()).protected()
	mux := http.NewServeMux()
	mux.Handle("/debug/holdfast/", h)
	mux.Handle("/a/b/", http.StripPrefix("/a/b", h))
	mux.Handle("/a/c", http.StripPrefix("/a/c", h))
	for _, root := range []string{"/debug/holdfast/", "/a/b/"} {
		todo, done := []string{root}, make(map[string]bool)
		for len(todo) > 0 {
			target := todo[0]
			todo = todo[1:]
			if done[target] {
				continue
			}
			done[target] = true
			w := get(t, mux, target)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d", target, w.Code)
			}
			policy := w.Header().Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'self';") || strings.Contains(policy, "unsafe") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", target, w.Header())
			}
			if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				continue
			}
			at, err := url.Parse(target)
			redistest.Must(t, err)
			for _, link := range hrefs(w.Body.String()) {
				if link == holdersPage {
					continue // it leads elsewhere, and nothing is fetched from there
				}
				to, err := at.Parse(link)
				if err != nil || to.Host != "" || !strings.HasPrefix(to.Path, root) {
					t.Errorf("%s links to %s", target, link)
					continue
				}
				todo = append(todo, to.String())
			}
		}
		if len(done) < 8 {
			t.Errorf("%s: only %d pages", root, len(done))
		}
	}
	if w := get(t, mux, "/a/c?q=x"); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "c/" {
		t.Errorf("without a slash: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := get(t, mux, "/a/b/other"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown page: %d", w.Code)
	}
}

// counted counts the looks at a manager.
type counted struct {
	fake
	looks atomic.Int32
}

func (c *counted) Locks() iter.Seq[holdfast.LocalLock] {
	c.looks.Add(1)
	return c.fake.Locks()
}

// However many clients reload the page, the managers are looked at four times a second at most.
func TestPage_RequestsShareALook(t *testing.T) {
	m, now := &counted{}, noon
	h := &handler{now: func() time.Time { return now }, fresh: time.Hour, peers: newPage(&fake{}).peers}
	h.peers[0].manager = m
	for n := int32(1); n <= 3; n++ {
		var clients sync.WaitGroup
		for i := range 8 {
			clients.Go(func() { get(t, h.protected(), []string{"/", "/?q=a", "/?format=json", "/lock?name=a"}[i%4]) })
		}
		clients.Wait()
		redistest.Want(t, m.looks.Load(), n, "%d looks, want %d")
		now = now.Add(time.Hour)
	}
}

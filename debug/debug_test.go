package debug

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/journal"
)

var update = flag.Bool("update", false, "write testdata anew")

// fake is a manager with the locks of a test.
type fake struct {
	locks     []holdfast.LocalLock
	contended []holdfast.Contention
	stats     holdfast.Stats
	info      holdfast.Info
	err       error
	freed     []string
}

func (f *fake) Locks() iter.Seq[holdfast.LocalLock] { return slices.Values(f.locks) }

func (f *fake) Contended(n int) []holdfast.Contention { return f.contended[:min(n, len(f.contended))] }

func (f *fake) Stats() holdfast.Stats { return f.stats }

func (f *fake) Inspect(_ context.Context, name string) (holdfast.Info, error) {
	f.info.Name = name
	return f.info, f.err
}

func (f *fake) ForceUnlockOf(_ context.Context, name, owner string) (bool, error) {
	f.freed = append(f.freed, name+" of "+owner)
	return owner == f.info.Holders[0].Owner, f.err
}

// holdersPage is the address of the page of the process that holds a lock.
const holdersPage = "http://web-3:6060/debug/holdfast/"

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// newPage is a page of fakes at noon.
func newPage(fakes ...*fake) *handler {
	h := &handler{now: func() time.Time { return noon }}
	for _, f := range fakes {
		h.peers = append(h.peers, peer{f, func() []journal.Event { return nil }})
	}
	return h
}

func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// body is the page at target, which must be there.
func body(t *testing.T, h http.Handler, target string) string {
	t.Helper()
	w := get(t, h, target)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}

// hrefs are the links of a page.
func hrefs(page string) (all []string) {
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		all = append(all, html.UnescapeString(m[1]))
	}
	return all
}

// busy has a lock of each state.
func busy() *fake {
	return &fake{
		locks: []holdfast.LocalLock{
			{
				Name: "stock:42", Kind: holdfast.KindMutex, State: holdfast.LocalHeld, Since: noon.Add(-90 * time.Second), Label: "checkout",
				Deadline: noon.Add(25 * time.Second), Leases: 2, WaitMode: "grant", Token: 812, Renewed: noon.Add(-5 * time.Second), RoundTrip: 3 * time.Millisecond,
				Waiters: 3, WaitingSince: noon.Add(-40 * time.Second), WaiterLabel: "report",
			},
			{
				Name: "late\xff", Kind: holdfast.KindWrite, State: holdfast.LocalHeld, Since: noon.Add(-time.Hour), Deadline: noon.Add(6 * time.Second),
				Leases: 1, WaitMode: "fast", Renewed: noon.Add(-24 * time.Second), RoundTrip: 2 * time.Millisecond,
			},
			{Name: "elsewhere", Kind: holdfast.KindFair, State: holdfast.LocalWaiting, Since: noon.Add(-2 * time.Second), Waiters: 1, WaitingSince: noon.Add(-2 * time.Second)},
			{Name: "going", Kind: holdfast.KindRead, State: holdfast.LocalReleasing, Since: noon.Add(-time.Second)},
		},
		contended: []holdfast.Contention{{Name: "stock:42", Waits: 17.5}},
		stats:     holdfast.Stats{Lost: 2, Granted: 40, Commands: 812},
		info: holdfast.Info{
			Kind: holdfast.KindMutex, Held: true, TTL: 21 * time.Second, Waiters: 2, Token: 812,
			Holders: []holdfast.Holder{{Owner: "hf-11111111-1111-4111-8111-111111111111:7", Holds: 1, Holdfast: true, TTL: 21 * time.Second, Identity: &holdfast.Identity{App: "shop", Host: "web-3", PID: 4121, Started: noon.Add(-time.Hour), Version: "v1.2.0", Debug: holdersPage}}},
		},
	}
}

// Programs read the JSON: testdata has it.
func TestJSON_Golden(t *testing.T) {
	h := newPage(busy())
	handler := h.protected()
	get(t, handler, "/") // the first look
	h.now = func() time.Time { return noon.Add(10 * time.Second) }
	h.peers[0].manager.(*fake).stats.Granted += 30
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{{At: noon, Text: "holdfast: lease lost", Lock: "stock:42"}, {At: noon.Add(time.Second), Text: "holdfast: redis does not answer"}}
	}
	h.now = func() time.Time { return noon.Add(10 * time.Second) }
	for file, target := range map[string]string{"overview": "/?format=json", "lock": "/lock?name=stock:42&format=json"} {
		got := []byte(strings.ReplaceAll(body(t, handler, target), processName(), "HOST"))
		if !json.Valid(got) {
			t.Errorf("%s is no JSON", target)
		}
		name := filepath.Join("testdata", file+".json")
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %s is now\n%s", err, name, got)
		}
	}
}

// What a person looks for is on the page.
func TestPage_SaysWhatGoesWrong(t *testing.T) {
	h := newPage(busy())
	page := body(t, h.protected(), "/")
	for _, want := range []string{
		`2 things go wrong`, `&#34;late\xff&#34;</a>: not renewed for 24.0 s, its lease ends in 6.0 s`, `stock:42</a>: a caller has waited for 40.0 s`,
		`<td>1 m 30 s</td><td class="name">checkout</td>`, `value="0.83">83 %</meter> 25.0 s</td><td>3</td>`, `<noscript><meta http-equiv="refresh"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not have %s", want)
		}
	}
	many := &fake{}
	for i := range 9 {
		l := busy().locks[1]
		l.Name, l.Deadline = fmt.Sprint("late:", i), l.Deadline.Add(-time.Duration(i)*time.Millisecond)
		many.locks = append(many.locks, l)
	}
	if page := body(t, newPage(many).protected(), "/"); !strings.Contains(page, "4 things go wrong") || !strings.Contains(page, ">late:8</a>: not renewed") || !strings.Contains(page, "6 more locks are in the same state") {
		t.Error("many late renewals are not summed up, the most urgent first")
	}
	h.peers[0].manager.(*fake).stats.Lost++
	h.now = func() time.Time { return noon.Add(time.Second) }
	h.peers[0].manager.(*fake).stats.RenewalFailures++
	if page := body(t, h.protected(), "/"); !strings.Contains(page, "failed renewals: 1 in the last minute") {
		t.Error("failed renewals are not named")
	}
	h.peers[0].events = func() []journal.Event {
		lost := journal.Event{At: noon, Text: "holdfast: lease lost", Lock: "a"}
		old := lost
		old.At = noon.Add(-time.Hour)
		return []journal.Event{old, lost, lost}
	}
	if page := body(t, h.protected(), "/"); !strings.Contains(page, ">a</a>: lease lost, the last of 2 in 5 minutes") {
		t.Error("a lost lease is not named")
	}
	h.peers[0].events = func() []journal.Event { return []journal.Event{{At: noon, Text: "holdfast: redis does not answer"}} }
	if page := body(t, h.protected(), "/"); !strings.Contains(page, "redis does not answer (since 12:00:00)") {
		t.Error("an outage is not named")
	}
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{{At: noon, Text: "holdfast: redis does not answer"}, {At: noon, Text: "holdfast: redis answers again"}}
	}
	if page := body(t, h.protected(), "/"); strings.Contains(page, "(since") {
		t.Error("an outage that is over is named")
	}
	if page := body(t, h.protected(), "/lock?name=stock:42"); !strings.Contains(page, "<td class=\"name\">shop@web-3/4121, v1.2.0, <a href=\"http://web-3:6060/debug/holdfast/\" rel=\"noreferrer\">its page</a></td>") {
		t.Error("the process of the holder is not named")
	}
	if page := body(t, newPage(&fake{}).protected(), "/"); !strings.Contains(page, "Nothing goes wrong") || !strings.Contains(page, "holds no lock") {
		t.Error("an empty page does not say so")
	}
}

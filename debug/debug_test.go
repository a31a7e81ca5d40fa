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
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/redistest"
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
	waits     engine.Waits
}

func (f *fake) Locks() iter.Seq[holdfast.LocalLock] { return slices.Values(f.locks) }

func (f *fake) Contended(n int) []holdfast.Contention { return f.contended[:min(n, len(f.contended))] }

func (f *fake) Stats() holdfast.Stats { return f.stats }

func (f *fake) Inspect(_ context.Context, name string) (holdfast.Info, error) {
	info := f.info
	info.Name = name
	return info, f.err
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
		h.peers = append(h.peers, peer{f, func() []journal.Event { return nil }, func() engine.Waits { return f.waits }, "stock"})
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
			{Name: "elsewhere", Kind: holdfast.KindFair, State: holdfast.LocalWaiting, Since: noon.Add(-2 * time.Second), Waiters: 1, WaitingSince: noon.Add(-2 * time.Second), WaiterHolds: []string{"stock:42", "a\xff"}},
			{Name: "going", Kind: holdfast.KindRead, State: holdfast.LocalReleasing, Since: noon.Add(-time.Second)},
		},
		contended: []holdfast.Contention{{Name: "stock:42", Waits: 17.5}},
		stats:     holdfast.Stats{Lost: 2, Granted: 40, Commands: 812},
		waits:     engine.Waits{0, 90, 8, 0, 2},
		info: holdfast.Info{
			Kind: holdfast.KindMutex, Held: true, TTL: 21 * time.Second, Waiters: 2, Token: 812,
			Holders: []holdfast.Holder{{Owner: "hf-11111111-1111-4111-8111-111111111111:7", Holds: 1, Holdfast: true, TTL: 21 * time.Second, Identity: &holdfast.Identity{App: "shop", Host: "web-3", PID: 4121, Started: noon.Add(-time.Hour), Version: "v1.2.0", Debug: holdersPage}, Callers: 12, CallersSince: noon.Add(-48 * time.Second)}},
			Queue: []holdfast.Waiter{
				{Owner: "hf-22222222-2222-4222-8222-222222222222:9", Holdfast: true, Identity: &holdfast.Identity{App: "report", Host: "web-4", PID: 17}, Callers: 3, CallersSince: noon.Add(-2 * time.Second)},
				{Owner: "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:57"},
			},
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
			redistest.Must(t, os.WriteFile(name, got, 0o644))
		}
		if want, err := os.ReadFile(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %s is now\n%s", err, name, got)
		}
	}
}

// The page says what is wrong, since when, why, which callers wait and for which holder.
func TestPage_SaysWhatGoesWrong(t *testing.T) {
	h := newPage(busy())
	line := func(text, lock string, ago time.Duration) journal.Event {
		return journal.Event{At: noon.Add(-ago), Text: "holdfast: " + text, Lock: lock}
	}
	shows := func(what, target string, wants ...string) {
		t.Helper()
		page := tagsBetween.ReplaceAllString(body(t, h.protected(), target), "|")
		for _, want := range wants {
			if without, no := strings.CutPrefix(want, "not "); no == strings.Contains(page, without) {
				t.Errorf("%s: it does not have %q:\n%s", what, want, page)
			}
		}
	}
	shows("busy", "/",
		"|2 problems: stock@", "Locks of|stock on ", "|2 problems|", `|11:59:36|&#34;late\xff&#34;|: not renewed for 24 s:|its lease ends in 6.0 s|`,
		"|11:59:20|stock:42|: a caller has waited for 40 s:|held here for 1 m 30 s by checkout|", "|1 m 30 s|checkout|83 %|25 s|3|", "|passed on by another process|",
		"|elsewhere|2.0 s|shop@web-3/4121|1|stock:42|,|&#34;a\\xff&#34;|fair|", "|2|held here, at most 2|", "Of 100 waits, half were under 10 ms, and 99 % under 10 s.")
	shows("its lock", "/lock?name=stock:42", "shop@web-3/4121, v1.2.0,|its page|", "|12, for up to 48 s|", "|report@web-4/17|hf-22222222-2222-4222-8222-222222222222:9|3, for up to 2.0 s|Holdfast|-|0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:57|-|Redisson|", "|callers that wait here|3|", "|places in Redis's queue|2|", "its own callers wait here, without a place", "stock:42 - lock of stock@")

	h.now = func() time.Time { return noon.Add(time.Second) }
	h.peers[0].manager.(*fake).stats.RenewalFailures++
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{line("renewal failed, trying again", "", 0), line("no renewal fails any more", "", 0)}
	}
	shows("failed renewals", "/", "|12:00:00|failed renewals: 1 in the last minute")

	if page := body(t, h.protected(), "/"); !strings.Contains(page, `<noscript><meta http-equiv="refresh"`) {
		t.Error("without scripts the page does not reload")
	}

	h = newPage(&fake{})
	shows("an empty page", "/", "Nothing goes wrong", "holds no lock", "No wait has ended", "no lease was lost")
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{line("lease lost", "old", time.Hour), line("lease lost", "a", 48*time.Second)}
	}
	shows("a lost lease", "/", "|1 problem|", "|11:59:12|a|: lease lost 48 s ago")
	h.peers[0].events = func() (all []journal.Event) {
		for i := range 9 {
			all = append(all, line("lease lost", fmt.Sprint("lost:", i), time.Minute))
		}
		return all
	}
	shows("lost leases", "/", "|9 problems|", "|lost:8|: lease lost", "|6 more in 5 minutes: lease lost|", "|1 earlier|", "|What happened earlier|")
	h.peers[0].events = func() []journal.Event { return []journal.Event{line("redis does not answer", "", time.Minute)} }
	shows("an outage", "/", "|11:59:00|redis does not answer")
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{line("a waiting caller is refused, trying again", "", time.Minute)}
	}
	shows("refusals", "/", "|11:59:00|a waiting caller is refused, trying again")
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{line("pub/sub connection lost; polling until it is restored", "", time.Minute)}
	}
	shows("messages that no caller waits for", "/", "Nothing goes wrong")
	h.peers[0].manager.(*fake).stats.Subscriptions = 1
	shows("no messages", "/", "|11:59:00|pub/sub connection lost; polling until it is restored")
	h.peers[0].events = func() []journal.Event {
		return []journal.Event{line("redis does not answer", "", time.Minute), line("redis answers again", "", 0)}
	}
	shows("an outage that is over", "/", "Nothing goes wrong")

	many := &fake{}
	for i := range 9 {
		l := busy().locks[1]
		l.Name, l.Deadline = fmt.Sprint("late:", i), l.Deadline.Add(-time.Duration(i)*time.Millisecond)
		many.locks = append(many.locks, l)
	}
	h = newPage(many)
	shows("many late renewals", "/", "|9 problems|", "|late:8|: not renewed", "6 more locks are not renewed in time")
}

// tagsBetween are tags in a row.
var tagsBetween = regexp.MustCompile(`\s*(?:<[^>]*>\s*)+`)

// A lock that another process holds is waited for by name; Redis is asked for few locks, and seldom.
func TestPage_NamesWhomCallersWaitFor(t *testing.T) {
	f, now := many(100), noon
	h := newPage(f)
	h.now = func() time.Time { return now }
	for _, tc := range []struct {
		what string
		info holdfast.Info
		err  error
		want string
	}{
		{"without identity", holdfast.Info{Holders: []holdfast.Holder{{Owner: "owner:7"}}}, nil, ">owner:7</td>"},
		{"readers", holdfast.Info{Holders: busy().info.Holders, More: 4}, nil, ">shop@web-3/4121</a> and 4 more</td>"},
		{"free", holdfast.Info{}, nil, ">no owner at this moment</td>"},
		{"without an answer", holdfast.Info{}, holdfast.ErrUnavailable, ">owner not known</td>"},
	} {
		f.info, f.err = tc.info, tc.err
		now = now.Add(askedAgain)
		want := askedLocks
		if tc.err != nil {
			want = 50 // and those that were not asked for
		}
		if n := strings.Count(body(t, h.protected(), "/"), tc.want); n != want {
			t.Errorf("%s: %d rows with %s, want %d", tc.what, n, tc.want, want)
		}
		f.info, f.err = holdfast.Info{Holders: []holdfast.Holder{{Owner: "too soon"}}}, nil
		now = now.Add(askedAgain - time.Millisecond)
		if strings.Contains(body(t, h.protected(), "/"), "too soon") {
			t.Errorf("%s: Redis is asked again at once", tc.what)
		}
	}
}

// What was between two looks is known only if they are close together.
func TestHistory_KnowsWhenClientsLooked(t *testing.T) {
	f := &fake{waits: engine.Waits{5}}
	h, now := newPage(f), noon
	h.now = func() time.Time { return now }
	o := h.overview(nil)
	if w := o.Waits; w.All() != 5 || !w.Since.IsZero() {
		t.Errorf("the first look has %+v", w)
	}
	f.locks = []holdfast.LocalLock{{Name: "a", State: holdfast.LocalHeld}, {Name: "b", State: holdfast.LocalHeld}}
	now = now.Add(time.Second) // the same sample, which keeps the most
	h.overview(nil)
	f.locks = f.locks[:1]
	for range 12 {
		now = now.Add(4 * time.Second)
		o = h.overview(nil)
	}
	if c := o.Curves()[0]; c.Now != 1 || c.Most != 2 || len(c.Unknown) != 1 || c.Unknown[0] != (stretch{0, 551}) || !strings.HasPrefix(c.Path, "M551 40V2H") {
		t.Errorf("one after another: %+v", c)
	}
	now = now.Add(5 * time.Minute)
	f.waits[2] = 7
	o = h.overview(nil)
	if c := o.Curves()[0]; len(c.Unknown) != 2 || c.Unknown[1].Width < 285 || c.Unknown[1].X+c.Unknown[1].Width != 600 {
		t.Errorf("after five minutes: %+v", c.Unknown)
	}
	now = now.Add(shownHistory - time.Minute)
	o = h.overview(nil)
	if w := o.Waits; w.All() != 7 || w.Since.IsZero() || len(o.History) != 2 || o.Curves()[0].Most != 1 {
		t.Errorf("after ten minutes: %+v, %d samples", w, len(o.History))
	}
	for range 1000 {
		now = now.Add(sampleEvery)
		h.overview(nil)
	}
	redistest.WantMost(t, len(h.history.samples), int(shownHistory/sampleEvery)+2, "%d samples")
}

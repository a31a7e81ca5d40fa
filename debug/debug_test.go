package debug

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

func (f *fake) Locks() iter.Seq[holdfast.LocalLock]   { return slices.Values(f.locks) }
func (f *fake) Contended(n int) []holdfast.Contention { return f.contended[:min(n, len(f.contended))] }
func (f *fake) Stats() holdfast.Stats                 { return f.stats }
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

// A name cannot do anything to the page, and its page is found.
func TestPage_HostileNames(t *testing.T) {
	names := []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "'-alert(1)-'", "{{.}}", "javascript:alert(1)", "\xff\xfe\x00", "a\u202eb", "</td></table>",
		strings.Repeat("long", 16<<10), strings.Repeat("\xff", 64<<10), strings.Repeat("é", 300), "a&b=c#d?e+f%20g h", " ", "../..//", "\x1b[31m",
	}
	f := &fake{}
	for _, n := range names {
		f.locks = append(f.locks, holdfast.LocalLock{Name: n, State: holdfast.LocalHeld, Since: noon, Deadline: noon.Add(1), Label: n, Waiters: 1, WaitingSince: noon.Add(-time.Hour), WaiterLabel: n})
		f.locks = append(f.locks, holdfast.LocalLock{Name: n, State: holdfast.LocalWaiting, Since: noon, WaiterLabel: n})
		f.contended = append(f.contended, holdfast.Contention{Name: n})
		if len(n) <= longestLink { // the forms repeat it, and a page of megabytes takes long to look through
			f.info.Holders = append(f.info.Holders, holdfast.Holder{Owner: n, Identity: &holdfast.Identity{App: n, Host: n, Version: n, Debug: n}})
		}
	}
	h := newPage(f)
	h.allowed = func(*http.Request) bool { return true }
	h.peers[0].events = func() (all []journal.Event) {
		for _, n := range names {
			all = append(all, journal.Event{At: noon, Text: "holdfast: lease lost", Lock: n})
		}
		return all
	}
	tags, quoted := regexp.MustCompile(`<[a-zA-Z](?:[^>"]|"[^"]*")*>`), regexp.MustCompile(`"[^"]*"`)
	handlers, schemes := regexp.MustCompile(`(?i)\s(?:on\w+|style)=`), regexp.MustCompile(`(?i)(?:href|src|action)="\s*(?:javascript|data|https?):`)
	page := body(t, h.protected(), "/")
	seen := make(map[string]bool)
	check := func(target, page string) {
		t.Helper()
		if !utf8.ValidString(page) {
			t.Errorf("%s is not UTF-8", target)
		}
		for _, bad := range []string{"<script>", "<img", "\u202e", "\x00", "\x1b"} {
			if i := strings.Index(page, bad); i >= 0 {
				t.Errorf("%s has %q: %q", target, bad, page[max(i-40, 0):min(i+40, len(page))])
			}
		}
		for _, tag := range tags.FindAllString(page, -1) {
			if attributes := quoted.ReplaceAllString(tag, ""); handlers.MatchString(attributes) || schemes.MatchString(tag) {
				t.Errorf("%s has %s", target, tag)
			}
		}
	}
	check("/", page)
	if len(page) > 200<<10 {
		t.Errorf("the page has %d KiB", len(page)>>10)
	}
	for _, to := range hrefs(page) {
		if !strings.HasPrefix(to, "lock?") || seen[to] {
			continue
		}
		seen[to] = true
		lock := body(t, h.protected(), "/"+to+"&format=json")
		var got struct {
			Name      string
			NameBytes []byte
			Here      []row
		}
		if err := json.Unmarshal([]byte(lock), &got); err != nil {
			t.Fatal(err)
		}
		name := got.Name
		if len(got.NameBytes) > 0 {
			name = string(got.NameBytes)
		}
		if !slices.Contains(names, name) || len(got.Here) != 2 {
			t.Errorf("%.100s leads to %.40q with %d entries", to, name, len(got.Here))
		}
		check(to, body(t, h.protected(), "/"+to))
	}
	if len(seen) != len(names) {
		t.Errorf("%d links for %d names", len(seen), len(names))
	}
}

// many are n locks, half of them waited for.
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

func BenchmarkPage(b *testing.B) {
	handler := newPage(many(10_000)).protected()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
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
			if err != nil {
				t.Fatal(err)
			}
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

func TestFiles_AreSmall(t *testing.T) {
	all := 0
	for _, f := range []string{"page.html", "style.css", "script.js"} {
		text, err := files.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += len(text)
	}
	if all > 20<<10 {
		t.Errorf("%d bytes", all)
	}
}

// A lock is freed only by a request that is allowed to, from the page itself, for the owner that the page has shown.
func TestUnlock(t *testing.T) {
	owner := busy().info.Holders[0].Owner
	good := url.Values{"name": {"stock:42"}, "owner": {owner}, "manager": {"1"}, "typed": {"free"}}
	but := func(key, value string) url.Values {
		v := url.Values{}
		for k, x := range good {
			v[k] = x
		}
		v.Set(key, value)
		return v
	}
	yes, no := func(*http.Request) bool { return true }, func(*http.Request) bool { return false }
	for _, tt := range []struct {
		name    string
		allowed func(*http.Request) bool
		method  string
		form    url.Values
		site    string // Sec-Fetch-Site
		err     error
		status  int
		freed   bool
	}{
		{"allowed", yes, "POST", good, "same-origin", nil, 303, true},
		{"from no browser", yes, "POST", good, "", nil, 303, true},
		{"nothing is allowed", nil, "POST", good, "same-origin", nil, 405, false},
		{"not allowed", no, "POST", good, "same-origin", nil, 403, false},
		{"from another site", yes, "POST", good, "cross-site", nil, 403, false},
		{"a crawler", yes, "GET", good, "", nil, 405, false},
		{"not typed", yes, "POST", but("typed", ""), "same-origin", nil, 400, false},
		{"the page's own", yes, "POST", url.Values{"name64": {"c3RvY2s6NDI="}, "owner64": {base64.StdEncoding.EncodeToString([]byte(owner))}, "typed": {"free"}}, "same-origin", nil, 303, true},
		{"no name", yes, "POST", but("name", ""), "same-origin", nil, 400, false},
		{"no owner", yes, "POST", but("owner", ""), "same-origin", nil, 400, false},
		{"no manager", yes, "POST", but("manager", "2"), "same-origin", nil, 400, false},
		{"another owner by now", yes, "POST", but("owner", "hf-2:2"), "same-origin", nil, 303, true},
		{"Redis is away", yes, "POST", good, "same-origin", errors.New("no\nanswer"), 502, true},
	} {
		f := busy()
		f.err = tt.err
		h := newPage(f)
		h.allowed = tt.allowed
		r := httptest.NewRequest(tt.method, "/debug/unlock", strings.NewReader(tt.form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if tt.site != "" {
			r.Header.Set("Sec-Fetch-Site", tt.site)
		}
		w := httptest.NewRecorder()
		h.protected().ServeHTTP(w, r)
		if w.Code != tt.status || (len(f.freed) > 0) != tt.freed {
			t.Errorf("%s: %d, freed %q", tt.name, w.Code, f.freed)
		}
		if tt.status == 303 {
			to := w.Header().Get("Location")
			said := "Freed."
			if tt.name == "another owner by now" {
				said = "Not freed:"
			}
			if page := body(t, h.protected(), to); !strings.Contains(page, said) {
				t.Errorf("%s: %s does not say %s", tt.name, to, said)
			}
		}
		offered := strings.Contains(body(t, h.protected(), "/lock?name=stock:42"), `action="unlock"`)
		if want := tt.allowed != nil && tt.allowed(r) && tt.err == nil; offered != want {
			t.Errorf("%s: offered %t", tt.name, offered)
		}
	}
	for _, target := range []string{"/", "/lock?name=x", "/style.css"} {
		w := httptest.NewRecorder()
		newPage(busy()).protected().ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", target, w.Code)
		}
	}
}

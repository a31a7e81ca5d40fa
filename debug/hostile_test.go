package debug

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What is searched for is shown as text, whatever its bytes are.
func TestPage_HostileSearch(t *testing.T) {
	for _, target := range []string{"/?q=%ff%c2%9b%7f", "/?q=%ff%c2%9b%7f&format=json"} {
		page := body(t, newPage(busy()).protected(), target)
		if !utf8.ValidString(page) || strings.ContainsAny(page, "\u009b\x7f") || !strings.Contains(page, "\ufffd\ufffd\ufffd") {
			t.Errorf("%s: %q", target, page)
		}
	}
}

// A name cannot do anything to the page, and its page is found.
func TestPage_HostileNames(t *testing.T) {
	names := []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "'-alert(1)-'", "{{.}}", "javascript:alert(1)", "\xff\xfe\x00", "a\u202eb", "</td></table>",
		strings.Repeat("long", 1<<8), strings.Repeat("\xff", 1<<10), strings.Repeat("é", 300), strings.Repeat("\u202e", 300), "a&b=c#d?e+f%20g h", " ", "../..//", "\x1b[31m",
	}
	f := &fake{}
	for _, n := range names {
		f.locks = append(f.locks, holdfast.LocalLock{Name: n, State: holdfast.LocalHeld, Since: noon, Deadline: noon.Add(1), Label: n, Waiters: 1, WaitingSince: noon.Add(-time.Hour), WaiterLabel: n})
		f.locks = append(f.locks, holdfast.LocalLock{Name: n, State: holdfast.LocalWaiting, Since: noon, WaiterLabel: n, WaiterHolds: names})
		f.contended = append(f.contended, holdfast.Contention{Name: n})
		f.info.Holders = append(f.info.Holders, holdfast.Holder{Owner: n, Identity: &holdfast.Identity{App: n, Host: n, Version: n, Debug: n}})
		f.info.Queue = append(f.info.Queue, holdfast.Waiter{Owner: n, Identity: &holdfast.Identity{App: n, Host: n, Version: n, Debug: n}})
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
	if text := body(t, h.protected(), "/?format=json"); len(text) > 300<<10 {
		t.Errorf("the JSON has %d KiB", len(text)>>10)
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
		redistest.Must(t, json.Unmarshal([]byte(lock), &got))
		name := got.Name
		if len(got.NameBytes) > 0 {
			name = string(got.NameBytes)
		}
		if !slices.ContainsFunc(names, func(n string) bool { short, _ := bounded(n, nil); return name == n || name == short }) || len(got.Here) != 2 {
			t.Errorf("%.100s leads to %.40q with %d entries", to, name, len(got.Here))
		}
		check(to, body(t, h.protected(), "/"+to))
	}
	redistest.Want(t, len(seen), len(names), "%d links for %d names")
}

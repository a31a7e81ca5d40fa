package debug

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

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

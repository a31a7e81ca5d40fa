// Package debug is a page about the locks of a process: which it holds and since when, which callers wait and for how
// long, and what goes wrong. Mount it where only operators can reach it:
//
//	mux.Handle("/debug/holdfast/", debug.Handler(locks))
//
// The page needs no file beside the program and works without JavaScript, with which it is up to date each second.
// "?format=json" has the same data for programs. Nothing on it changes anything, unless [WithUnlock] allows that.
package debug

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/seam"
	"github.com/holdfast-go/holdfast/internal/visible"
)

// Options make a page other than [Handler] does.
type Options struct {
	allowed func(*http.Request) bool
}

// WithUnlock makes pages on which those requests can free a lock for which allowed returns true:
//
//	mux.Handle("/debug/holdfast/", debug.WithUnlock(isAdmin).Handler(locks))
//
// allowed is called for each request that is to free a lock, and to decide whether a page offers that.
// So it must only look at the request, for example at the user that a middleware has put into the
// request's context. Requests that a browser sends for another site are refused before
// ([http.CrossOriginProtection]).
func WithUnlock(allowed func(*http.Request) bool) Options { return Options{allowed} }

// Handler returns the page about the locks of these managers. It may be mounted under any path that
// ends with a slash, with or without [http.StripPrefix]. It does not ask who looks at it: put it behind
// whatever protects your other pages for operators.
//
// It reads what the process knows at most four times a second. To name the holders in other processes, it
// calls [holdfast.Manager.Inspect] of the 20 locks with the longest waits, at most every two seconds. The
// page of a single lock calls it of each manager.
func Handler(managers ...*holdfast.Manager) http.Handler {
	return Options{}.Handler(managers...)
}

// Handler is [Handler] with options.
func (o Options) Handler(managers ...*holdfast.Manager) http.Handler {
	h := &handler{allowed: o.allowed, now: seam.Now, fresh: fresh}
	for _, m := range managers {
		if m != nil && seam.Engine(m) != nil {
			eng := seam.Engine(m)
			h.peers = append(h.peers, peer{m, func() []journal.Event { return seam.Events(m) }, eng.Waits, eng.Identity.App()})
		}
	}
	return h.protected()
}

// manager is what the page needs of a holdfast.Manager.
type manager interface {
	Locks() iter.Seq[holdfast.LocalLock]
	Contended(n int) []holdfast.Contention
	Stats() holdfast.Stats
	Inspect(ctx context.Context, name string) (holdfast.Info, error)
	ForceUnlockOf(ctx context.Context, name, owner string) (bool, error)
}

// peer is one of the managers.
type peer struct {
	manager
	events func() []journal.Event
	waits  func() engine.Waits
	app    string // of WithIdentity
}

type handler struct {
	peers   []peer
	allowed func(*http.Request) bool // nil: nothing can be freed
	now     func() time.Time
	fresh   time.Duration

	mu      sync.Mutex // guards the following
	last    *look
	rates   rates
	history history
	asked   time.Time // when Redis was last queried for holders
	holders map[waitedFor]holdfast.Info
}

// fresh is how long requests share a look: clients that reload the page again and again do not slow the locks down.
const fresh = 250 * time.Millisecond

//go:embed page.html style.css script.js icon.svg
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }, "text": printable, "short": short, "plain": plain, "span": span, "heads": heads, "dash": dash, "link": link, "percent": percent, "number": number, "granted": granted, "tab": tab, "words": inWords,
}).ParseFS(files, "page.html"))

func (h *handler) protected() http.Handler {
	protection := http.NewCrossOriginProtection()
	return protection.Handler(http.HandlerFunc(h.serve))
}

// policy lets a browser fetch from nowhere but this page's own files, and run no script within it.
var policy = strings.Join([]string{"default-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "object-src 'none'"}, "; ")

// serve finds out what a request is for by the last element of the path: what is before it is not known.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Robots-Tag", "noindex, nofollow")
	_, file := path.Split(r.URL.Path)
	if r.URL.Path == "" { // StripPrefix has left nothing: relative links would lead elsewhere
		given, _, _ := strings.Cut(r.RequestURI, "?")
		head.Set("Location", path.Base(given)+"/")
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	if file == "unlock" && h.allowed != nil {
		h.unlock(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	switch file {
	case "":
		h.show(w, r, "overview", h.overview(r.URL.Query()))
	case "lock":
		h.lock(w, r)
	case "style.css", "script.js", "icon.svg":
		http.ServeFileFS(w, r, files, file)
	default:
		http.NotFound(w, r)
	}
}

// show writes a page or its JSON, if it can be made.
func (h *handler) show(w http.ResponseWriter, r *http.Request, page string, data interface{ bound() }) {
	var body bytes.Buffer
	var err error
	if r.URL.Query().Get("format") == "json" {
		w.Header().Set("Content-Type", "application/json")
		data.bound()
		var text []byte
		text, err = json.MarshalIndent(data, "", "  ")
		body.Write(visible.JSON(append(text, '\n')))
	} else {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		err = pages.ExecuteTemplate(&body, page, data)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("the page cannot be made: %v", err), http.StatusInternalServerError)
		return
	}
	_, _ = body.WriteTo(w) // the client may have gone
}

// field is one of a form. That of a page has it in Base64, since a name can be any bytes.
func field(r *http.Request, name string) string {
	if value, err := base64.StdEncoding.DecodeString(r.PostForm.Get(name + "64")); err == nil && len(value) > 0 {
		return string(value)
	}
	return r.PostForm.Get(name)
}

// unlock frees the lock that a form names, for the owner that its page has shown.
func (h *handler) unlock(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	if !h.allowed(r) {
		http.Error(w, "not allowed to free a lock", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	name, owner := field(r, "name"), field(r, "owner")
	number, err := strconv.Atoi(cmp.Or(r.PostForm.Get("manager"), "1"))
	switch {
	case name == "" || owner == "":
		http.Error(w, "the form names no lock, or no owner", http.StatusBadRequest)
		return
	case r.PostForm.Has("typed") && r.PostForm.Get("typed") != "free":
		http.Error(w, "not freed: the word free was not typed", http.StatusBadRequest)
		return
	case err != nil || number < 1 || number > len(h.peers):
		http.Error(w, "the form names no manager", http.StatusBadRequest)
		return
	}
	freed, err := h.peers[number-1].ForceUnlockOf(r.Context(), name, owner)
	h.forget()
	said := "freed"
	switch {
	case err != nil:
		http.Error(w, "not freed, as far as is known: "+plain(err.Error()), http.StatusBadGateway)
		return
	case !freed:
		said = "kept"
	}
	http.Redirect(w, r, string(link(name))+"&said="+url.QueryEscape(said), http.StatusSeeOther)
}

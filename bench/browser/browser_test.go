// Package browser looks at the debug page with a real browser, wide and narrow, light and dark, and with the keyboard alone.
package browser

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var screenshots = flag.String("screenshots", "", "a directory: write the pictures of docs there")

//go:embed look.js
var look string

// start starts a browser. make browser installs one.
func start(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WSURLReadTimeout(2*time.Minute)) // machines can be busy
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to run as root with one
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("%v: make browser installs one", err)
	}
	return ctx
}

// screen is one that a person has.
type screen struct {
	width, height int64
	scheme        string
}

// tab is a page in the browser, and what it has complained of.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // guarded by mu
}

func open(t *testing.T, browser context.Context, s screen, address string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complain("exception: %v", e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			b.complain("console: %v", e.Type)
		case *log.EventEntryAdded:
			b.complain("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		case *network.EventResponseReceived:
			if e.Response.Status >= 400 {
				b.complain("%d for %s", e.Response.Status, e.Response.URL)
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Host != mustHost(address) {
				b.complain("it asks for %s", e.Request.URL)
			}
		}
	})
	b.run(
		network.Enable(), log.Enable(),
		emulation.SetDeviceMetricsOverride(s.width, s.height, 1, s.width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}}),
		chromedp.Navigate(address),
		chromedp.Evaluate(look, nil),
	)
	return b
}

func mustHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return u.Host
}

func (b *tab) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, fmt.Sprintf(format, args...))
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates a function of look.js.
func ask[T any](b *tab, call string) (result T) {
	b.t.Helper()
	b.run(chromedp.Evaluate("look."+call, &result))
	return result
}

// keep writes a picture of what is on the screen.
func (b *tab) keep(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	var picture []byte
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
		b.t.Error(err)
	}
}

// check reports what is wrong with a page whatever is on it.
func (b *tab) check() {
	b.t.Helper()
	if wide := ask[[]string](b, "tooWide()"); len(wide) > 0 {
		b.t.Errorf("wider than the screen: %q", wide)
	}
	if faint := ask[[]string](b, "faint()"); len(faint) > 0 {
		b.t.Errorf("hard to read: %q", faint)
	}
	if icon := ask[string](b, "icon()"); !strings.HasSuffix(icon, "icon.svg") {
		b.t.Errorf("without an icon of its own, each visit asks for favicon.ico: %q", icon)
	}
}

// quiet reports what the browser has complained of.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.t.Errorf("%q", b.complaints)
	}
}

// tabTo presses Tab until the focus is on the control.
func (b *tab) tabTo(control string) {
	b.t.Helper()
	for range 500 {
		b.run(chromedp.KeyEvent(kb.Tab))
		if strings.HasSuffix(ask[string](b, "focused()"), control) {
			return
		}
	}
	b.t.Fatalf("Tab does not lead to %q", control)
}

// walk presses Tab from one control to the next: each is reached in the order of the page, and can be seen.
func (b *tab) walk() {
	b.t.Helper()
	controls := ask[[]string](b, "controls()")
	b.run(chromedp.Evaluate("look.blur()", nil))
	for i, control := range controls {
		b.run(chromedp.KeyEvent(kb.Tab))
		if at := ask[string](b, "focused()"); at != control {
			b.t.Fatalf("Tab %d leads to %q, want %q", i+1, at, control)
		}
		if !ask[bool](b, "visible()") {
			b.t.Errorf("%q has the focus, and that cannot be seen", control)
		}
	}
}

func TestPage(t *testing.T) {
	site, browser := shop(t), start(t)
	for _, s := range []screen{{1280, 800, "light"}, {1280, 800, "dark"}, {390, 844, "light"}, {390, 844, "dark"}} {
		t.Run(fmt.Sprintf("%dpx_%s", s.width, s.scheme), func(t *testing.T) {
			b := open(t, browser, s, site+"/")
			b.check()
			if dark := ask[bool](b, "dark()"); dark != (s.scheme == "dark") {
				t.Errorf("dark: %v", dark)
			}
			// A person on call sees all problems, with their times and reasons, and what has happened, without scrolling.
			if below := ask[[]string](b, `below(".problems li, .problems time, .problems .why, #events")`); len(below) > 0 {
				t.Errorf("not on the first screen: %q", below)
			}
			if texts := ask[[]string](b, `texts(".problems .why")`); !slices.Contains(texts, "key deleted") {
				t.Errorf("the reasons are %q", texts)
			}
			if order := ask[[]string](b, `texts("main h2")`); order[0] != "5 problems" || order[1] != "What happened" || !strings.HasPrefix(order[2], "Waiting") || !strings.HasPrefix(order[3], "Held") {
				t.Errorf("the order is %q", order)
			}
			if missing := ask[[]string](b, `missing("#waiting ~ table tbody td:not(.no), #held ~ table tbody td:not(.no)")`); len(missing) > 0 {
				t.Errorf("not shown: %q", missing)
			}
			if held := ask[[]string](b, `texts("#waiting ~ table td[data-l=holds] a")`); !slices.Equal(held, []string{"order:0003"}) {
				t.Errorf("waiting callers hold %q", held)
			}
			b.keep(fmt.Sprintf("page-%d-%s", s.width, s.scheme))
			b.quiet()
		})
	}
	t.Run("lock", func(t *testing.T) {
		for _, s := range []screen{{1280, 800, "light"}, {390, 844, "dark"}} {
			b := open(t, browser, s, site+"/lock?name=order:0007")
			b.check()
			b.walk()
			if queue := ask[[]string](b, `texts("h3 ~ table td:first-child")`); len(queue) != 1 || !strings.HasPrefix(queue[0], "billing@") {
				t.Errorf("the queue is %q", queue)
			}
			b.run(chromedp.Evaluate("look.blur(); scrollTo(0, 0)", nil))
			b.keep(fmt.Sprintf("lock-%d-%s", s.width, s.scheme))
			b.quiet()
		}
	})
	t.Run("keyboard", func(t *testing.T) {
		b := open(t, browser, screen{1280, 800, "light"}, site+"/?q=order:000")
		// The page is replaced each second; the focus stays where it was.
		b.tabTo("held A lock?name=order%3A0007")
		b.run(chromedp.Poll(`document.querySelector("#live").textContent !== "`+ask[string](b, "live()")+`"`, nil, chromedp.WithPollingTimeout(time.Minute)))
		if at := ask[string](b, "focused()"); at != "held A lock?name=order%3A0007" {
			t.Errorf("the focus has gone to %q", at)
		}
		b.run(chromedp.Evaluate("look.blur()", nil))
		b.tabTo("Pause")
		b.run(chromedp.KeyEvent(kb.Enter))
		if at := ask[string](b, "focused()"); !strings.HasSuffix(at, "Go on") {
			t.Fatalf("Enter on Pause: %q", at)
		}
		b.walk()
		b.tabTo("held A lock?name=order%3A0007")
		b.run(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//h1[contains(., "order:0007")]`, chromedp.BySearch))
		b.run(chromedp.Evaluate(look, nil))
		b.tabTo("name typed")
		b.run(chromedp.KeyEvent("free"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".said"), chromedp.Evaluate(look, nil))
		if said := ask[[]string](b, `texts(".said")`); !strings.HasPrefix(said[0], "Freed") {
			t.Errorf("%q", said)
		}
		b.quiet()
	})
}

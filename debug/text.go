package debug

import (
	"fmt"
	"html/template"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/visible"
)

const (
	longestText = 64      // runes of a name in a table
	longestName = 4 << 10 // and on its own page, where one of 1 KiB may be quoted
)

// printable returns a name as it can be read.
func printable(name string) string { return cut(name, longestName) }

// short is for a table.
func short(name string) string { return cut(name, longestText) }

// dash is short for what may be missing.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return short(text)
}

func cut(name string, most int) string {
	text := name[:min(len(name), 4*most)]
	if text != name {
		text = strings.ToValidUTF8(text, "") // a rune can have been cut
		if !utf8.ValidString(name) {
			text = name[:min(len(name), 4*most)]
		}
	}
	text = visible.Name(text)
	runes := []rune(text)
	if len(runes) > most || text != name && len(name) > 4*most {
		return fmt.Sprintf("%s… (%d bytes)", string(runes[:min(len(runes), most-1)]), len(name))
	}
	return text
}

// plain is a text of errors, without what cannot be seen.
func plain(text string) string {
	const longest = 500
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// bounded returns a name as JSON has it, with its bytes: as it is, or its beginning and its length.
func bounded(name string, raw []byte) (string, []byte) {
	if len(name) <= longestName {
		return name, raw
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(name[:longestName], ""), len(name)), nil
}

// heads are the headings of a table's columns, which only the page's own text names.
func heads(names ...string) (all template.HTML) {
	for _, name := range names {
		all += template.HTML(`<th scope="col">` + template.HTMLEscapeString(name) + `</th>`)
	}
	return all
}

// link leads to the page of a lock.
func link(name string) template.URL {
	return template.URL("lock?name=" + url.QueryEscape(name))
}

// span is a duration in two units at most.
func span(m millis) string {
	d := time.Duration(m)
	switch {
	case d < 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// clock is a time of the last hours as a person reads it, and with its day if it is longer ago.
func clock(t, now time.Time) string {
	if now.Sub(t) > 12*time.Hour {
		return t.Format("Jan 2 15:04:05")
	}
	return t.Format("15:04:05")
}

// granted says in words how a lease came about.
func granted(mode string) string {
	switch mode {
	case "fast":
		return "at once"
	case "wait":
		return "after a wait"
	case "handoff":
		return "passed on in this process"
	case "grant":
		return "passed on by another process"
	case "reentry":
		return "re-entry"
	}
	return mode
}

func percent(share float64) int { return int(share*100 + 0.5) }

func number(f float64) string {
	if f < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
	}
	return fmt.Sprintf("%.0f", f)
}

// tab is what a process of that app is called in the titles of pages.
func tab(app string) string {
	if app != "" {
		app += "@"
	}
	return fmt.Sprintf("%s%s/%d", app, host(), os.Getpid())
}

func processName() string { return fmt.Sprintf("%s, process %d", host(), os.Getpid()) }

func host() string {
	host, err := os.Hostname()
	if err != nil {
		return "this host"
	}
	return host
}

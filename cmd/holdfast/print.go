package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/internal/visible"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// formats of --output.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatName  = "name"
)

// lookFormats are those of ls and inspect, and reportFormats those of doctor and bench.
var (
	lookFormats   = []string{formatTable, formatWide, formatJSON, formatJSONL, formatName}
	reportFormats = []string{formatTable, formatJSON, formatJSONL}
)

func outputFlag(usage string, formats []string) cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formatTable, Usage: "print " + usage + ": `FORMAT`", Validator: oneOf("--output", formats...)}
}

// oneOf returns the validator of a flag that has a few values.
func oneOf(flag string, values ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(values, s) {
			return nil
		}
		last := len(values) - 1
		return fmt.Errorf("%s is %s or %s, not %q", flag, strings.Join(values[:last], ", "), values[last], s)
	}
}

// printJSON prints one array of all, or each on a line of its own. A write to a terminal or a pipe is one.
func printJSON[T any](w io.Writer, format string, all []T) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if format == formatJSON {
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(all); err != nil {
			return err
		}
	} else {
		for _, one := range all {
			if err := encoder.Encode(one); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(visible.JSON(text.Bytes()))
	return err
}

// printTable prints a line for each lock. A write to a terminal or a pipe is one.
func printTable(w io.Writer, s style, wide bool, looks []look) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	heading := "NAME\tKIND\tHOLDER\tTTL\tWAITING\tTOKEN\tSTATE"
	if slices.ContainsFunc(looks, look.several) {
		heading = strings.Replace(heading, "TOKEN", "SERVERS", 1)
	}
	fmt.Fprintln(table, heading)
	for _, l := range looks {
		token := "-"
		if l.Token > 0 {
			token = fmt.Sprint(l.Token)
		}
		if l.several() {
			token = l.serversText()
		}
		name := printable(l.Name)
		if !wide {
			name = shorten(name, 60)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", name, l.Kind, l.holder(wide), seconds(l.TTL), l.waiters(), token, s.paint(colourOf(l.State), l.state()))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, s.heading(text.String()))
	return err
}

// several reports whether several servers were asked.
func (l look) several() bool { return l.of > 0 }

// serversText is at how many of the servers the lock is held.
func (l look) serversText() string { return fmt.Sprintf("%d/%d", len(l.Servers), l.of) }

// holder is the first one, and how many there are beside it.
func (l look) holder(wide bool) string {
	if len(l.Holders) == 0 {
		return "-"
	}
	text := ownerText(l.Holders[0], wide)
	others := make(map[string]bool)
	for _, h := range l.Holders {
		others[h.who()] = true
	}
	if more := len(others) - 1 + l.More; more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
}

// ownerText is an owner id. In a table its process's part is shortened: what it begins with is enough to tell processes apart.
func ownerText(h lookHolder, wide bool) string {
	text := printable(h.Owner)
	if prefix, ok := wire.PermitOwner(h.Owner); ok && !wide {
		number, _ := strconv.ParseUint(h.Owner[2*wire.PermitManager:], 16, 64)
		text = prefix + strconv.FormatUint(number, 10)
	}
	switch {
	case h.Process != nil && wide:
		text = h.Process.String() + " " + text
	case h.Process != nil:
		text = h.Process.String()
	case !wide:
		process, number, numbered := strings.Cut(text, ":")
		number, _, _ = strings.Cut(number, ":") // the value is behind it
		if text = shorten(process, 12); numbered {
			text += ":" + shorten(number, 12)
		}
	}
	if !h.Holdfast {
		text = "redisson " + text
	}
	if h.Value != "" && !wide {
		text += fmt.Sprintf(" %q", shorten(h.Value, 24))
	}
	return text
}

func (l look) state() string {
	text := l.State
	if l.Since > 0 {
		lease := time.Duration(l.Since+l.TTL) * time.Millisecond // Redis does not know it
		text = fmt.Sprintf("%s: not renewed for %s if the lease is %v", l.State, seconds(l.Since), lease)
	}
	if s := l.Semaphore; s != nil {
		text += fmt.Sprintf(", %d of %d permits available", s.Available+s.Ended, s.Permits)
	}
	return text
}

// shorten cuts a text of printable runes.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// seconds is a time in ms; -1 is none.
func seconds(ms int64) string {
	if ms < 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fs", (time.Duration(ms) * time.Millisecond).Seconds())
}

// printable returns a name as it may be written to a terminal.
var printable = visible.Name

// style colours texts for a terminal. The zero value leaves them as they are.
type style struct{ on bool }

// styleOf colours what goes to a terminal that knows colours, unless --no-color or NO_COLOR says not to.
func styleOf(c *cli.Command, w io.Writer) style {
	return style{isTerminal(w) && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == "" && !c.Bool("no-color")}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colours, as terminals number them.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (s style) paint(colour, text string) string {
	if !s.on || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// heading makes the first line of a table bold.
func (s style) heading(table string) string {
	first, rest, _ := strings.Cut(table, "\n")
	return s.paint(bold, first) + "\n" + rest
}

// colourOf is that of a lock's state; empty: none.
func colourOf(state string) string {
	switch state {
	case stateNoTTL, stateStale:
		return red
	case stateExpiring:
		return yellow
	}
	return ""
}

// colour is that of a verdict; empty: none.
func (v verdict) colour() string {
	switch v {
	case good:
		return green
	case warned:
		return yellow
	case failed:
		return red
	}
	return ""
}

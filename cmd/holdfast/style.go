package main

import (
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"
)

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

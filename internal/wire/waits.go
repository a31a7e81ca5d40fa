package wire

import (
	"strconv"
	"strings"
	"time"
)

// WaitsField is the field in which a process says for which locks its callers wait: a text of lines
// "<callers> <unix milliseconds> <quoted name of the lock>", which readers of other programs can be given as well.
const WaitsField = "waits"

// maxWaits bounds that text, in bytes.
const maxWaits = 8 << 10

// Waits is how many callers of a process wait for a lock. The zero value is none.
type Waits struct {
	Name    string // as Redis sees it
	Callers int
	Since   time.Time // when the oldest of them came
}

// FormatWaits returns the text of WaitsField. What is beyond the bound is left out.
func FormatWaits(all []Waits) string {
	var text []byte
	for _, w := range all {
		end := len(text)
		text = strconv.AppendInt(text, int64(w.Callers), 10)
		text = strconv.AppendInt(append(text, ' '), w.Since.UnixMilli(), 10)
		text = append(strconv.AppendQuote(append(text, ' '), w.Name), '\n')
		if len(text) > maxWaits {
			return string(text[:end])
		}
	}
	return string(text)
}

// FindWaits returns what a text of WaitsField, which any client can have written, says of a lock.
func FindWaits(text, name string) Waits {
	quoted := strconv.Quote(name)
	for line := range strings.Lines(text) {
		callers, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		since, of, _ := strings.Cut(rest, " ")
		if of != quoted {
			continue
		}
		n, err := strconv.Atoi(callers)
		ms, err2 := strconv.ParseInt(since, 10, 64)
		if err == nil && err2 == nil && n > 0 {
			return Waits{name, n, time.UnixMilli(ms)}
		}
	}
	return Waits{}
}

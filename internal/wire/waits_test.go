package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWaits_AreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	since := time.UnixMilli(1764293750123)
	var all []Waits
	for i, name := range []string{"a", "order:0007", "a b", "line\n2 5 \"a\"", "\xff\x00", `"quoted"`, strings.Repeat("é", 500)} {
		all = append(all, Waits{name, i + 1, since.Add(time.Duration(i) * time.Hour)})
	}
	text := FormatWaits(all)
	for _, w := range all {
		if got := FindWaits(text, w.Name); got.Callers != w.Callers || !got.Since.Equal(w.Since) {
			t.Errorf("%q: %+v, want %+v", w.Name, got, w)
		}
	}
	if got := FindWaits(text, "order"); got != (Waits{}) {
		t.Errorf("of a lock that is not there: %+v", got)
	}
}

// What is beyond the bound is left out as a whole.
func TestWaits_AreBounded(t *testing.T) {
	t.Parallel()
	var all []Waits
	for i := range 10_000 {
		all = append(all, Waits{fmt.Sprintf("lock:%05d", i), 1, time.UnixMilli(0)})
	}
	text := FormatWaits(all)
	lines := slices.Collect(strings.Lines(text))
	if len(text) > maxWaits || len(text) < maxWaits-100 || FindWaits(text, all[len(lines)-1].Name).Callers != 1 {
		t.Errorf("%d bytes, %d lines, the last %q", len(text), len(lines), lines[len(lines)-1])
	}
}

// Any client can have written the text.
func TestFindWaits_OfAnyText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "5", `5 "a"`, `5  "a"`, `-1 0 "a"`, `0 0 "a"`, `x 0 "a"`, `1 x "a"`, `1 0 a`, `99999999999999999999 0 "a"`} {
		if got := FindWaits(text, "a"); got != (Waits{}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := FindWaits("x 1 \"a\"\n2 1 \"a\"\n", "a"); got.Callers != 2 {
		t.Errorf("behind a line that says nothing: %+v", got)
	}
}

package holdfast

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// More losses in a second than are written one by one share a line, which counts them and names some.
func TestJournal_SumsUpBursts(t *testing.T) {
	var out bytes.Buffer
	j := newJournal(slog.New(slog.NewTextHandler(&out, nil)))
	const n = 20 * burstLines
	for i := range n {
		j.lost(fmt.Sprint("many:", i), LostDeadline)
	}
	if err := j.close(context.Background()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	told := 0
	for _, line := range lines {
		if _, rest, found := strings.Cut(line, ", and others"); found {
			var more int
			if _, err := fmt.Sscanf(rest[strings.Index(rest, "count="):], "count=%d", &more); err != nil {
				t.Error(err)
			}
			told += more
		} else {
			told++
		}
	}
	if told != n || len(lines) >= n { // on a slow machine it takes more than one second
		t.Errorf("%d lines tell of %d losses of %d", len(lines), told, n)
	}
	for _, name := range []int{0, burstLines - 1} {
		if !strings.Contains(out.String(), fmt.Sprintf("lock=many:%d ", name)) {
			t.Errorf("no line of its own for %d", name)
		}
	}
}

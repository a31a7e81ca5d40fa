package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
)

// around is how much is shown before and after a violation.
const around = 2 * time.Second

// Save keeps what is needed to understand a red run: the page, the history, and what happened to the lock of each violation around it. It returns the
// directory.
func (r *Report) Save() (dir string, err error) {
	dir, err = os.MkdirTemp("", fmt.Sprintf("holdfast-chaos-%d-", r.History.Seed))
	if err != nil {
		return "", err
	}
	history, err := json.Marshal(r.History)
	if err != nil {
		return dir, err
	}
	files := map[string]string{"page.txt": r.String(), "history.json": string(history)}
	for _, v := range r.Violations {
		files[strings.ReplaceAll(v.Rule, " ", "-")+".txt"] = r.Around(v)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// Around lists the operations on a violation's lock, what the server wrote there, and the faults, in the seconds around it.
func (r *Report) Around(v judge.Violation) string {
	h := r.History
	type line struct {
		at   int64
		text string
	}
	var lines []line
	add := func(at int64, format string, args ...any) {
		if off := time.Duration(at-h.Start) - v.At; off >= -around && off <= around {
			lines = append(lines, line{at, fmt.Sprintf(format, args...)})
		}
	}
	add(h.Start+int64(v.At), "VIOLATION %v", v)
	for _, o := range h.Ops {
		if o.Name == v.Lock {
			add(o.Call, "call    %v", o)
			add(o.Return, "return  %v", o)
		}
	}
	for _, w := range transactions(h.Writes, h.Ticks) {
		for _, cmd := range w.commands {
			if v.Lock != "" && strings.Contains(strings.Join(cmd[1:], " "), v.Lock) {
				add(w.lo, "server  %v later at most: %q", time.Duration(w.hi-w.lo), cmd)
			}
		}
	}
	for _, f := range slices.Concat(h.Faults, h.Stalls) {
		add(f.Start, "FAULT   %s for %v, client %d %s", f.Kind, time.Duration(f.End-f.Start), f.Proc, f.Name)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(min(max(a.at-b.at, -1), 1)) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%12.6f  %s\n", time.Duration(l.at-h.Start).Seconds(), l.text)
	}
	return b.String()
}

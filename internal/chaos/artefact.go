package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Save keeps what is needed to understand a red run: the page, the history, and a
// timeline around each of the first violations. It returns the directory.
func (r *Report) Save() (dir string, err error) {
	dir, err = os.MkdirTemp("", fmt.Sprintf("holdfast-chaos-%d-", r.History.Seed))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "page.txt"), []byte(r.String()), 0o600); err != nil {
		return dir, err
	}
	history, err := json.Marshal(r.History)
	if err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(dir, "history.json"), history, 0o600); err != nil {
		return dir, err
	}
	last := int64(-1 << 62)
	for _, v := range r.Violations {
		if v.At-last < int64(around) {
			continue // it is in the picture before
		}
		last = v.At
		name := fmt.Sprintf("%06.2fs-%s.html", time.Duration(v.At-r.History.Start).Seconds(), strings.ReplaceAll(v.Rule, " ", "-"))
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return dir, err
		}
		if err := r.Timeline(f, v.At); err != nil {
			f.Close()
			return dir, err
		}
		if err := f.Close(); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

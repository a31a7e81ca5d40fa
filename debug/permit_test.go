package debug

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Of a semaphore the pages say how many permits there are, how many are available, and who holds them.
func TestPage_Semaphore(t *testing.T) {
	const permit = "11111111111141118111000000000007"
	h := newPage(&fake{
		locks: []holdfast.LocalLock{{
			Name: "downloads", Kind: holdfast.KindSemaphore, State: holdfast.LocalHeld, Since: noon.Add(-time.Second), Deadline: noon.Add(time.Minute), Leases: 1, Permits: 2,
		}},
		info: holdfast.Info{
			Kind: holdfast.KindSemaphore, Held: true, TTL: -1, Permits: 5, Available: 1, Ended: 2,
			Holders: []holdfast.Holder{{Owner: permit, Holdfast: true, TTL: 20 * time.Second}, {Owner: "5f1c0000aaaabbbbccccddddddddddff", TTL: 10 * time.Second}},
		},
	})
	for target, texts := range map[string][]string{
		"/":                                {">semaphore, 2 permits<"},
		"/lock?name=downloads":             {">semaphore, 2 permits<", ">semaphore, 3 of 5 available<", permit, ">10 s<"},
		"/lock?name=downloads&format=json": {`"available": 3`, `"permits": 2`},
	} {
		page := body(t, h.protected(), target)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%s has no %q:\n%s", target, text, page)
			}
		}
		if strings.Contains(page, "no end") {
			t.Errorf("%s says that there is no end", target)
		}
	}
}

package command

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// A reply of another length, or with what the script does not give, is that to another command.
func TestMerge_ShiftedReplies(t *testing.T) {
	fits := func(v any) bool { _, ok := v.(string); return ok }
	for name, spoil := range map[string]func([]any) any{
		"short":                  func(all []any) any { return all[1:] },
		"long":                   func(all []any) any { return append(all, "more") },
		"another form":           func(all []any) any { all[1] = int64(1); return all },
		"of one call":            func(all []any) any { return all[0] },
		"not one":                func([]any) any { return map[any]any{} },
		"of no command":          func([]any) any { return []any{} },
		"no failures":            func(all []any) any { all[len(all)-1] = "x"; return all },
		"half a failure":         func(all []any) any { all[len(all)-1] = []any{int64(1)}; return all },
		"failures of none":       func(all []any) any { all[len(all)-1] = []any{int64(99), "x"}; return all },
		"failure before":         func(all []any) any { all[len(all)-1] = []any{int64(0), "x"}; return all },
		"a failure that is none": func(all []any) any { all[len(all)-1] = []any{int64(1), "x"}; return all },
		"a failure of what":      func(all []any) any { all[0], all[len(all)-1] = nil, []any{"1", "x"}; return all },
	} {
		bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
			s := manyScript(fits)
			spoilt := false
			srv.answer = oneByOne(func(_ context.Context, cmd *redis.Cmd) {
				if cmd.Args()[argScript] == "return ARGV[1]" { // a check
					cmd.SetVal(cmd.Args()[argFirstKey+1])
					return
				}
				all := []any{}
				for _, c := range s.calls(t, cmd.Args()) {
					all = append(all, c[0])
				}
				switch {
				case len(all) == 1:
					cmd.SetVal(all[0])
				case spoilt:
					cmd.SetVal(append(all, []any{}))
				default:
					spoilt = true
					cmd.SetVal(spoil(append(all, []any{})))
				}
			})
			strange := 0
			for i, o := range submitAll(t, x, s, 32) {
				switch r := <-o.replies; {
				case errors.Is(r.Err, errShifted) && r.Outcome == lock.Unknown:
					strange++
				case r.Value != fmt.Sprint("k", i):
					t.Errorf("%s: call %d: %v, %v, %v", name, i, r.Outcome, r.Value, r.Err)
				}
			}
			if strange == 0 {
				t.Errorf("%s: believed", name)
			}
		})
	}
}

package protocol_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What come_back in lib/place.lua does to a list, for lists and batches by chance: the batch stands in the list, its
// process's places are in the order of the numbers as far as they have been, those of the others in their order, none has been passed by more than
// have come back, and none stands there twice.
func TestStand_ComeBack(t *testing.T) {
	rdb := redistest.Start(t).Admin()
	script := protocol.Function("place", "come_back") + "come_back(KEYS[1], ARGV)\n"
	id := func(process, number int) string {
		return fmt.Sprintf("hf-11111111-2222-4333-8444-%012d:%d", process, number)
	}
	for seed := range int64(2000) {
		chance := rand.New(rand.NewSource(seed))
		var queue, batch []string
		standing, numbers := map[int][]int{}, map[int][]int{}
		for range chance.Intn(40) {
			p := chance.Intn(3)
			number := 1 + chance.Intn(3)
			if n := numbers[p]; len(n) > 0 {
				number += n[len(n)-1]
			}
			numbers[p] = append(numbers[p], number)
			if chance.Intn(3) > 0 {
				queue = append(queue, id(p, number))
				standing[p] = append(standing[p], number)
			}
			if chance.Intn(8) == 0 {
				queue = append(queue, fmt.Sprintf("b0dc7e0a-0000-4000-8000-000000000000:%d", len(queue)))
			}
		}
		for _, number := range numbers[0] {
			if chance.Intn(2) == 0 {
				batch = append(batch, id(0, number))
			}
		}
		if len(batch) == 0 {
			continue
		}
		rdb.Del(t.Context(), "q")
		for _, member := range queue {
			rdb.RPush(t.Context(), "q", member)
		}
		args := make([]any, len(batch))
		for i, member := range batch {
			args[i] = member
		}
		if err := rdb.Eval(t.Context(), script, []string{"q"}, args...).Err(); err != nil && err.Error() != "redis: nil" {
			t.Fatal(err)
		}
		after := rdb.LRange(t.Context(), "q", 0, -1).Val()
		mine := func(list []string) (own, others []string) {
			for _, member := range list {
				if strings.HasPrefix(member, id(0, 0)[:len(id(0, 0))-1]) {
					own = append(own, member)
				} else {
					others = append(others, member)
				}
			}
			return own, others
		}
		was, othersWere := mine(queue)
		want := slices.Clone(was)
		back := 0
		for _, member := range batch {
			if !slices.Contains(want, member) {
				want = append(want, member)
				back++
			}
		}
		slices.SortFunc(want, func(a, b string) int { return len(a)*1000 + strings.Compare(a, b) - len(b)*1000 })
		own, others := mine(after)
		if !slices.Equal(own, want) || !slices.Equal(others, othersWere) {
			t.Fatalf("seed %d: batch %q\nbefore %q\nafter  %q", seed, batch, queue, after)
		}
		for _, other := range others {
			if passed := slices.Index(after, other) - slices.Index(queue, other); passed > back {
				t.Fatalf("seed %d: %d came back, and %q was passed by %d", seed, back, other, passed)
			}
		}
	}
}
